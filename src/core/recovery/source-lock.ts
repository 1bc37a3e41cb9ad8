import { decideGuard, type GuardAdvice, type Holder } from '../decide/source-lock.ts'
import { isProven, readSign, STEADY } from '../decide/liveness.ts'
import { AlreadyRunning } from '../model/errors.ts'
import type { Guard } from '../model/source-lock.ts'
import type { WorkerId } from '../model/id.ts'
import { inWords, iso } from '../model/time.ts'
import type { Worker } from '../model/worker.ts'
import { isHere } from '../host/identity.ts'
import type { HoldSource, Store } from '../store/store.ts'
import { REAL_CLOCK, type Clock } from '../host/clock.ts'
import { endTree } from '../host/end-tree.ts'
import { signalAll } from '../host/process-tree.ts'
import { listen } from './recover.ts'

/** A guard, whoever has it, and what that means for whoever wants it. */
export type SeenGuard = {
  readonly guard: Guard
  readonly holder: (Holder & { readonly worker: Worker }) | null
  readonly advice: GuardAdvice
}

/** Looks at who has it. Missing heartbeats are believed only after watching for a while: an outage may just be over. */
export async function lookAtGuard(store: Store, guard: Guard): Promise<SeenGuard> {
  let seen = await look(store, guard)
  const isTaken = seen.advice.action === 'end-tree' || seen.advice.action === 'take'
  if (seen.holder && isTaken && !isProven(seen.holder.evidence)) {
    seen = await look(store, guard, await listen(store))
  }
  return seen
}

async function look(store: Store, guard: Guard, judge = STEADY): Promise<SeenGuard> {
  const roll = guard.worker === null ? [] : await store.workers()
  const found = roll.find(({ worker }) => worker.id === guard.worker)
  const holder = found
    ? {
        ...found,
        reading: readSign(found.evidence, judge),
        isHere: isHere(found.worker.process),
      }
    : null
  return { guard, holder, advice: decideGuard(guard, holder) }
}

export type TakeOptions = {
  /** Somebody has it: throws, or resolves when it is worth asking again. */
  readonly onBusy: (seen: SeenGuard) => Promise<void>
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
export async function takeSource(
  store: Store,
  request: Omit<HoldSource, 'instead'>,
  options: TakeOptions,
): Promise<Guard> {
  const { onBusy, log } = options
  for (;;) {
    const guard = await store.holdSource(request)
    if (guard.worker === request.worker) return cleared(guard, request, options)
    const seen = await lookAtGuard(store, guard)
    const { advice, holder } = seen
    if (advice.action !== 'take' && advice.action !== 'end-tree') {
      await onBusy(seen)
      continue
    }
    const instead = holder && { worker: holder.worker.id, beats: holder.worker.beats }
    const taken = await store.holdSource({ ...request, ...(instead && { instead }) })
    if (taken.worker !== request.worker) continue
    log(`took over ${request.source}: ${advice.because}`)
    if (advice.action === 'end-tree' && holder) endHolder(holder.worker)
    return cleared(taken, request, options)
  }
}

async function cleared(
  guard: Guard,
  { killTimeoutMs }: Pick<HoldSource, 'killTimeoutMs'>,
  { log, spare, clock = REAL_CLOCK }: TakeOptions,
): Promise<Guard> {
  const killed = await endTree(
    { cookie: guard.cookie, spare },
    {
      killTimeoutMs: Math.min(killTimeoutMs, ORPHAN_GRACE_MS),
      clock,
      onStubborn: (pids) =>
        log(`still waiting for processes of an earlier copy to end: ${pids.join(', ')}`),
    },
  )
  if (killed > 0) {
    log(`ended ${killed} ${killed === 1 ? 'process' : 'processes'} that an earlier copy had left`)
  }
  return guard
}

/** A guardian that was silent for a whole lease: whatever it still does would come too late. */
function endHolder({ process: { pid, startTicks } }: Worker): void {
  if (startTicks !== null) signalAll([{ pid, startTicks }], 'SIGKILL')
}

/** For who wants to begin a run and not to wrap a command: takes a dead holder's guard out of the way, else throws. */
export async function clearGuard(store: Store, guard: Guard, worker: WorkerId): Promise<void> {
  const { source, killTimeoutMs, cookie } = guard
  await takeSource(
    store,
    { source, worker, killTimeoutMs, cookie },
    { onBusy: (seen) => Promise.reject(alreadyRunning(seen)), log: () => {} },
  )
  await store.freeSource({ source, worker })
}

export function alreadyRunning({ guard, advice }: SeenGuard): AlreadyRunning {
  const since = guard.since === null ? '' : `since ${iso(guard.since)}, `
  return new AlreadyRunning(guard.source, null, `a command wrapped ${since}${advice.because}`)
}

/** In words, for somebody who waits. */
export function describeBusy({ guard, advice }: SeenGuard, now: number): string {
  const since = guard.since === null ? '' : ` for ${inWords(now - guard.since)}`
  return `${guard.source} is running${since}: ${advice.because}`
}
