import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { messageOf, SourcePausedError, UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { newId, shortId } from '../../../core/model/id.ts'
import { redact } from '../../../core/model/redact.ts'
import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import { formatDuration } from '../../../core/model/time.ts'
import { unstuckCommand } from '../../../lib/text/shell-command.ts'
import { openJournal, pruneJournalsHourly } from '../../../lib/files/journal.ts'
import { findPause, whenUnpaused } from '../../../presenters/sources.ts'
import { describeEvent } from '../../../presenters/event.ts'
import { describeWork, WorkMeter } from '../../../presenters/work.ts'
import { withRetry } from '../../../core/store/open.ts'
import type { Store } from '../../../core/store/store.ts'
import { recordWorkCommand } from '../../../presenters/continuation.ts'
import type { Run } from '../../../core/model/run.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import type { CrawlDefinition } from '../../../core/worker/crawl.ts'
import { loadCrawl } from '../../../app/load-crawl.ts'
import { isWorkerProcess } from '../../../lib/process/this-process.ts'
import { WorkerProcesses, reportStarted } from '../../../app/worker-processes.ts'
import { ensureRun } from '../../../core/worker/ensure-run.ts'
import { logWaits } from '../../../presenters/waiting.ts'
import { handleStopSignals } from '../../../app/stop-signals.ts'
import { CrawlWorker } from '../../../core/worker/worker.ts'
import { FEATURES } from '../../../features/index.ts'
import { LiveLine } from '../live-line.ts'
import { ALIVE, READY, SystemdNotifier } from '../../../lib/process/sd-notify.ts'
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
  source: SHARED_OPTIONS.sources,
  ...EXEC_MODE.options,
}
type WorkArguments = CliContext<
  { module: ReturnType<typeof argument.optional>; command: ReturnType<typeof argument.rest> },
  typeof options
>
type Work = WorkArguments & { readonly args: { readonly module: string } }

export const command = defineCommand({
  examples: [
    'unstuck work crawl.ts',
    'unstuck work crawl.ts --workers 10 --drain  # ten processes, end when all is done',
    'unstuck work crawl.ts --no-start            # only take up what is queued or was interrupted',
    "unstuck work --source 'report-*' --exec -- python report.py  # of all whose name begins so",
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
      return EXEC_MODE.run(given, module === undefined ? [] : [module, ...command])
    }
    const context = withModule(given)
    const loaded = await loadCrawl(context.args.module)
    const settings = await context.settings()
    const crawl: CrawlDefinition = {
      ...loaded,
      concurrency: context.options.concurrency ?? loaded.concurrency,
      policy: settings.policyFor(loaded.source, loaded.policyOptions),
    }
    const meter = new WorkMeter(crawl.source)
    const ended =
      context.options.workers > 1
        ? await workInProcesses(context, crawl, meter)
        : await workHere(context, crawl, meter)
    // What the crawl's own code left open (a pool, a timer, an aborted page) must not keep the process alive.
    setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()
    return summarize(context, crawl, meter, ended)
  },
})

function withModule(given: WorkArguments): Work {
  const { module, command } = given.args
  if (module === undefined)
    throw new UsageError('Work on what? Give the file of a crawl: unstuck work crawl.ts')
  if (command.length > 0 || given.options.source.length > 0)
    throw new UsageError('--source and a command go with --exec; a crawl is one file alone.')
  return { ...given, args: { module, command } }
}

const EXIT_GRACE_MS = 250

/** How the work ended, before open targets are counted. */
type Ended = {
  readonly code: number
  /** Why it stopped; null: no work was left. */
  readonly stopped: string | null
}

