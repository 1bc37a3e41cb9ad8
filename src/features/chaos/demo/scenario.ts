import process from 'node:process'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { shortId, type RunId, type WorkerId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import { humanizeDuration, type Millis } from '../../../core/model/time.ts'
import type { Worker } from '../../../core/model/worker.ts'
import type { Store } from '../../../core/store/store.ts'
import { pollUntil } from '../poll.ts'
import type { Random } from '../random.ts'
import { readRecovery, type Recovery } from '../recovery-tracker.ts'
import type { DemoSize, ScheduledFault } from '../schedule.ts'
import type { Reporter } from './reporter.ts'
import type { Site } from './site.ts'
import type { Snapshot, WorkerPool } from './worker-pool.ts'

/** What every fault needs. */
export type ScenarioContext = {
  readonly store: Store
  readonly run: RunId
  readonly workerPool: WorkerPool
  readonly site: Site
  readonly random: Random
  readonly reporter: Reporter
  /** Fires when the run has ended, or on Ctrl-C. */
  readonly over: AbortSignal
  readonly snapshot: () => Promise<Snapshot>
}

const POLL_MS = 100
/** On a slow machine, faults are due by the clock instead of by pages. */
const OVERTIME_FACTOR = 1.5

/** Injects the scheduled faults, and records what came of each. */
export class Scenario {
  readonly killsAsked: number
  readonly kills: Kill[] = []
  readonly deploys: Deploy[] = []
  readonly zombies: Zombie[] = []
  /** Faults that could not be injected, each with its reason. */
  readonly skipped: string[] = []
  readonly #options: DemoSize & { readonly expectedMs: number }

  constructor(options: DemoSize & { readonly expectedMs: number }) {
    this.#options = options
    this.killsAsked = options.kills
  }

  /** Injects one fault after the other. Ends early when the run does. */
  async run(context: ScenarioContext, schedule: readonly ScheduledFault[]): Promise<void> {
    const startedAt = performance.now()
    for (const fault of schedule) {
      await this.#waitUntilDue(context, fault, startedAt)
      await this.#inject(context, fault)
    }
  }

  /** Returns one line for the headline. */
  summary(): string {
    const recoveries = this.kills.flatMap((kill) => kill.recoveries.map((one) => one.reclaimedMs))
    return [
      `kill -9: ${this.kills.length} of ${this.killsAsked}`,
      `deploys: ${this.deploys.length}`,
      `zombies: ${this.zombies.length}`,
      ...(recoveries.length > 0 ? [`slowest recovery ${Math.max(...recoveries)} ms`] : []),
    ].join(', ')
  }

  async #waitUntilDue(
    { snapshot, over }: ScenarioContext,
    { atShare }: ScheduledFault,
    startedAt: number,
  ): Promise<void> {
    const { pages, expectedMs } = this.#options
    while (!over.aborted) {
      if (performance.now() - startedAt > atShare * expectedMs * OVERTIME_FACTOR) return
      if ((await snapshot()).run.counts.pages >= atShare * pages) return
      await REAL_CLOCK.sleep(POLL_MS, over)
    }
  }

  async #inject(context: ScenarioContext, { kind }: ScheduledFault): Promise<void> {
    if (kind === 'kill') {
      if (context.over.aborted) return
      const kill = await killWorker(context)
      if (kill) this.kills.push(kill)
    } else if (kind === 'deploy') {
      if (context.over.aborted) this.skipped.push('deploy: the run was over before it')
      else this.deploys.push(await deploy(context))
    } else await this.#injectZombie(context)
  }

  async #injectZombie(context: ScenarioContext): Promise<void> {
    const reason = this.#zombieSkipReason(context)
    const result = reason === null ? await runZombie(context) : null
    if (result) this.zombies.push(result)
    else this.skipped.push(`zombie: ${reason ?? 'no worker was in the middle of a page'}`)
  }

  #zombieSkipReason({ over }: ScenarioContext): string | null {
    if (process.platform === 'win32') return 'Windows cannot stop a process and wake it up again'
    if (this.#options.workers < 2) return 'it needs a second worker to take over'
    return over.aborted ? 'the run was over before it' : null
  }
}

/** A kill -9, and what became of each target that the worker held. */
export type Kill = {
  readonly at: Millis
  readonly worker: WorkerId
  readonly recoveries: readonly Recovery[]
}

