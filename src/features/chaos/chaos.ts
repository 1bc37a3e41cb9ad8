import { join } from 'node:path'
import process from 'node:process'
import { pollUntil } from './poll.ts'
import type { Store } from '../../core/store/store.ts'
import { compare } from './compare.ts'
import { readOutcome } from './outcome.ts'
import { runReference, type Reference } from './reference.ts'
import { makeReport, type Report } from './report.ts'
import { makeScratch, type PhaseContext, type Scratch } from './scratch.ts'
import { DEFAULT_KILLS, ChaosRunner, type InjectionResult } from './runner.ts'
import { ProcessRuns } from './process-run.ts'
import type { Problem, Trial } from './trial.ts'
import { INSPECTION_STORE } from '../inspection/store/store.ts'

export type ChaosResult = {
  /** Null when there was no reference to compare with. */
  readonly report: Report | null
  readonly problems: readonly Problem[]
  readonly kills: InjectionResult['kills']
  readonly engine: Store['engine']
  /** What is left to inspect; null when it was removed. */
  readonly kept: KeptData | null
}

export type KeptData = {
  readonly folder: string
  /** Each phase that was started, with the address of its database; null when that was dropped. */
  readonly phases: readonly {
    readonly phase: PhaseContext['phase']
    readonly address: string | null
  }[]
  /** Left on the server. */
  readonly databases: readonly string[]
}

/** A worker that is to stop gets 25 s. */
const EXIT_TIMEOUT_MS = 30_000
const POLL_MS = 50

/**
 * Runs the command without kills, then with kills, each in a database of its own, and compares the two. Leaves no process
 * behind. Returns null when it was interrupted: then nothing else is left either.
 */
export async function runChaos(trial: Trial): Promise<ChaosResult | null> {
  const scratch = makeScratch(trial.server)
  const processes = new ProcessRuns(trial.command)
  const atExit = (): void => {
    processes.killNow()
    scratch.removeFolder()
  }
  process.once('exit', atExit)
  let result: MutableResult | null = null
  try {
    result = await runPhases(trial, scratch, processes)
    if (trial.interrupted.aborted) result = null
  } finally {
    trial.progress.close()
    await processes.killAll()
    await scratch.close()
    if (result === null || !trial.keep) await scratch.dropDatabases()
    const isKept = result !== null && (trial.keep || result.problems.length > 0)
    if (!isKept) scratch.removeFolder()
    process.off('exit', atExit)
    if (result && isKept) result.kept = keptOf(scratch, result.phases)
  }
  return result
}

type MutableResult = { -readonly [K in keyof ChaosResult]: ChaosResult[K] } & {
  phases: readonly PhaseContext[]
}

async function runPhases(
  trial: Trial,
  scratch: Scratch,
  processes: ProcessRuns,
): Promise<MutableResult | null> {
  const referencePhase = await scratch.open('reference')
  const resultOf = (phases: readonly PhaseContext[]): MutableResult => {
    const { engine } = referencePhase.store
    return { report: null, problems: [], kills: [], engine, kept: null, phases }
  }
  const reference = await runReference(trial, referencePhase, processes)
  if (reference === null) return null
  if ('what' in reference) return { ...resultOf([referencePhase]), problems: [reference] }
  await waitForExit(processes, trial)
  await processes.killAll()

  const killsPhase = await scratch.open('kills')
  const injection = await new ChaosRunner(trial, killsPhase, processes, reference).run()
  if (trial.interrupted.aborted) return null
  const leftBehind = injection.problem ? 0 : await waitForExit(processes, trial)
  await processes.killAll()
  const report = await buildReport(trial, reference, killsPhase, injection, leftBehind)
  return {
    ...resultOf([referencePhase, killsPhase]),
    report,
    problems: report.problems,
    kills: injection.kills,
  }
}

async function buildReport(
  trial: Trial,
  reference: Reference,
  phase: PhaseContext,
  injection: InjectionResult,
  leftBehind: number,
): Promise<Report> {
  const { kills, forMs, output, ignoreData } = trial
  const path = output === undefined ? null : join(phase.outputDir, output)
  const result = await readOutcome(phase.store, path)
  return makeReport({
    reference: reference.outcome,
    referenceMs: reference.tookMs,
    result,
    differences: compare(reference.outcome, result, { ignoreData }),
    injection,
    killsAsked: kills ?? (forMs === undefined ? DEFAULT_KILLS : null),
    inspection: await (await phase.store.extend(INSPECTION_STORE)).inspect(),
    leftBehind,
  })
}

/** Waits for processes that outlive the command, such as those whose parent was killed. Returns how many are left. */
async function waitForExit(processes: ProcessRuns, { interrupted }: Trial): Promise<number> {
  await pollUntil(async () => processes.remaining() === 0, {
    everyMs: POLL_MS,
    timeoutMs: EXIT_TIMEOUT_MS,
    signal: interrupted,
  })
  return processes.remaining()
}

function keptOf({ folder, databases }: Scratch, phases: readonly PhaseContext[]): KeptData {
  return {
    folder,
    databases,
    phases: phases.map(({ phase, address, store: { engine } }) => ({
      phase,
      address: engine === 'sqlite' || databases.length > 0 ? address : null,
    })),
  }
}