async function workHere(context: Work, crawl: CrawlDefinition, meter: WorkMeter): Promise<Ended> {
  const id = newId()
  const isChild = isWorkerProcess()
  const { stopDeadline: deadlineMs = STOP_DEADLINE_MS } = context.options
  const line = new LiveLine(
    // It shares the connections of the worker.
    async () => worker.store,
    crawl.source,
    context.output,
    isChild ? `[${shortId(id)}] ` : '',
  )
  const log = (text: string): void => line.log(text)
  await context.database.openWithin(context.options.dbTimeout, log)
  const journals = await journalFolder(context)
  const journal = openJournal(join(journals, `${id}.jsonl`), id)
  pruneJournalsHourly(journals, () => context.database.open())
  const manager = new SystemdNotifier({
    isHealthy: () => worker.isHeartbeating,
    status: () => line.brief,
    log,
  })
  const worker = new CrawlWorker(crawl, {
    id,
    db: await context.database.address(),
    overrides: (await context.settings()).overrides,
    start: context.options.start,
    drain: context.options.drain,
    stopDeadlineMs: deadlineMs,
    log,
    emit: (event) => {
      journal(event)
      if (event.type === 'worker_start') {
        manager.ready()
        reportStarted()
        // An error here is also one of the worker, which reports it.
        if (!isChild) withRetry(() => meter.start(worker.store)).catch(() => {})
        if (!isChild) recordWork(worker.store, context, crawl).catch(() => {})
        if (!isChild) logWaits(worker.store, crawl.source, log, waits.signal).catch(() => {})
      }
      const text = describeEvent(event)
      if (text !== null) line.log(text)
    },
  })
  const waits = new AbortController()
  const forget = handleStopSignals({
    deadlineMs,
    stop: (why) => {
      manager.stopping()
      worker.stop(why)
    },
    log,
  })
  const services = await context.startServices(log, () => id)
  if (!isChild) line.start()
  try {
    const { stopReason, error } = await worker.run()
    if (error) throw error
    if (stopReason === null) await services.finish()
    return { code: EXIT.done, stopped: stopReason }
  } finally {
    waits.abort()
    await services.stop()
    line.stop()
    forget()
    await manager.close()
  }
}

/** Keeps how this was called: the command to name when the crawl has stopped half-way. */
async function recordWork(
  store: Store,
  { args, options }: Work,
  { source }: CrawlDefinition,
): Promise<void> {
  const { workers, concurrency, drain, start, stopDeadline, dbTimeout, journal } = options
  const command = unstuckCommand('work', [redact(args.module)], {
    workers: workers > 1 && workers,
    concurrency,
    drain,
    noStart: !start,
    stopDeadline: stopDeadline && timeText(stopDeadline),
    dbTimeout: dbTimeout !== SHARED_OPTIONS.dbTimeout.defaultValue && timeText(dbTimeout),
    journal: journal && redact(journal),
  })
  await withRetry(() => recordWorkCommand(store, source, command))
}

