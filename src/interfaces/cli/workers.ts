import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { WorkerProcesses, reportStarted } from '../../app/worker-processes.ts'
import type { CliContext } from '../../contracts/command.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { messageOf, SourcePausedError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import type { WorkHost, Workers } from '../../contracts/workers.ts'
import type { CrawlDefinition } from '../../core/worker/crawl.ts'
import { ensureRun } from '../../core/worker/ensure-run.ts'
import { CrawlWorker } from '../../core/worker/worker.ts'
import { dataFolder } from '../../lib/files/data-folder.ts'
import { journalName, openJournal, pruneJournalsHourly } from '../../lib/files/journal.ts'
import { ALIVE, READY } from '../../lib/process/sd-notify.ts'
import { describeEvent } from '../../presenters/event.ts'
import { findPause, whenUnpaused } from '../../presenters/sources.ts'

/** What is asked of the workers. */
type Work = Pick<CliContext, 'database' | 'settings'> & {
  readonly args: { readonly module: string }
  readonly options: {
    readonly workers: number
    readonly concurrency: number | undefined
    readonly drain: boolean
    readonly start: boolean
    readonly stopDeadline: number | undefined
    readonly dbTimeout: number
    readonly journal: string | undefined
  }
}

/** One worker, in this process. It has connections of its own, which everything here shares. */
export async function makeWorker(
  context: Work,
  crawl: CrawlDefinition,
  { id, log, onReady, onBegin }: WorkHost,
): Promise<Workers> {
  const { start, drain, stopDeadline: stopDeadlineMs } = context.options
  const journals = await journalFolder(context)
  const journal = openJournal(join(journals, journalName(crawl.source, id, process.pid)), id)
  pruneJournalsHourly(journals, () => context.database.open())
  const worker = new CrawlWorker(crawl, {
    id,
    db: await context.database.address(),
    overrides: (await context.settings()).overrides,
    start,
    drain,
    ...(stopDeadlineMs !== undefined && { stopDeadlineMs }),
    log,
    emit: (event) => {
      journal(event)
      if (event.type === 'worker_start') {
        onReady()
        reportStarted()
        // An error here is also one of the worker, which reports it.
        onBegin(worker.store).catch(() => {})
      }
      const text = describeEvent(event)
      if (text !== null) log(text)
    },
  })
  return {
    id,
    openStore: async () => worker.store,
    isHealthy: () => worker.isHeartbeating,
    stop: (because) => worker.stop(because),
    async run() {
      const { stopReason, error } = await worker.run()
      if (error) throw error
      return { code: EXIT.done, stopped: stopReason }
    },
  }
}

/** Each worker process reports every second that it is healthy. One of them is enough. */
const CHILD_SILENCE_MAX_MS = 5_000

/** Worker processes, which are started again when they die; their run begins here. */
export async function makeProcesses(
  context: Work,
  crawl: CrawlDefinition,
  { log, onReady, onBegin, ensureRun }: WorkHost,
): Promise<Workers> {
  const { workers: count, drain, concurrency, stopDeadline, dbTimeout } = context.options
  const { source } = crawl
  const store = await context.database.open()
  let [heardAt, stopped] = [-Infinity, null as string | null]
  const processes = new WorkerProcesses({
    count,
    module: fileURLToPath(new URL('../../../bin/unstuck.js', import.meta.url)),
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
    beforeRestart: () => store.liveRun(source),
    onMessage: (message) => {
      if (message === READY) onReady()
      if (message === ALIVE) heardAt = performance.now()
    },
  })
  return {
    id: null,
    openStore: async () => store,
    isHealthy: () => performance.now() - heardAt < CHILD_SILENCE_MAX_MS,
    stop(because) {
      stopped = because
      processes.stop()
    },
    kill: () => processes.kill(),
    async run() {
      await onBegin(store)
      await ensureRun(store)
      return { code: await processes.run(), stopped }
    },
  }
}

async function journalFolder(context: Work): Promise<string> {
  if (context.options.journal !== undefined) return context.options.journal
  return join(dataFolder(await context.database.address(), process.cwd()), 'journal')
}

/** Starts a run of the source if it has none. While the source is paused, it waits for the end of the pause in the background. */
export function makeEnsureRun(
  crawl: Pick<CrawlDefinition, 'source' | 'policy'>,
  { drain, start }: Pick<Work['options'], 'drain' | 'start'>,
  { log, ended }: Pick<WorkHost, 'log' | 'ended'>,
): WorkHost['ensureRun'] {
  const { source } = crawl
  return async (store) => {
    const ensure = (): Promise<void> =>
      ensureRun(store, crawl, (event) => log(describeEvent(event) ?? event.type))
    const paused = await findPause(store, source)
    if (paused && drain) throw new SourcePausedError(source, paused)
    if (start && paused) {
      whenUnpaused(store, source, ended)
        .then(() => (ended.aborted ? undefined : ensure()))
        .catch((error: unknown) => log(messageOf(error)))
    } else if (start) await ensure()
  }
}
