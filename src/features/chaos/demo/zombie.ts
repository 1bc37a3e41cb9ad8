import process from 'node:process'
import { shortId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import { humanizeDuration } from '../../../core/model/time.ts'
import type { Worker } from '../../../core/model/worker.ts'
import { pause, pollUntil } from '../poll.ts'
import type { ScenarioContext, Zombie } from './scenario.ts'

const TIMEOUT_MS = 20_000
/** A page that still takes this long: its worker waits for the site, and is not inside a commit. */
const MIN_WAIT_MS = 120
const LOCK_PROBE_MS = 400

/**
 * Stops a worker (SIGSTOP) during a page for longer than its lease; another takes over its target. Then continues it
 * (SIGCONT): it writes its page, and the fence must refuse that.
 */
export async function runZombie(context: ScenarioContext): Promise<Zombie | null> {
  const { reporter, over, store, snapshot } = context
  const found = await pollUntil(() => stopWorker(context), {
    everyMs: 20,
    timeoutMs: TIMEOUT_MS,
    signal: over,
  })
  if (!found) return null
  const { worker, target, stoppedAt } = found
  const who = shortId(worker.id)
  const what = `SIGSTOP ${who} on page ${target.page + 1} of ${target.key}`
  const event = reporter.start(what, 'no heartbeats, its lease runs out …')
  try {
    const taken = await pollUntil(async () => takenOver(await store.target(target.id), target), {
      everyMs: 50,
      timeoutMs: TIMEOUT_MS,
      signal: over,
    })
    const refusedBefore = (await snapshot()).run.counts.refused
    const silentMs = performance.now() - stoppedAt
    event.end(
      taken
        ? `taken over by ${shortId(taken.worker!)} after ${humanizeDuration(silentMs)}`
        : 'no worker took over',
    )
    resume(worker)
    reporter.mark(worker.id, null)
    if (!taken) return { silentMs, refused: 0 }
    return await waitForRefusal(context, { who, silentMs, refusedBefore })
  } finally {
    // No process stays stopped, whatever happens.
    resume(worker)
  }
}

async function waitForRefusal(
  { snapshot, reporter, over }: ScenarioContext,
  { who, silentMs, refusedBefore }: { who: string; silentMs: number; refusedBefore: number },
): Promise<Zombie> {
  const event = reporter.start(`SIGCONT ${who}`, 'it continues with its old claim …')
  const refusals = async (): Promise<number> =>
    (await snapshot()).run.counts.refused - refusedBefore
  await pollUntil(async () => (await refusals()) > 0, {
    everyMs: 50,
    timeoutMs: TIMEOUT_MS,
    signal: over,
  })
  const refused = await refusals()
  event.end(
    refused > 0
      ? 'it continued with its old claim, and its late write was refused'
      : 'it wrote nothing',
  )
  return { silentMs, refused }
}

type StoppedWorker = {
  readonly worker: Worker
  readonly target: Target
  readonly stoppedAt: number
}

/** Stops the worker that waits longest for the site. Continues it if it holds the write lock of the database. */
async function stopWorker({
  snapshot,
  site,
  store,
  run,
  reporter,
  over,
}: ScenarioContext): Promise<StoppedWorker | null> {
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
    pause(LOCK_PROBE_MS, over).then(() => false),
  ])
  if (!isFree) {
    resume(worker)
    return null
  }
  reporter.mark(worker.id, 'stopped')
  return { worker, target, stoppedAt }
}

function takenOver(now: Target | null, before: Target): Target | null {
  return now && now.epoch > before.epoch && now.worker !== before.worker ? now : null
}

function resume(worker: Worker): void {
  sendSignal(worker, 'SIGCONT')
}

function sendSignal({ process: { pid } }: Worker, name: 'SIGSTOP' | 'SIGCONT'): boolean {
  try {
    process.kill(pid, name)
    return true
  } catch {
    return false
  }
}
