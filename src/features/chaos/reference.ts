import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { isLive } from '../../core/model/run.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import { redact } from '../../core/model/redact.ts'
import { plural } from '../../presenters/format.ts'
import type { Outcome } from './compare.ts'
import type { ProcessRun, ProcessRuns, ProcessExit } from './process-run.ts'
import { readOutcome, readRuns } from './outcome.ts'
import type { Progress } from './progress.ts'
import type { ReferenceTiming } from './schedule.ts'
import type { PhaseContext } from './scratch.ts'
import { makeProblem, type Problem, type Trial } from './trial.ts'

/** How the command ran without kills, and what it left. */
export type Reference = {
  readonly outcome: Outcome
  readonly timing: ReferenceTiming
  readonly tookMs: number
}

const POLL_MS = 20
const LOG_LINES = 10

/**
 * Runs the command once without kills. Returns a problem if it does not end well or leaves nothing to compare with; null
 * when it was interrupted.
 */
export async function runReference(
  trial: Trial,
  phase: PhaseContext,
  processes: ProcessRuns,
): Promise<Reference | Problem | null> {
  const { maxDuration: timeoutMs, interrupted, progress } = trial
  progress.log('reference: the command runs once without kills')
  const run = await processes.start(phase)
  const limit = AbortSignal.any([AbortSignal.timeout(timeoutMs), interrupted])
  const startMs = await watchFirstPage(phase, run, limit, progress)
  const end = await run.exitedBefore(limit)
  const tookMs = performance.now() - run.startedAt
  if (interrupted.aborted) return null
  if (!end) return timeoutProblem(timeoutMs, phase)
  if (end.code !== 0) return failureProblem(end, phase)

  const output = trial.output === undefined ? null : join(phase.outputDir, trial.output)
  const outcome = await readOutcome(phase.store, output)
  const problem = incompleteProblem(outcome, trial)
  if (problem) return problem
  const pages = outcome.runs.reduce((sum, run) => sum + run.pages, 0)
  const timing = { startMs, workMs: tookMs - startMs, pages }
  const items = plural(outcome.items.length, 'item')
  progress.log(`reference: ${plural(pages, 'page')}, ${items} in ${humanizeDuration(tookMs)}`)
  return { outcome, timing, tookMs }
}

/** Watches until the command ends. Returns how long after its start the first page was saved; 0: none was. */
async function watchFirstPage(
  phase: PhaseContext,
  run: ProcessRun,
  limit: AbortSignal,
  progress: Progress,
): Promise<number> {
  const over = AbortSignal.any([run.exitSignal, limit])
  let firstMs = 0
  while (!over.aborted) {
    const pages = await countPages(phase)
    if (pages > 0 && firstMs === 0) firstMs = performance.now() - run.startedAt
    progress.showStatus(`reference: ${plural(pages, 'page')} saved`)
    await REAL_CLOCK.sleep(POLL_MS, over)
  }
  return firstMs
}

export async function countPages({ store }: PhaseContext): Promise<number> {
  return (await readRuns(store)).reduce((sum, { pages }) => sum + pages, 0)
}

export function timeoutProblem(timeoutMs: number, phase: PhaseContext): Problem {
  return makeProblem(
    'never-ended',
    `The command had not ended ${humanizeDuration(timeoutMs)} after its start (${phase.phase}).`,
    'It must end by itself when all work is done: `unstuck work` needs --drain. If it needs more time, raise --max-duration.',
    logTail(phase),
  )
}

function failureProblem({ code, signal }: ProcessExit, phase: PhaseContext): Problem {
  const how = signal ? `was ended by ${signal}` : `ended with exit code ${code}`
  return makeProblem(
    'reference-failed',
    `The command ${how} without any kill.`,
    'It must end with exit code 0 without kills; its log has its output.',
    logTail(phase),
  )
}

function incompleteProblem({ runs, output }: Outcome, trial: Trial): Problem | null {
  if (runs.length === 0) {
    return makeProblem(
      'nothing-arrived',
      'The command ended with exit code 0, but no run of it is in the scratch database.',
      'It must use the database of UNSTUCK_DB: call open() without `db`, and `unstuck work` without --db. Nothing was killed.',
    )
  }
  const live = runs.filter(({ status }) => isLive(status))
  if (live.length > 0) {
    return makeProblem(
      'reference-unfinished',
      `The command ended with exit code 0, but left ${live.map(({ source, status }) => `${source} ${status}`).join(', ')}.`,
      'It must finish its runs before it ends: `unstuck work` needs --drain, your own code `run.succeed()`.',
    )
  }
  if (trial.output === undefined || output !== null) return null
  return makeProblem(
    'no-output',
    `The command did not write ${trial.output} into the folder that UNSTUCK_CHAOS_DIR names.`,
    'Each phase has its own folder, so build the path from it: join(process.env.UNSTUCK_CHAOS_DIR, …).',
  )
}

/** Returns the end of the command's log, without secrets. */
export function logTail({ logPath }: PhaseContext): string[] {
  try {
    const lines = readFileSync(logPath, 'utf8').split('\n')
    return lines
      .filter((line) => line.trim() !== '')
      .slice(-LOG_LINES)
      .map(redact)
  } catch {
    return []
  }
}
