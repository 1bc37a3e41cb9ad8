import { setTimeout as sleep } from 'node:timers/promises'
import type { ClaimedTarget } from '../model/claim.ts'
import { AlreadyDoneError, AlreadyRunningError, HeartbeatOverdueError } from '../model/errors.ts'
import { newId, type RunId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import { humanizeAgo, iso } from '../model/time.ts'
import { withRetry } from '../store/open.ts'
import type { BeginRequest, BeginResult, RunMove, Store } from '../store/store.ts'
import { clearStaleLock, type CommandProcesses } from '../recovery/source-lock.ts'
import { isLost, assessRun, type AssessedRun } from '../recovery/assess.ts'
import type { OperatorContext } from '../recovery/context.ts'
import { runMoveOf, recover } from '../recovery/recover.ts'
import type { HeartbeatClient } from '../heartbeat/client.ts'

const ATTEMPTS_MAX = 5

export type BeginOptions = Pick<BeginRequest, 'source' | 'worker' | 'policy'>

/**
 * Starts or resumes the source's run, atomically. The worker must send heartbeats. Throws `AlreadyRunningError` while a live
 * worker has the run. With a signal, an unreachable database is retried until the signal fires.
 */
export async function beginRun(
  context: OperatorContext & {
    readonly heartbeat: HeartbeatClient
    readonly processes: CommandProcesses
  },
  options: BeginOptions,
  signal?: AbortSignal,
): Promise<Extract<BeginResult, { resumed: boolean }>> {
  const { store, heartbeat, processes } = context
  const claimId = newId()
  const ids = { run: newId(), target: newId(), claimId }
  heartbeat.requested([claimId])
  try {
    for (let attempt = 1; ; attempt++) {
      // The ids stay the same, so that a retry after a lost reply finds its own run.
      const tryBegin = async (): Promise<BeginResult> => {
        const abandonFirst = await findDeadRun(context, options.source)
        const request = { ...options, ...ids, abandonFirst }
        return heartbeat.measure('claim', () => store.begin(request))
      }
      const begun = await (signal
        ? withRetry(tryBegin, signal)
        : retryWhileOverdue(tryBegin, options.policy))
      if (begun.claimed) {
        heartbeat.received([claimId], [begun.claimed])
        return begun
      }
      if ('sourceLock' in begun) {
        const { sourceLock } = begun
        await retryWhileOverdue(
          () => clearStaleLock(store, sourceLock, options.worker, processes),
          options.policy,
        )
        continue
      }
      const run = await store.run(begun.blockingRun)
      if (run) await recoverOrRefuse(context, run, attempt, options.worker)
    }
  } catch (error) {
    heartbeat.received([claimId], [])
    throw error
  }
}

/**
 * Claims a run again that recovery took from this worker while its heartbeats were missing. Returns null if another worker
 * has the run or its source by now, or if the run has ended.
 */
export async function reclaim(
  { store, heartbeat }: { readonly store: Store; readonly heartbeat: HeartbeatClient },
  options: BeginOptions,
  run: RunId,
  signal: AbortSignal,
): Promise<ClaimedTarget | null> {
  const claimId = newId()
  const ids = { run: newId(), target: newId(), claimId, onlyRun: run }
  heartbeat.requested([claimId])
  let claimed: ClaimedTarget | null = null
  try {
    const request = { ...options, ...ids }
    const tryBegin = () => heartbeat.measure('claim', () => store.begin(request))
    const begun = await withRetry(tryBegin, signal)
    claimed = begun.claimed
    return claimed
  } finally {
    heartbeat.received([claimId], claimed ? [claimed] : [])
  }
}

/** Retries until the next heartbeat is accepted, for one lease at most: an outage may have just ended. */
async function retryWhileOverdue<T>(
  call: () => Promise<T>,
  { heartbeatMs, leaseMs }: Policy,
): Promise<T> {
  for (const deadline = performance.now() + leaseMs; ;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof HeartbeatOverdueError) || performance.now() > deadline) throw error
      await sleep(heartbeatMs / 4)
    }
  }
}

/** Throws `AlreadyDoneError` if a run of the source has succeeded: for jobs that a queue may deliver twice. */
export async function assertNotDone(store: Store, source: string): Promise<void> {
  const [done] = (await store.runs({ source, statuses: ['succeeded'], limit: 1 })).items
  if (done) throw new AlreadyDoneError(source, done.id, iso(done.finishedAt ?? done.lastActivityAt))
}

/** Returns the move that abandons the source's run if it is dead. The store applies it when it begins the new run. */
async function findDeadRun(context: OperatorContext, source: string): Promise<RunMove | undefined> {
  const run = await context.store.liveRun(source)
  if (!run || run.counts.targets.in_progress > 0) return undefined
  const assessed = await assessRun(context, run)
  return assessed.decision.action === 'abandon' ? runMoveOf(context, assessed) : undefined
}

/** Recovers the run if its owner is lost, else throws `AlreadyRunningError`. */
async function recoverOrRefuse(
  context: OperatorContext,
  run: Run,
  attempt: number,
  self: string,
): Promise<void> {
  const assessed = await assessRun(context, run)
  const lost = assessed.owner !== null && isLost(assessed.owner.assessment)
  if (run.kind === 'single' && lost && attempt < ATTEMPTS_MAX) {
    await recover(context, { self })
    return
  }
  const owner = describeOwner(run, assessed, await context.store.now())
  throw new AlreadyRunningError(run.source, run.id, { owner, status: run.status })
}

function describeOwner(run: Run, { owner, decision }: AssessedRun, now: number): string {
  if (!owner) return `last activity ${humanizeAgo(now - run.lastActivityAt)}`
  return `since ${iso(run.startedAt ?? run.createdAt)}, ${decision.because}`
}
