import {
  decideSourceLock,
  type SourceLockDecision,
  type LockHolder,
} from '../decide/source-lock.ts'
import { isProvenDead, assessLiveness, TRUSTED_OBSERVER } from '../decide/liveness.ts'
import { AlreadyRunningError } from '../model/errors.ts'
import type { SourceLock } from '../model/source-lock.ts'
import type { WorkerId } from '../model/id.ts'
import { humanizeDuration, iso } from '../model/time.ts'
import type { Worker } from '../model/worker.ts'
import { isLocalProcess } from '../host/identity.ts'
import type { LockSourceRequest, Store } from '../store/store.ts'
import { REAL_CLOCK, type Clock } from '../host/clock.ts'
import { endTree } from '../host/end-tree.ts'
import { signalAll } from '../host/process-tree.ts'
import { waitForHeartbeats } from './recover.ts'

/** A guard, whoever has it, and what that means for whoever wants it. */
export type SourceLockState = {
  readonly lock: SourceLock
  readonly holder: (LockHolder & { readonly worker: Worker }) | null
  readonly advice: SourceLockDecision
}

/** Looks at who has it. Missing heartbeats are believed only after watching for a while: an outage may just be over. */
export async function inspectSourceLock(store: Store, lock: SourceLock): Promise<SourceLockState> {
  let state = await inspectOnce(store, lock)
  const canTake = state.advice.action === 'end-tree' || state.advice.action === 'take'
  if (state.holder && canTake && !isProvenDead(state.holder.evidence)) {
    state = await inspectOnce(store, lock, await waitForHeartbeats(store))
  }
  return state
}

async function inspectOnce(
  store: Store,
  lock: SourceLock,
  observer = TRUSTED_OBSERVER,
): Promise<SourceLockState> {
  const observations = lock.worker === null ? [] : await store.observations()
  const found = observations.find(({ worker }) => worker.id === lock.worker)
  const holder = found
    ? {
        ...found,
        assessment: assessLiveness(found.evidence, observer),
        isLocal: isLocalProcess(found.worker.process),
      }
    : null
  return { lock, holder, advice: decideSourceLock(lock, holder) }
}

export type AcquireOptions = {
  /** Somebody has it: throws, or resolves when it is worth asking again. */
  readonly onBusy: (state: SourceLockState) => Promise<void>
  readonly log: (message: string) => void
  /** The process that holds it for the asker: not to be taken for a part of an earlier copy. */
  readonly spare?: number | undefined
  readonly clock?: Clock
}

/** An orphaned command has nobody left to report to: it gets a moment to close what it has open. */
const ORPHAN_GRACE_MS = 5_000

/**
 * Afterwards the worker holds the source's guard, and no process of an earlier copy runs on this machine. The guard comes
 * first: only who holds it may end what carries the source's cookie, or two who start at once would end each other's.
 */
export async function acquireSourceLock(
  store: Store,
  request: Omit<LockSourceRequest, 'takeOverFrom'>,
  options: AcquireOptions,
): Promise<SourceLock> {
  const { onBusy, log } = options
  for (;;) {
    const lock = await store.lockSource(request)
    if (lock.worker === request.worker) return endEarlierProcesses(lock, request, options)
    const state = await inspectSourceLock(store, lock)
    const { advice, holder } = state
    if (advice.action !== 'take' && advice.action !== 'end-tree') {
      await onBusy(state)
      continue
    }
    const instead = holder && { worker: holder.worker.id, heartbeats: holder.worker.heartbeats }
    const acquired = await store.lockSource({
      ...request,
      ...(instead && { takeOverFrom: instead }),
    })
    if (acquired.worker !== request.worker) continue
    log(`took over ${request.source}: ${advice.because}`)
    if (advice.action === 'end-tree' && holder) killHolder(holder.worker)
    return endEarlierProcesses(acquired, request, options)
  }
}

async function endEarlierProcesses(
  lock: SourceLock,
  { killTimeoutMs }: Pick<LockSourceRequest, 'killTimeoutMs'>,
  { log, spare, clock = REAL_CLOCK }: AcquireOptions,
): Promise<SourceLock> {
  const killed = await endTree(
    { processTag: lock.processTag, exclude: spare },
    {
      killTimeoutMs: Math.min(killTimeoutMs, ORPHAN_GRACE_MS),
      clock,
      onUnkillable: (pids) =>
        log(`still waiting for processes of an earlier copy to end: ${pids.join(', ')}`),
    },
  )
  if (killed > 0) {
    log(`ended ${killed} ${killed === 1 ? 'process' : 'processes'} that an earlier copy had left`)
  }
  return lock
}

/** A watchdog that was silent for a whole lease: whatever it still does would come too late. */
function killHolder({ process: { pid, startTicks } }: Worker): void {
  if (startTicks !== null) signalAll([{ pid, startTicks }], 'SIGKILL')
}

/** For who wants to begin a run and not to wrap a command: takes a dead holder's guard out of the way, else throws. */
export async function clearStaleLock(
  store: Store,
  lock: SourceLock,
  worker: WorkerId,
): Promise<void> {
  const { source, killTimeoutMs, processTag } = lock
  await acquireSourceLock(
    store,
    { source, worker, killTimeoutMs, processTag },
    { onBusy: (state) => Promise.reject(alreadyRunningError(state)), log: () => {} },
  )
  await store.unlockSource({ source, worker })
}

export function alreadyRunningError({ lock, advice }: SourceLockState): AlreadyRunningError {
  const since = lock.since === null ? '' : `since ${iso(lock.since)}, `
  return new AlreadyRunningError(lock.source, null, `a command wrapped ${since}${advice.because}`)
}

/** In words, for somebody who waits. */
export function describeHolder({ lock, advice }: SourceLockState, now: number): string {
  const since = lock.since === null ? '' : ` for ${humanizeDuration(now - lock.since)}`
  return `${lock.source} is running${since}: ${advice.because}`
}
