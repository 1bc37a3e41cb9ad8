import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { newId, shortId } from '../../../core/model/id.ts'
import { redact } from '../../../core/model/redact.ts'
import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import { formatDuration } from '../../../core/model/time.ts'
import { shellWord, unstuckCommand } from '../../../core/model/shell-command.ts'
import { describeWork, WorkMeter } from '../../../presenters/work.ts'
import { withRetry } from '../../../core/store/open.ts'
import type { Store } from '../../../core/store/store.ts'
import { recordWorkCommand } from '../../../presenters/continuation.ts'
import { describeWait } from '../../../presenters/run-actions.ts'
import type { Run } from '../../../core/model/run.ts'
import type { CrawlDefinition } from '../../../core/worker/crawl.ts'
import { loadCrawl } from '../../../app/load-crawl.ts'
import { isWorkerProcess } from '../../../lib/process/this-process.ts'
import { logWaits } from '../../../presenters/waiting.ts'
import { handleStopSignals } from '../../../app/stop-signals.ts'
import type { TargetWork } from '../../../contracts/feature.ts'
import { FEATURES } from '../../../features/index.ts'
import { redactArguments } from '../../../lib/text/redact-arguments.ts'
import { LiveLine } from '../live-line.ts'
import { makeEnsureRun, makeProcesses, makeWorker } from '../workers.ts'
import { SystemdNotifier } from '../../../lib/process/sd-notify.ts'
import type { Ended, WorkHost, Workers } from '../../../contracts/workers.ts'
import { defineCommand, type CliContext, type CommandResult } from '../../../contracts/command.ts'
import { argument, defaultsTo, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

const loadExecMode = FEATURES.find((one) => one.execMode)!.execMode!
const EXEC_MODE = await loadExecMode()

const options = {
  workers: SHARED_OPTIONS.workers(1),
  concurrency: option.count(
    'N',
    "pages in flight per process, instead of the crawl's own",
    undefined,
    {
      max: 1_000,
    },
  ),
  drain: option.flag('end when nothing is left, instead of waiting for the next run'),
  start: option.unless('never start a new run, only work on one that is there'),
  stopDeadline: defaultsTo(
    formatDuration(STOP_DEADLINE_MS),
    option.duration(
      'TIME',
      'from SIGTERM to the end, at most: below the time your process manager allows',
      undefined,
    ),
  ),
  dbTimeout: SHARED_OPTIONS.dbTimeout,
  journal: defaultsTo('beside the database', option.text('FOLDER', 'where the journals go')),
  exec: option.flag('take queued runs of commands instead: a command follows after --'),
  targets: option.flag('with --exec: copies of the command claim targets of one crawl, over HTTP'),
  source: SHARED_OPTIONS.sources,
  ...EXEC_MODE.options,
}
type WorkArguments = CliContext<
  { module: ReturnType<typeof argument.optional>; command: ReturnType<typeof argument.rest> },
  typeof options
>
type Work = WorkArguments & { readonly args: { readonly module: string } }

type WorkPlan = {
  readonly crawl: Pick<CrawlDefinition, 'source' | 'policy'>
  /** From the first signal to the end, at most. */
  readonly deadlineMs: number
  /** How this was called: the command to name when the work has stopped half-way. */
  readonly command: string
  readonly makeWorkers: (host: WorkHost) => Promise<Workers>
}

export const command = defineCommand({
  examples: [
    'unstuck work crawl.ts',
    'unstuck work crawl.ts --workers 10 --drain  # ten processes, end when all is done',
    'unstuck work crawl.ts --no-start            # only take up what is queued or was interrupted',
    "unstuck work --source 'report-*' --exec -- python report.py  # of all whose name begins so",
    'unstuck work --exec --targets --source directory --workers 10 --drain -- python crawl.py',
  ],
  args: {
    module: argument.optional('the file that exports the crawl'),
    command: argument.rest('with --exec: the program and its arguments, after --'),
  },
  options,
  ignoresClosedPipe: true,

  async run(given) {
    const { module, command } = given.args
    if (given.options.exec) {
      const words = module === undefined ? [] : [module, ...command]
      return given.options.targets ? workOnTargets(given, words) : EXEC_MODE.run(given, words)
    }
    const context = withModule(given)
    const loaded = await loadCrawl(context.args.module)
    const settings = await context.settings()
    const crawl: CrawlDefinition = {
      ...loaded,
      concurrency: context.options.concurrency ?? loaded.concurrency,
      policy: settings.policyFor(loaded.source, loaded.policyOptions),
    }
    const make = context.options.workers > 1 ? makeProcesses : makeWorker
    return work(context, {
      crawl,
      deadlineMs: context.options.stopDeadline ?? STOP_DEADLINE_MS,
      command: await workCommand(context),
      makeWorkers: (host) => make(context, crawl, host),
    })
  },
})

/** The copies need their kill timeout, and then some time to release what they held. */
const RELEASE_MS = 10_000

async function workOnTargets(
  given: WorkArguments,
  words: readonly string[],
): Promise<CommandResult | number> {
  const { source, policy, killTimeoutMs, flags, makeWorkers } = await EXEC_MODE.onTargets(
    given,
    words,
  )
  return work(given, {
    crawl: { source, policy },
    deadlineMs: given.options.stopDeadline ?? killTimeoutMs + RELEASE_MS,
    command: [await workCommand(given, flags), '--', ...redactArguments(words).map(shellWord)].join(
      ' ',
    ),
    makeWorkers,
  })
}

/** Works until nothing is left or a signal comes, and sums it up. */
async function work(given: WorkArguments, plan: WorkPlan): Promise<CommandResult | number> {
  const meter = new WorkMeter(plan.crawl.source)
  const ended = await workOn(given, plan, async (store) => {
    await withRetry(() => meter.start(store))
    await withRetry(() => recordWorkCommand(store, plan.crawl.source, plan.command))
  })
  // What the crawl's own code left open (a pool, a timer, an aborted page) must not keep the process alive.
  setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()
  return summarize(given, plan, meter, ended)
}

function withModule(given: WorkArguments): Work {
  const { module, command } = given.args
  if (module === undefined)
    throw new UsageError('Work on what? Give the file of a crawl: unstuck work crawl.ts')
  if (command.length > 0 || given.options.source.length > 0 || given.options.targets)
    throw new UsageError(
      '--source, --targets and a command go with --exec; a crawl is one file alone.',
    )
  return { ...given, args: { module, command } }
}

const EXIT_GRACE_MS = 250

/** How this was called, without a wrapped command. `flags`: options about it. */
async function workCommand(
  { args, options, database }: WorkArguments,
  flags: TargetWork['flags'] = {},
): Promise<string> {
  const { workers, concurrency, drain, start, stopDeadline, dbTimeout, journal } = options
  const { exec, targets, source } = options
  const { address, from } = await database.locate()
  const shown = from === '--db' ? redact(address) : undefined
  const isWhole = shown === address
  const module = exec || args.module === undefined ? [] : [redact(args.module)]
  const command = unstuckCommand('work', module, {
    exec,
    targets,
    source,
    workers: workers > 1 && workers,
    concurrency,
    drain,
    noStart: !start,
    stopDeadline: stopDeadline && formatDuration(stopDeadline),
    dbTimeout: dbTimeout !== SHARED_OPTIONS.dbTimeout.defaultValue && formatDuration(dbTimeout),
    journal: journal && redact(journal),
    ...flags,
    db: isWhole && shown,
  })
  // The credentials of an address are not kept: the reader adds them.
  return shown === undefined || isWhole ? command : `UNSTUCK_DB=${shellWord(shown)} ${command}`
}

async function workOn(
  context: WorkArguments,
  { crawl, deadlineMs, makeWorkers }: WorkPlan,
  onBegin: (store: Store) => Promise<void>,
): Promise<Ended> {
  const { dbTimeout } = context.options
  const { source } = crawl
  const [id, isChild] = [newId(), isWorkerProcess()]
  const line = new LiveLine(source, context.output, isChild ? `[${shortId(id)}] ` : '')
  const log = (text: string): void => line.log(text)
  await context.database.openWithin(dbTimeout, log)

  const end = new AbortController()
  const ready = Promise.withResolvers<void>()
  const workers = await makeWorkers({
    id,
    log,
    ended: end.signal,
    ensureRun: makeEnsureRun(crawl, context.options, { log, ended: end.signal }),
    onReady: ready.resolve,
    async onBegin(store) {
      if (isChild) return
      logWaits(store, source, log, end.signal).catch(() => {})
      await onBegin(store)
    },
  })
  const { isHealthy } = workers
  const manager = new SystemdNotifier({ isHealthy, status: () => line.brief, log })
  void ready.promise.then(() => manager.ready())
  const forget = handleStopSignals({
    deadlineMs,
    log,
    stop: (why) => {
      manager.stopping()
      workers.stop(why)
    },
    kill: () => workers.kill?.(),
  })
  const services = await context.startServices(log, () => workers.id)
  if (!isChild) line.start(workers.openStore)
  try {
    const ended = await workers.run()
    if (ended.stopped === null) await services.finish()
    return ended
  } finally {
    end.abort()
    await services.stop()
    line.stop()
    forget()
    await manager.close()
  }
}

/** Worker processes that did not fail: what is left is in the database. */
const WORKED: readonly number[] = [EXIT.done, EXIT.resumable, EXIT.needsAttention]

/** The summary, what is left to do, and the exit code. A worker process leaves them to its parent. */
async function summarize(
  { database, options }: WorkArguments,
  { crawl: { source }, command }: WorkPlan,
  meter: WorkMeter,
  { code, stopped }: Ended,
): Promise<CommandResult | number> {
  if (!WORKED.includes(code)) return code
  if (isWorkerProcess()) return stopped === null ? EXIT.done : EXIT.resumable
  const store = await database.open({ connections: 1 })
  const work = await meter.finish(store, stopped)
  const [latest] = (await store.runs({ source, limit: 1 })).items
  const isLeft = latest?.finishedAt === null
  const next = isLeft
    ? ((await describeWait(store, latest)) ?? `Continue it with: ${command}`)
    : null
  const hasFailed =
    stopped === null && latest?.status === 'failed' && work.result.runs.includes(latest.id)
  return {
    data: work.result,
    exitCode:
      isLeft && options.drain ? EXIT.resumable : hasFailed ? EXIT.needsAttention : EXIT.done,
    print: (writer) => {
      writer.paragraph(describeWork(source, work))
      if (isLeft) writer.paragraph(`Run ${shortId(latest.id)} has work left. ${next}`)
      if (hasFailed) writer.paragraph(describeFailure(latest))
    },
  }
}

function describeFailure({ id, counts }: Run): string {
  const { failed, parked, stuck } = counts.targets
  return (
    `Run ${shortId(id)} ended with ${failed} failed, ${parked} parked and ${stuck} stuck targets. ` +
    `List them with: unstuck show ${shortId(id)}`
  )
}
