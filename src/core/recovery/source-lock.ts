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
import type { ProcessIdentity, Worker } from '../model/worker.ts'
import { isLocalProcess } from '../host/identity.ts'
import type { LockSourceRequest, Store, WorkerObservation } from '../store/store.ts'
import { REAL_CLOCK, type Clock } from '../host/clock.ts'
import { waitForHeartbeats } from './recover.ts'

/** A source lock, its holder, and what the holder's state means for a process that wants the lock. */
export type SourceLockState = {
  readonly lock: SourceLock
  readonly holder: (LockHolder & { readonly worker: Worker }) | null
  readonly advice: SourceLockDecision
}

/**
 * Assesses the holder. Missing heartbeats count only after watching for a while: an outage may have just ended.
 * `observations`: read after the lock, if they were already.
 */
export async function inspectSourceLock(
  store: Store,
  lock: SourceLock,
  observations?: readonly WorkerObservation[],
): Promise<SourceLockState> {
  if (lock.worker === null) return assessSourceLock(lock, [])
  const state = assessSourceLock(lock, observations ?? (await store.observations()))
  if (!state.holder || !canBeTaken(state) || isProvenDead(state.holder.evidence)) return state
  const observer = await waitForHeartbeats({ store, clock: REAL_CLOCK })
  return assessSourceLock(lock, await store.observations(), observer)
}

/** Returns true if the holder is dead, as far as can be known: another process may take the lock. */
export function canBeTaken({ advice }: SourceLockState): boolean {
  return advice.action === 'end-tree' || advice.action === 'take'
}

export function assessSourceLock(
  lock: SourceLock,
  observations: readonly WorkerObservation[],
  observer = TRUSTED_OBSERVER,
): SourceLockState {
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

/** Ends the processes of wrapped commands on this machine. */
export type CommandProcesses = {
  /** Ends all processes with the tag except `exclude`. Returns how many had to be killed. */
  end(
    tree: { readonly processTag: string; readonly exclude?: number | undefined },
    options: {
      readonly killTimeoutMs: number
      readonly clock: Clock
      readonly onUnkillable: (pids: readonly number[]) => void
    },
  ): Promise<number>
  /** Kills one process, unless its id belongs to another process by now. */
  kill(process: ProcessIdentity): void
}

export type AcquireOptions = {
  readonly processes: CommandProcesses
  /** Called while another process holds the lock. Throws to give up, or resolves to try again. */
  readonly onBusy: (state: SourceLockState) => Promise<void>
  readonly log: (message: string) => void
  /** The process that will hold the lock: not to be ended as part of an earlier copy. */
  readonly spare?: number | undefined
  readonly clock?: Clock
}

/** Kill timeout of an orphaned command. */
const ORPHAN_GRACE_MS = 5_000

/**
 * Acquires the lock of a source, then ends all processes of an earlier copy on this machine. In this order, so that two
 * processes that start at once do not end each other's commands.
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
    if (!canBeTaken(state)) {
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
    // A watchdog without heartbeats for a whole lease: whatever it still does comes too late.
    if (advice.action === 'end-tree' && holder) options.processes.kill(holder.worker.process)
    return endEarlierProcesses(acquired, request, options)
  }
}

async function endEarlierProcesses(
  lock: SourceLock,
  { killTimeoutMs }: Pick<LockSourceRequest, 'killTimeoutMs'>,
  { processes, log, spare, clock = REAL_CLOCK }: AcquireOptions,
): Promise<SourceLock> {
  const killed = await processes.end(
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

/** Unlocks a source whose holder is dead, for a program that begins a run itself. Otherwise throws. */
export async function clearStaleLock(
  store: Store,
  lock: SourceLock,
  worker: WorkerId,
  processes: CommandProcesses,
): Promise<void> {
  const { source, killTimeoutMs, processTag } = lock
  await acquireSourceLock(
    store,
    { source, worker, killTimeoutMs, processTag },
    {
      processes,
      onBusy: (state) => Promise.reject(alreadyRunningError(state)),
      log: () => {},
    },
  )
  await store.unlockSource({ source, worker })
}

export function alreadyRunningError({ lock, advice }: SourceLockState): AlreadyRunningError {
  const since = lock.since === null ? '' : `since ${iso(lock.since)}, `
  const owner = `a command wrapped ${since}${advice.because}`
  return new AlreadyRunningError(lock.source, null, { owner })
}

/** Describes the holder for a process that waits. */
export function describeHolder({ lock, advice }: SourceLockState, now: number): string {
  const since = lock.since === null ? '' : ` for ${humanizeDuration(now - lock.since)}`
  return `${lock.source} is running${since}: ${advice.because}`
}
