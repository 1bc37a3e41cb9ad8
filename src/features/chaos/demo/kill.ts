import process from 'node:process'
import { shortId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Worker } from '../../../core/model/worker.ts'
import type { Store } from '../../../core/store/store.ts'
import { pollUntil } from './pause.ts'
import type { Kill, Recovery, ScenarioContext } from './scenario-context.ts'

const HELD_MAX = 100
const POLL_MS = 25
const TIMEOUT_MS = 20_000
/**
 * Who keeps dying right after its start is started again with a pause. That is the restart policy and not recovery,
 * so those who have only just come are spared while there are others.
 */
const MIN_AGE_MS = 5_000

/** kill -9 of a worker by the dice, and the wait until somebody has taken up what it had in hand. */
export async function killWorker(context: ScenarioContext): Promise<Kill | null> {
  const { store, reporter, over } = context
  const killed = await pollUntil(() => killRandomWorker(context), {
    everyMs: 50,
    timeoutMs: TIMEOUT_MS,
    signal: over,
  })
  if (!killed) return null
  const { id: worker } = killed.worker
  const held = (await store.claimsOf(worker, null, HELD_MAX)).map(({ target }) => target)
  reporter.mark(worker, 'killed')
  const [first] = held
  if (!first) {
    reporter.log(`kill -9 ${shortId(worker)}, which had nothing in hand`)
    return { at: killed.at, worker, recoveries: [] }
  }
  const what = `kill -9 ${shortId(worker)} on page ${first.page + 1} of ${first.key}`
  const event = reporter.start(what, 'nobody has its target now …')
  const ends = await Promise.all(held.map((target) => waitForRecovery(context, target, killed.at)))
  const recoveries = ends.filter((end) => end !== null)
  const [taken] = recoveries
  event.end(
    taken
      ? `taken up by ${shortId(taken.by)} after ${taken.takenUpMs} ms`
      : 'it had just handed it in, nothing was left to take up',
  )
  return { at: killed.at, worker, recoveries }
}

/** One of those who have something in hand; null while there is nobody. */
async function killRandomWorker(
  context: ScenarioContext,
): Promise<{ worker: Worker; at: Millis } | null> {
  const { workers, held } = await context.snapshot()
  // Taken before the kill: the time until recovery can come out too long by this, never too short.
  const at = await context.store.now()
  const busy = workers.filter((worker) => held.has(worker.id))
  const settled = busy.filter((worker) => at - worker.startedAt > MIN_AGE_MS)
  const candidates = settled.length > 0 ? settled : busy
  if (candidates.length === 0) return null
  const worker = context.random.pick(candidates)
  try {
    process.kill(worker.process.pid, 'SIGKILL')
    return { worker, at }
  } catch {
    return null
  }
}

/** Null when nothing had to be recovered: its last write had reached the database after all. */
async function waitForRecovery(
  { store, over }: ScenarioContext,
  orphan: Target,
  killedAt: Millis,
): Promise<Recovery | null> {
  const ended = await pollUntil(() => readRecovery(store, orphan, killedAt), {
    everyMs: POLL_MS,
    timeoutMs: TIMEOUT_MS,
    signal: over,
  })
  if (ended) return ended.recovery
  // Never taken up, as far as we waited: that counts, and it is far too long.
  const never = { claimableMs: TIMEOUT_MS, takenUpMs: TIMEOUT_MS, by: orphan.worker! }
  return over.aborted ? null : never
}

async function readRecovery(
  store: Store,
  orphan: Target,
  killedAt: Millis,
): Promise<{ recovery: Recovery | null } | null> {
  const now = await store.target(orphan.id)
  if (!now) return null
  if (now.epoch > orphan.epoch) {
    const takenUpMs = Math.round(now.claimedAt! - killedAt)
    const trail = await store.audit({ run: orphan.run, target: orphan.id, limit: 1_000 })
    const takenBack = trail.find(({ at }) => at >= killedAt)
    const claimableMs = takenBack ? Math.round(takenBack.at - killedAt) : takenUpMs
    return { recovery: { claimableMs, takenUpMs, by: now.worker! } }
  }
  const endedByItself = now.status === 'done' || now.errors > orphan.errors
  return endedByItself ? { recovery: null } : null
}
