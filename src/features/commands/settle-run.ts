import { constants } from 'node:os'
import { exitCodeOf, type Ending } from './ending.ts'
import type { CycleEnd } from './next-cycle.ts'
import type { Claim } from '../../core/model/claim.ts'
import { EXIT, LeaseLost, Stopping } from '../../core/model/errors.ts'
import type { RunId } from '../../core/model/id.ts'
import { isLive, type Run } from '../../core/model/run.ts'
import { whenAvailable } from '../../core/store/open.ts'
import type { Store } from '../../core/store/store.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { recover } from '../../core/recovery/recover.ts'
import type { RunHandle } from '../../core/worker/run-handle.ts'
import { settleCrash } from './crash.ts'
import type { WardEnd } from './watchdog-messages.ts'
import type { RunnerOptions } from './runner.ts'

export type CycleResult = {
  readonly run: RunId
  readonly end: CycleEnd
  readonly exitCode: number
  /** Stopped on request, with work left. */
  readonly isStopped: boolean
  /** Its run can go on. */
  readonly isLeft: boolean
  readonly isLost: boolean
  readonly because: string
}

/** A command that is over, and the run that is to be settled by it. */
export type Settling = {
  readonly handle: RunHandle
  readonly claim: Claim
  /** As it was when the command started. */
  readonly before: Run
  readonly execution: string
  readonly ending: Ending
  readonly over: WardEnd
}

/** Settles the run, keeps how the command ended, and says what it means for the next cycle. */
export async function settle(
  runner: RunnerOptions,
  settling: Settling,
  uptimeMs: number,
): Promise<CycleResult> {
  const { handle, before, execution, ending, over } = settling
  await settleRun(runner, settling)
  await recordEnd(runner.store, execution, over, ending.because)
  const after = await whenAvailable(() => runner.store.run(handle.id))
  const isStopped = ending.run === 'release'
  const ownCode = exitCodeOf(over, constants.signals)
  return {
    run: handle.id,
    end: {
      outcome: outcomeOf(after),
      uptimeMs,
      progressed: after !== null && amount(after) > amount(before),
    },
    exitCode: isStopped ? EXIT.resumable : ownCode || codeOf(after),
    isStopped,
    isLeft: after !== null && isLive(after.status),
    isLost: ending.run === 'lost',
    because: ending.because,
  }
}

async function settleRun(runner: RunnerOptions, settling: Settling): Promise<void> {
  const { handle, claim, ending, over } = settling
  const { store } = runner
  // It said so with its last breath, and did not wait for the answer.
  if (handle.isOver) return
  try {
    switch (ending.run) {
      case 'said':
      case 'lost':
        return
      case 'orphan':
        await whenAvailable(() => recover(runner, { sources: [handle.source] }))
        return
      case 'succeed':
        await handle.succeed()
        return
      case 'release':
      case 'cancelled':
        await whenAvailable(() => store.touch(claim, over.artifacts))
        await whenAvailable(() => handle.release())
        return
      case 'crash':
        await whenAvailable(() => store.touch(claim, over.artifacts))
        await settleCrash(runner, handle, claim, ending.because)
    }
  } catch (error) {
    // Somebody else has settled it meanwhile: a person, or the command's own last call.
    if (!(error instanceof LeaseLost)) throw error
  }
}

export async function recordEnd(
  store: Store,
  execution: string,
  { exitCode, signal, artifacts, peakMemory }: WardEnd,
  because: string,
): Promise<void> {
  const end = { exitCode, signal, because, artifacts, peakMemory }
  await whenAvailable(async () => store.endExecution(execution, { at: await store.now(), ...end }))
}

const STOP_MS = 10_000
const HURRY_MS = 3_000

/**
 * The database may be away. Whoever was asked to stop waits a while for it, who is in a hurry a moment, and no longer:
 * what is left is recovered by whoever comes next.
 */
export async function unlessHurried<T>(
  work: Promise<T>,
  stop: AbortSignal,
  hurry: AbortSignal,
): Promise<T> {
  const done = new AbortController()
  const limit = new Promise<never>((_, reject) => {
    const within = async (ms: number): Promise<void> => {
      await REAL_CLOCK.sleep(ms, done.signal)
      reject(new Stopping('the database did not answer in time'))
    }
    const when = (signal: AbortSignal, ms: number): void => {
      const once = { once: true, signal: done.signal }
      if (signal.aborted) void within(ms)
      else signal.addEventListener('abort', () => void within(ms), once)
    }
    when(stop, STOP_MS)
    when(hurry, HURRY_MS)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    done.abort()
  }
}

/** The run knows best what became of it, whoever has settled it. */
function outcomeOf(run: Run | null): CycleEnd['outcome'] {
  if (run?.status === 'succeeded' || run?.status === 'cancelled') return run.status
  return (run?.counts.targets.parked ?? 0) > 0 ? 'parked' : 'failed'
}

/** For a command that ended with 0, but said over its API that it has failed, or is to be started again. */
function codeOf(run: Run | null): number {
  if (run?.status === 'failed') return EXIT.failed
  return run && isLive(run.status) ? EXIT.resumable : EXIT.done
}

/** Of everything that counts as progress, added up: more of it is progress. */
function amount({ counts, progress, artifacts }: Run): number {
  const { pages, itemsNew, itemsUpdated, skipped } = counts
  return pages + itemsNew + itemsUpdated + skipped + artifacts + (progress?.done ?? 0)
}

export const NEVER_STARTED: WardEnd = {
  exitCode: null,
  signal: null,
  oomKills: 0,
  artifacts: 0,
  peakMemory: null,
  killed: 0,
}
