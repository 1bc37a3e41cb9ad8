import { join } from 'node:path'
import process from 'node:process'
import { pollUntil } from './poll.ts'
import { compare } from './compare.ts'
import { readOutcome } from './outcome.ts'
import { runReference, type Reference } from './reference.ts'
import { makeReport, type Report } from './report.ts'
import { makeScratch, type PhaseContext, type Scratch } from './scratch.ts'
import { ChaosRunner, type InjectionResult } from './runner.ts'
import { ProcessRuns } from './process-run.ts'
import type { Problem, Trial } from './trial.ts'
import { INSPECTION_STORE } from '../inspection/store/store.ts'

export type ChaosResult = PhaseResults & {
  /** What is left to inspect; null when it was removed. */
  readonly kept: KeptData | null
}

type PhaseResults = {
  /** Null when there was no reference to compare with. */
  readonly report: Report | null
  readonly problems: readonly Problem[]
  readonly kills: InjectionResult['kills']
  /** Those that were started. */
  readonly phases: readonly PhaseContext[]
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
  let result: PhaseResults | null = null
  let isKept = false
  try {
    result = await runPhases(trial, scratch, processes)
    if (trial.interrupted.aborted) result = null
    isKept = result !== null && (trial.keep || result.problems.length > 0)
  } finally {
    trial.progress.close()
    await processes.killAll()
    await scratch.close()
    if (result === null || !trial.keep) await scratch.dropDatabases()
    if (!isKept) scratch.removeFolder()
    process.off('exit', atExit)
  }
  return result && { ...result, kept: isKept ? keptOf(scratch, result.phases) : null }
}

async function runPhases(
  trial: Trial,
  scratch: Scratch,
  processes: ProcessRuns,
): Promise<PhaseResults | null> {
  const referencePhase = await scratch.open('reference')
  const reference = await runReference(trial, referencePhase, processes)
  if (reference === null) return null
  if ('what' in reference)
    return { report: null, problems: [reference], kills: [], phases: [referencePhase] }
  await waitForExit(processes, trial)
  await processes.killAll()

  const killsPhase = await scratch.open('kills')
  const runner = new ChaosRunner(trial, killsPhase, processes, reference)
  await runner.run()
  if (trial.interrupted.aborted) return null
  const leftBehind = runner.problem ? 0 : await waitForExit(processes, trial)
  await processes.killAll()
  const report = await buildReport(trial, reference, killsPhase, runner, leftBehind)
  const { problems } = report
  return { report, problems, kills: runner.kills, phases: [referencePhase, killsPhase] }
}

async function buildReport(
  { killsAsked, output, ignoreData }: Trial,
  reference: Reference,
  { outputDir, store }: PhaseContext,
  injection: InjectionResult,
  leftBehind: number,
): Promise<Report> {
  const result = await readOutcome(store, output === undefined ? null : join(outputDir, output))
  return makeReport({
    reference: reference.outcome,
    referenceMs: reference.tookMs,
    result,
    differences: compare(reference.outcome, result, { ignoreData }),
    injection,
    killsAsked,
    inspection: await (await store.extend(INSPECTION_STORE)).inspect(),
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
