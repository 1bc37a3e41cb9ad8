import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { newId, shortId } from '../../../core/model/id.ts'
import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import { unstuckCommand } from '../../../lib/text/shell-command.ts'
import { openJournal, pruneJournalsHourly } from '../../../lib/files/journal.ts'
import { describeEvent } from '../../../presenters/event.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import type { CrawlDefinition } from '../../../core/worker/crawl.ts'
import { loadCrawl } from '../../../app/load-crawl.ts'
import { isWorkerProcess } from '../../../lib/process/this-process.ts'
import { WorkerProcesses, reportStarted } from '../../../app/worker-processes.ts'
import { ensureRun } from '../../../core/worker/ensure-run.ts'
import { handleStopSignals } from '../../../app/stop-signals.ts'
import { CrawlWorker } from '../../../core/worker/worker.ts'
import { FEATURES } from '../../../features/index.ts'
import { LiveLine } from '../live-line.ts'
import { ALIVE, READY, SystemdNotifier } from '../../../lib/process/sd-notify.ts'
import { defineCommand, type CliContext } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

const loadExecMode = FEATURES.find((one) => one.execMode)!.execMode!
const EXEC_MODE = await loadExecMode()

const options = {
  workers: option.count('N', 'processes to start; dead ones are started again', 1, { max: 256 }),
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
  stopDeadline: option.duration(
    'TIME',
    'from SIGTERM to the end, at most: below the time your process manager allows; default: 25s',
    undefined,
  ),
  journal: option.text('FOLDER', 'where the journals go; default: beside the database'),
  exec: option.flag('take queued runs of commands instead: a command follows after --'),
  source: option.texts(
    'NAME',
    'with --exec: only runs of these sources; a star at the end matches the rest',
  ),
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
    "unstuck work --source 'report-*' --exec --concurrency 4 -- python report.py",
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
    const ended =
      context.options.workers > 1
        ? await workInProcesses(context, crawl)
        : await workHere(context, crawl)
    // What the crawl's own code left open (a pool, a timer, an aborted page) must not keep the process alive.
    setTimeout(() => process.exit(), EXIT_GRACE_MS).unref()
    return summarize(context, crawl, ended)
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
type WorkResult = { readonly code: number; readonly stopped: boolean }

async function workHere(context: Work, crawl: CrawlDefinition): Promise<WorkResult> {
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
  const journals = await journalFolder(context)
  const journal = openJournal(join(journals, `${id}.jsonl`), id)
  pruneJournalsHourly(journals, () => context.database.open())
  const manager = new SystemdNotifier({
    isHealthy: () => worker.isHeartbeating,
    status: () => line.brief,
    log: (text) => line.log(text),
  })
  const worker = new CrawlWorker(crawl, {
    id,
    db: await context.database.address(),
    overrides: (await context.settings()).overrides,
    start: context.options.start,
    drain: context.options.drain,
    stopDeadlineMs: deadlineMs,
    log: (message) => line.log(message),
    emit: (event) => {
      journal(event)
      if (event.type === 'worker_start') {
        manager.ready()
        reportStarted()
      }
      const text = describeEvent(event)
      if (text !== null) line.log(text)
    },
  })
  const forget = handleStopSignals({
    deadlineMs,
    stop: (why) => {
      manager.stopping()
      worker.stop(why)
    },
    log: (text) => line.log(text),
  })
  const services = await context.startServices(
    (text) => line.log(text),
    () => id,
  )
  if (!isChild) line.start()
  try {
    const { stopReason, error } = await worker.run()
    if (error) throw error
    if (stopReason === null) await services.finish()
    return { code: EXIT.done, stopped: stopReason !== null }
  } finally {
    await services.stop()
    line.stop()
    forget()
    await manager.close()
  }
}

/** Each worker process reports every second that it is healthy. One of them is enough. */
const CHILD_SILENCE_MAX_MS = 5_000

/** The parent: begins the run, restarts dead processes, and shows their progress. */
async function workInProcesses(context: Work, crawl: CrawlDefinition): Promise<WorkResult> {
  const { workers, drain, start, concurrency, stopDeadline } = context.options
  const store = await context.database.open({ connections: 1 })
  const line = new LiveLine(() => context.database.open(), crawl.source, context.output, '')
  if (start) await ensureRun(store, crawl, (event) => line.log(describeEvent(event) ?? event.type))
  let heardAt = -Infinity
  const manager = new SystemdNotifier({
    isHealthy: () => performance.now() - heardAt < CHILD_SILENCE_MAX_MS,
    status: () => line.brief,
    log: (text) => line.log(text),
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
      ...(drain ? ['--drain'] : []),
      ...(concurrency === undefined ? [] : ['--concurrency', String(concurrency)]),
      ...(stopDeadline === undefined ? [] : ['--stop-deadline', `${stopDeadline}ms`]),
    ],
    // By the environment and not by a flag: other users of the machine can read flags.
    env: { UNSTUCK_DB: await context.database.address() },
    clock: REAL_CLOCK,
    log: (text) => line.log(text),
    beforeRestart: () => store.liveRun(crawl.source),
    onMessage: (message) => {
      if (message === READY) manager.ready()
      if (message === ALIVE) heardAt = performance.now()
    },
  })
  let stopped = false
  const forget = handleStopSignals({
    deadlineMs: stopDeadline ?? STOP_DEADLINE_MS,
    log: (text) => line.log(text),
    stop: () => {
      stopped = true
      manager.stopping()
      processes.stop()
    },
    kill: () => processes.kill(),
  })
  const services = await context.startServices(
    (text) => line.log(text),
    () => null,
  )
  line.start()
  try {
    const code = await processes.run()
    if (!stopped) await services.finish()
    return {
      code: code === EXIT.resumable || code === EXIT.needsAttention ? EXIT.done : code,
      stopped,
    }
  } finally {
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

async function summarize(
  context: Work,
  crawl: CrawlDefinition,
  ended: WorkResult,
): Promise<number> {
  if (ended.code !== EXIT.done) return ended.code
  if (isWorkerProcess()) return ended.stopped ? EXIT.resumable : EXIT.done
  const store = await context.database.open({ connections: 1 })
  const [latest] = (await store.runs({ source: crawl.source, limit: 1 })).items
  const isLeft = latest !== undefined && latest.finishedAt === null
  if (isLeft) {
    context.output.note(
      `Run ${shortId(latest.id)} has work left. Continue it with: ${unstuckCommand('work', [context.args.module])}`,
    )
    return context.options.drain ? EXIT.resumable : EXIT.done
  }
  if (ended.stopped || latest?.status !== 'failed') return EXIT.done
  const { failed, parked, stuck } = latest.counts.targets
  context.output.note(
    `Run ${shortId(latest.id)} ended with ${failed} failed, ${parked} parked and ${stuck} stuck targets. ` +
      `List them with: unstuck show ${shortId(latest.id)}`,
  )
  return EXIT.needsAttention
}