/** A SIGTERM to all workers, and how long it took. */
export type Deploy = { readonly stoppedMs: number; readonly backMs: number | null }

/** A worker that was stopped for longer than its lease. */
export type Zombie = {
  readonly silentMs: number
  /** Its late writes that were refused. */
  readonly refused: number
  /** A write with its lost claim was saved: the fence failed. */
  readonly isLateWriteSaved: boolean
}

const TIMEOUT_MS = 20_000
const HELD_MAX = 100
/**
 * A worker that dies right after its start is restarted with a delay. That delay is the restart policy and not
 * recovery, so younger workers are spared while there are others.
 */
const MIN_AGE_MS = 5_000

/** Calls `probe` until it returns a value. Returns null when the run is over or the time is up. */
function poll<T>(
  { over }: ScenarioContext,
  everyMs: number,
  probe: () => Promise<T | null | false>,
): Promise<T | null> {
  return pollUntil(probe, { everyMs, timeoutMs: TIMEOUT_MS, signal: over })
}

/** Kills a random worker with SIGKILL, and waits until another has claimed what it held. */
async function killWorker(context: ScenarioContext): Promise<Kill | null> {
  const { store, reporter } = context
  const killed = await poll(context, 50, () => killRandomWorker(context))
  if (!killed) return null
  const { at, worker } = killed
  const held = (await store.claimsOf(worker, null, HELD_MAX)).map(({ target }) => target)
  reporter.mark(worker, 'killed')
  const [first] = held
  if (!first) {
    reporter.log(`kill -9 ${shortId(worker)}, which held no target`)
    return { at, worker, recoveries: [] }
  }
  const what = `kill -9 ${shortId(worker)} on page ${first.page + 1} of ${first.key}`
  const event = reporter.start(what, 'its target has no worker now …')
  const ends = await Promise.all(held.map((target) => waitForRecovery(context, target, at)))
  const recoveries = ends.filter((end) => end !== null)
  const [taken] = recoveries
  event.end(
    taken
      ? `claimed by ${shortId(taken.by!)} after ${taken.reclaimedMs} ms`
      : 'its last write had arrived, nothing was left to recover',
  )
  return { at, worker, recoveries }
}

/** Kills one of the workers that hold a target; null while there is none. */
async function killRandomWorker({
  snapshot,
  store,
  random,
}: ScenarioContext): Promise<{ worker: WorkerId; at: Millis } | null> {
  const { workers, held } = await snapshot()
  // Read before the kill: the measured time can be too long by this, never too short.
  const at = await store.now()
  const busy = workers.filter((worker) => held.has(worker.id))
  const settled = busy.filter((worker) => at - worker.startedAt > MIN_AGE_MS)
  const candidates = settled.length > 0 ? settled : busy
  if (candidates.length === 0) return null
  const worker = random.pick(candidates)
  return sendSignal(worker, 'SIGKILL') ? { worker: worker.id, at } : null
}

async function waitForRecovery(
  context: ScenarioContext,
  orphan: Target,
  killedAt: Millis,
): Promise<Recovery | null> {
  const ended = await poll(context, 25, () => readRecovery(context.store, orphan, killedAt))
  if (ended) return ended.recovery
  // Not claimed in time: reported as the full timeout, which is far too long.
  const timedOut = { claimableMs: TIMEOUT_MS, reclaimedMs: TIMEOUT_MS, by: orphan.worker }
  return context.over.aborted ? null : { ...timedOut, because: null }
}

/** Sends SIGTERM to all workers, as a deploy does, and waits until the new ones work. */
async function deploy(context: ScenarioContext): Promise<Deploy> {
  const { workerPool, reporter, snapshot } = context
  const event = reporter.start('deploy, SIGTERM to all', 'each finishes its current page …')
  for (const { id } of (await snapshot()).workers) reporter.mark(id, 'leaving')
  const asked = performance.now()
  const { finished } = await workerPool.deploy()
  const ended = performance.now()
  const stoppedMs = ended - asked
  const stopped = `stopped after ${humanizeDuration(stoppedMs)}`
  const isBack =
    !finished && (await poll(context, 25, async () => (await snapshot()).held.size > 0))
  const backMs = isBack ? performance.now() - ended : null
  if (finished) event.end(`${stopped}, with all work done`)
  else if (backMs === null) event.end(stopped)
  else event.end(`${stopped}; the new ones continued ${humanizeDuration(backMs)} later`)
  return { stoppedMs, backMs }
}

