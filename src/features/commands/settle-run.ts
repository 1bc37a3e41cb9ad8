import { constants } from 'node:os'
import { shellExitCode, type CycleExit, type ExitOutcome } from './ending.ts'
import type { Claim } from '../../core/model/claim.ts'
import { LeaseLostError, StoppingError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { newId, type RunId } from '../../core/model/id.ts'
import { isLive, type Run } from '../../core/model/run.ts'
import { withRetry } from '../../core/store/open.ts'
import type { HeldTarget, Store } from '../../core/store/store.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { decide } from '../../core/decide/recovery.ts'
import { makePolicyOf } from '../../core/model/policy-of.ts'
import { CLAIMS_MAX, hasProgress, runSnapshot, targetSnapshot } from '../../core/recovery/assess.ts'
import { makeOperatorContext, type OperatorContext } from '../../core/recovery/context.ts'
import { recover } from '../../core/recovery/recover.ts'
import type { RunHandle } from '../../core/worker/run-handle.ts'
import type { ManagedProcessExit } from './watchdog.ts'
import type { RunnerOptions } from './runner.ts'
import { COMMAND_STORE } from './store/store.ts'

export type CycleResult = {
  readonly run: RunId
  readonly end: CycleExit
  readonly exitCode: number
  /** Stopped on request, with work remaining. */
  readonly isStopped: boolean
  /** The run can be resumed. */
  readonly canResume: boolean
  readonly isLeaseLost: boolean
  readonly because: string
}

/** A command that ended, and its run. */
export type EndedCommand = {
  readonly handle: RunHandle
  readonly claim: Claim
  /** The run when the command started. */
  readonly runBefore: Run
  readonly execution: string
  readonly ending: ExitOutcome
  readonly exit: ManagedProcessExit
  /** With nothing done its run is retried by the policy, instead of failed for a supervisor that decides. */
  readonly isRetried: boolean
}

/** Settles the run, records how the command ended, and returns what this means for the next cycle. */
export async function settleCommand(
  options: RunnerOptions,
  ended: EndedCommand,
  uptimeMs: number,
): Promise<CycleResult> {
  const { handle, runBefore, execution, ending, exit } = ended
  await settleRun(options, ended)
  await recordExecutionEnd(options.store, execution, exit, ending.because)
  const after = await withRetry(() => options.store.run(handle.id))
  const isStopped = ending.run === 'release'
  const commandExitCode = shellExitCode(exit, constants.signals)
  return {
    run: handle.id,
    end: {
      outcome: outcomeOf(after),
      uptimeMs,
      progressed: after !== null && progressAmount(after) > progressAmount(runBefore),
    },
    exitCode: isStopped ? EXIT.resumable : commandExitCode || runExitCode(after),
    isStopped,
    canResume: after !== null && isLive(after.status),
    isLeaseLost: ending.run === 'lost',
    because: ending.because,
  }
}

async function settleRun(options: RunnerOptions, ended: EndedCommand): Promise<void> {
  const { handle, claim, ending, exit } = ended
  const { store } = options
  // The command ended its run with its last call and did not wait for the response.
  if (handle.ended) return
  try {
    switch (ending.run) {
      case 'settled':
      case 'lost':
        return
      case 'orphan':
        await withRetry(() => recover(runnerContext(options), { sources: [handle.source] }))
        return
      case 'succeed':
        await handle.succeed()
        return
      case 'release':
      case 'cancelled':
        await withRetry(() => store.reportActivity(claim, exit.artifacts))
        await withRetry(() => handle.release())
        return
      case 'crash':
      case 'killed':
        await withRetry(() => store.reportActivity(claim, exit.artifacts))
        await settleCrash(options, ended)
    }
  } catch (error) {
    // Settled meanwhile, by an operator or the command's own last call.
    if (!(error instanceof LeaseLostError)) throw error
  }
}

export async function recordExecutionEnd(
  store: Store,
  execution: string,
  { exitCode, signal, artifacts, peakMemory }: ManagedProcessExit,
  because: string,
): Promise<void> {
  const end = { exitCode, signal, because, artifacts, peakMemory }
  const executions = await store.extend(COMMAND_STORE)
  await withRetry(async () => executions.endExecution(execution, { at: await store.now(), ...end }))
}

const STOP_MS = 10_000
const FORCE_MS = 3_000

/**
 * Waits for work that may hang on an unreachable database. Throws `StoppingError` some time after `stop` or `force` fired;
 * what is left is recovered later.
 */
export async function withStopDeadline<T>(
  work: Promise<T>,
  stop: AbortSignal,
  force: AbortSignal,
): Promise<T> {
  const done = new AbortController()
  const limit = new Promise<never>((_, reject) => {
    const within = async (ms: number): Promise<void> => {
      await REAL_CLOCK.sleep(ms, done.signal)
      reject(new StoppingError('the database did not answer in time'))
    }
    const when = (signal: AbortSignal, ms: number): void => {
      const once = { once: true, signal: done.signal }
      if (signal.aborted) void within(ms)
      else signal.addEventListener('abort', () => void within(ms), once)
    }
    when(stop, STOP_MS)
    when(force, FORCE_MS)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    done.abort()
  }
}

/** Reads the outcome from the run, however it was settled. */
function outcomeOf(run: Run | null): CycleExit['outcome'] {
  if (run?.status === 'succeeded' || run?.status === 'cancelled') return run.status
  return (run?.counts.targets.parked ?? 0) > 0 ? 'parked' : 'failed'
}

/** The exit code for a command that ended with 0 but reported a failure or a retry over its API. */
function runExitCode(run: Run | null): number {
  if (run?.status === 'failed') return EXIT.failed
  return run && isLive(run.status) ? EXIT.resumable : EXIT.done
}

/** Returns the sum of everything that counts as progress. */
function progressAmount({ counts, progress, artifacts }: Run): number {
  const { pages, itemsNew, itemsUpdated, skipped } = counts
  return pages + itemsNew + itemsUpdated + skipped + artifacts + (progress?.done ?? 0)
}

/** How a runner assesses and recovers runs: with the policies of the config. */
export function runnerContext({ store, actor, overrides }: RunnerOptions): OperatorContext {
  const policyOf = makePolicyOf(overrides)
  const clock = REAL_CLOCK
  return makeOperatorContext({ store, actor, policyOf, observer: TRUSTED_OBSERVER, clock })
}

const ATTEMPTS_MAX = 10

/**
 * Settles the run of a crashed command like that of a dead worker: same decision, same audit entry. Without progress and
 * `isRetried` the run fails with the command's own error.
 */
async function settleCrash(
  { store, actor }: Pick<RunnerOptions, 'store' | 'actor'>,
  { handle, claim, ending: { because }, isRetried }: EndedCommand,
): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
    const held = await withRetry(() => findClaimedTarget(store, claim))
    // Another process claimed it, or it was cancelled.
    if (!held) break
    if (!isRetried && !hasProgress(held.run)) return handle.fail(because)
    const isApplied = await withRetry(() => applyVerdict(store, actor, held, because))
    if (isApplied) break
    // The worker sent a heartbeat meanwhile: try again with new evidence.
  }
  await withRetry(() => store.settle(handle.id, true))
}

async function findClaimedTarget(store: Store, claim: Claim): Promise<HeldTarget | undefined> {
  const held = await store.claimsOf(claim.worker, null, CLAIMS_MAX)
  return held.find(({ target }) => target.id === claim.target && target.claimId === claim.claimId)
}

async function applyVerdict(
  store: Store,
  actor: string,
  held: HeldTarget,
  because: string,
): Promise<boolean> {
  const [now, observations] = await Promise.all([store.now(), store.observations()])
  const evidence = observations.find(({ worker }) => worker.id === held.target.worker)?.evidence
  if (!evidence) return false
  const owner = { liveness: 'gone', because: `its command ended: ${because}` } as const
  const snapshot = { run: runSnapshot(held.run), target: targetSnapshot(held.target), owner }
  const decision = decide(snapshot, held.run.policy, now)
  const verdict = { held, decision, liveness: owner.liveness, evidence, newRun: newId() }
  const [applied] = await store.applyVerdicts([verdict], actor)
  return applied === true
}
