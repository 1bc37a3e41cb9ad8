import process from 'node:process'
import { shortId } from '../../../core/model/id.ts'
import type { Target } from '../../../core/model/target.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Worker } from '../../../core/model/worker.ts'
import { pollUntil } from '../poll.ts'
import { readRecovery, type Recovery } from '../recovery-tracker.ts'
import type { Kill, ScenarioContext } from './scenario.ts'

const HELD_MAX = 100
const POLL_MS = 25
const TIMEOUT_MS = 20_000
/**
 * A worker that dies right after its start is restarted with a delay. That delay is the restart policy and not
 * recovery, so younger workers are spared while there are others.
 */
const MIN_AGE_MS = 5_000

/** Kills a random worker with SIGKILL, and waits until another has claimed what it held. */
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
    reporter.log(`kill -9 ${shortId(worker)}, which held no target`)
    return { at: killed.at, worker, recoveries: [] }
  }
  const what = `kill -9 ${shortId(worker)} on page ${first.page + 1} of ${first.key}`
  const event = reporter.start(what, 'its target has no worker now …')
  const ends = await Promise.all(held.map((target) => waitForRecovery(context, target, killed.at)))
  const recoveries = ends.filter((end) => end !== null)
  const [taken] = recoveries
  event.end(
    taken
      ? `taken up by ${shortId(taken.by!)} after ${taken.takenUpMs} ms`
      : 'its last write had arrived, nothing was left to recover',
  )
  return { at: killed.at, worker, recoveries }
}

/** Kills one of the workers that hold a target; null while there is none. */
async function killRandomWorker(
  context: ScenarioContext,
): Promise<{ worker: Worker; at: Millis } | null> {
  const { workers, held } = await context.snapshot()
  // Read before the kill: the measured time can be too long by this, never too short.
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
  // Not claimed in time: reported as the full timeout, which is far too long.
  const timedOut = { claimableMs: TIMEOUT_MS, takenUpMs: TIMEOUT_MS, by: orphan.worker }
  return over.aborted ? null : { ...timedOut, because: null }
}