/** A page that still takes this long: its worker waits for the site, and is not inside a commit. */
const MIN_WAIT_MS = 120
const LOCK_PROBE_MS = 400

/**
 * Stops a worker (SIGSTOP) during a page for longer than its lease; another takes over its target. Then writes a page
 * with the lost claim, and continues the worker (SIGCONT), which writes its own: the fence must refuse both.
 */
async function runZombie(context: ScenarioContext): Promise<Zombie | null> {
  const { reporter, store, snapshot } = context
  const found = await poll(context, 20, () => stopWorker(context))
  if (!found) return null
  const { worker, target, stoppedAt } = found
  const id = shortId(worker.id)
  const what = `SIGSTOP ${id} on page ${target.page + 1} of ${target.key}`
  const event = reporter.start(what, 'no heartbeats, its lease runs out …')
  try {
    const taken = await poll(context, 50, async () => {
      const now = await store.target(target.id)
      return now && now.epoch > target.epoch && now.worker !== target.worker ? now : null
    })
    const silentMs = performance.now() - stoppedAt
    const zombie = { silentMs, refused: 0, isLateWriteSaved: false }
    if (!taken) {
      event.end('no worker took over')
      return zombie
    }
    event.end(`taken over by ${shortId(taken.worker!)} after ${humanizeDuration(silentMs)}`)
    const isLateWriteSaved = await writeLate(context, target, worker)
    const before = (await snapshot()).run.counts.refused
    sendSignal(worker, 'SIGCONT')
    reporter.mark(worker.id, null)
    const resumed = reporter.start(`SIGCONT ${id}`, 'it continues with its old claim …')
    const refusals = async (): Promise<number> => (await snapshot()).run.counts.refused - before
    await poll(context, 50, async () => (await refusals()) > 0)
    const refused = await refusals()
    resumed.end(
      refused > 0
        ? 'it continued with its old claim, and its late write was refused'
        : 'it wrote nothing',
    )
    return { silentMs, refused, isLateWriteSaved }
  } finally {
    // No process stays stopped, whatever happens.
    sendSignal(worker, 'SIGCONT')
  }
}

/**
 * Writes the next page of a target with a claim that is lost, as its old worker would if it woke up right now. Returns
 * whether it was saved. The worker's own late write rarely comes before the new worker's next page, and is then refused
 * for its page number too; this one is refused by nothing but the fence.
 */
async function writeLate(
  { store }: ScenarioContext,
  { id, epoch, claimId }: Target,
  { id: worker, source }: Worker,
): Promise<boolean> {
  const now = (await store.target(id))!
  const [outcome] = await store.checkpoint([
    {
      claim: { target: id, epoch, claimId: claimId!, worker },
      source,
      expectedSeq: now.seq,
      page: now.page + 1,
      next: now.next,
      skipped: 0,
      items: [],
      hash: 'late',
      done: false,
    },
  ])
  return outcome!.ok
}

type StoppedWorker = {
  readonly worker: Worker
  readonly target: Target
  readonly stoppedAt: number
}

/** Stops the worker that waits longest for the site. Continues it if it holds the write lock of the database. */
async function stopWorker(context: ScenarioContext): Promise<StoppedWorker | null> {
  const { snapshot, site, store, run, reporter, over } = context
  const { workers, held, run: now } = await snapshot()
  const waits = (worker: Worker): number => site.remainingMs(held.get(worker.id)?.key ?? '')
  const [worker] = workers.toSorted((a, b) => waits(b) - waits(a))
  const target = worker && held.get(worker.id)
  if (!target || waits(worker) < MIN_WAIT_MS) return null
  const stoppedAt = performance.now()
  if (!sendSignal(worker, 'SIGSTOP')) return null
  // Its heartbeat may have been inside a write, and SQLite has one writer at a time.
  const isFree = await Promise.race([
    store.setPolicy(run, now.policy).then(() => true),
    REAL_CLOCK.sleep(LOCK_PROBE_MS, over).then(() => false),
  ])
  if (!isFree) {
    sendSignal(worker, 'SIGCONT')
    return null
  }
  reporter.mark(worker.id, 'stopped')
  return { worker, target, stoppedAt }
}

function sendSignal({ process: { pid } }: Worker, name: NodeJS.Signals): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false
  }
}