function timeText(ms: number): string {
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`
}

/** Each worker process reports every second that it is healthy. One of them is enough. */
const CHILD_SILENCE_MAX_MS = 5_000

/** The parent: begins the run, restarts dead processes, and shows their progress. */
async function workInProcesses(
  context: Work,
  crawl: CrawlDefinition,
  meter: WorkMeter,
): Promise<Ended> {
  const { workers, drain, start, concurrency, stopDeadline, dbTimeout } = context.options
  const line = new LiveLine(() => context.database.open(), crawl.source, context.output, '')
  const log = (text: string): void => line.log(text)
  const store = await context.database.openWithin(dbTimeout, log)
  const paused = await findPause(store, crawl.source)
  if (paused && drain) throw new SourcePausedError(crawl.source, paused)
  await recordWork(store, context, crawl)
  await meter.start(store)
  const ensure = (): Promise<void> =>
    ensureRun(store, crawl, (event) => line.log(describeEvent(event) ?? event.type))
  const waits = new AbortController()
  if (start && paused) {
    whenUnpaused(store, crawl.source, waits.signal)
      .then(() => (waits.signal.aborted ? undefined : ensure()))
      .catch((error: unknown) => log(messageOf(error)))
  } else if (start) await ensure()
  logWaits(store, crawl.source, log, waits.signal).catch(() => {})
  let heardAt = -Infinity
  const manager = new SystemdNotifier({
    isHealthy: () => performance.now() - heardAt < CHILD_SILENCE_MAX_MS,
    status: () => line.brief,
    log,
  })
  const processes = new WorkerProcesses({
    count: workers,
    module: fileURLToPath(new URL('../../../../bin/unstuck.js', import.meta.url)),
    args: [
      'work',
      context.args.module,
      '--no-start',
      '--journal',
      await journalFolder(context),
      '--db-timeout',
      `${dbTimeout}ms`,
      ...(drain ? ['--drain'] : []),
      ...(concurrency === undefined ? [] : ['--concurrency', String(concurrency)]),
      ...(stopDeadline === undefined ? [] : ['--stop-deadline', `${stopDeadline}ms`]),
    ],
    // By the environment and not by a flag: other users of the machine can read flags.
    env: { UNSTUCK_DB: await context.database.address() },
    clock: REAL_CLOCK,
    log,
    beforeRestart: () => store.liveRun(crawl.source),
    onMessage: (message) => {
      if (message === READY) manager.ready()
      if (message === ALIVE) heardAt = performance.now()
    },
  })
  let stopped: string | null = null
  const forget = handleStopSignals({
    deadlineMs: stopDeadline ?? STOP_DEADLINE_MS,
    log,
    stop: (why) => {
      stopped = why
      manager.stopping()
      processes.stop()
    },
    kill: () => processes.kill(),
  })
  const services = await context.startServices(log, () => null)
  line.start()
  try {
    const code = await processes.run()
    if (stopped === null) await services.finish()
    return {
      code: code === EXIT.resumable || code === EXIT.needsAttention ? EXIT.done : code,
      stopped,
    }
  } finally {
    waits.abort()
    await services.stop()
    line.stop()
    forget()
    await manager.close()
  }
}

async function journalFolder(context: Work): Promise<string> {
  if (context.options.journal !== undefined) return context.options.journal
  return join(dataFolder(await context.database.address(), process.cwd()), 'journal')
}

/** The summary, what is left to do, and the exit code. A worker process leaves them to its parent. */
async function summarize(
  context: Work,
  crawl: CrawlDefinition,
  meter: WorkMeter,
  { code, stopped }: Ended,
): Promise<CommandResult | number> {
  if (code !== EXIT.done) return code
  if (isWorkerProcess()) return stopped === null ? EXIT.done : EXIT.resumable
  const store = await context.database.open({ connections: 1 })
  const work = await meter.finish(store, stopped)
  const [latest] = (await store.runs({ source: crawl.source, limit: 1 })).items
  const next = latest ? nextStep(context, latest, stopped !== null) : null
  return {
    data: work.result,
    exitCode: next?.exitCode ?? EXIT.done,
    print: (writer) => {
      writer.paragraph(describeWork(crawl.source, work))
      if (next) writer.paragraph(next.sentence)
    },
  }
}

/** What follows for the newest run: null if nothing does. */
function nextStep(
  { args, options }: Work,
  { id, status, finishedAt, counts }: Run,
  isStopped: boolean,
): { sentence: string; exitCode: number } | null {
  const run = shortId(id)
  if (finishedAt === null) {
    const command = unstuckCommand('work', [args.module])
    const sentence = `Run ${run} has work left. Continue it with: ${command}`
    return { sentence, exitCode: options.drain ? EXIT.resumable : EXIT.done }
  }
  if (isStopped || status !== 'failed') return null
  const { failed, parked, stuck } = counts.targets
  const sentence =
    `Run ${run} ended with ${failed} failed, ${parked} parked and ${stuck} stuck targets. ` +
    `List them with: unstuck show ${shortId(id)}`
  return { sentence, exitCode: EXIT.needsAttention }
}
