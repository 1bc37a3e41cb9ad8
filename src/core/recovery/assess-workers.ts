import { workerSeverity, type Severity, type UnwellRows } from '../decide/health.ts'
import { assessLiveness, assessProgress, type LivenessAssessment } from '../decide/liveness.ts'
import type { RunId } from '../model/id.ts'
import { policyForGroup, type Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import type { Millis } from '../model/time.ts'
import type { Liveness } from '../model/worker.ts'
import type { Holding, WorkerObservation } from '../store/store.ts'
import type { AssessOptions, Owner } from './assess.ts'

/** A worker that has not ended, with the targets it holds. */
export type AssessedWorker = Owner & {
  readonly targets: number
  /** The runs of these targets. */
  readonly runs: ReadonlySet<RunId>
  readonly severity: Severity
}

/** Assesses every worker by its heartbeats and by the progress of the targets it holds. */
export function assessWorkers(
  observations: readonly WorkerObservation[],
  holdings: readonly Holding[],
  runs: ReadonlyMap<RunId, Run>,
  { now, observer, policyOf }: Pick<AssessOptions, 'now' | 'observer' | 'policyOf'>,
): AssessedWorker[] {
  const policies = new Map([...runs].map(([id, run]) => [id, policyOf(run)]))
  const byWorker = Map.groupBy(holdings, ({ worker }) => worker)
  return observations.map((observation) => {
    const held = byWorker.get(observation.worker.id) ?? []
    const targets = held.reduce((sum, one) => sum + one.targets, 0)
    const liveness = assessLiveness(observation.evidence, observer)
    const assessment = withStalledTarget(liveness, held, policies, now)
    const isPaused = held.every(({ run }) => runs.get(run)?.paused)
    const severity = workerSeverity(assessment, targets, isPaused)
    const heldRuns = new Set(held.map(({ run }) => run))
    return { ...observation, assessment, targets, runs: heldRuns, severity }
  })
}

/** The states of a worker whose row in a table of your own is stuck, worst first. */
const STUCK_ROWS: readonly Liveness[] = ['gone', 'silent', 'stalled']
const UNWELL_ROWS: readonly Liveness[] = [...STUCK_ROWS, 'unknown']
const NAMED_MAX = 3

/** Returns whether the row of this worker is stuck. While the state of a worker is unknown, it is not. */
export function isStuckRow({ assessment }: Pick<AssessedWorker, 'assessment'>): boolean {
  return STUCK_ROWS.includes(assessment.liveness)
}

/** Returns the rows in progress that are stuck, else those of unknown liveness, by table of your own. */
export function findUnwellRows(
  runs: ReadonlyMap<RunId, Run>,
  holdings: readonly Holding[],
  workers: readonly AssessedWorker[],
): ReadonlyMap<RunId, UnwellRows> {
  const byId = new Map(workers.map((one) => [one.worker.id, one]))
  const found = new Map<RunId, UnwellRows>()
  for (const [id, held] of Map.groupBy(holdings, ({ run }) => run)) {
    const run = runs.get(id)
    if (!run || run.traits.origin === null || run.kind === 'single') continue
    const unwell = held.flatMap(({ worker, lastActivityAt }) => {
      const owner = byId.get(worker)
      const rank = owner ? UNWELL_ROWS.indexOf(owner.assessment.liveness) : -1
      return owner && rank >= 0 ? [{ owner, rank, lastActivityAt }] : []
    })
    if (unwell.length === 0) continue
    const stuck = unwell.filter(({ owner }) => isStuckRow(owner))
    const rows = stuck.length > 0 ? stuck : unwell
    rows.sort((a, b) => a.rank - b.rank || a.lastActivityAt - b.lastActivityAt)
    const [worst, ...others] = rows
    const { assessment } = worst!.owner
    const names = others.slice(0, NAMED_MAX).map(({ owner }) => owner.evidence.label)
    const more = others.length > NAMED_MAX ? ` and ${others.length - NAMED_MAX} more` : ''
    const also = names.length > 0 ? `; also ${names.join(', ')}${more}` : ''
    const state = `${rows.length === 1 ? 'is' : 'are'} ${stuck.length > 0 ? 'stuck' : 'of unknown liveness'}`
    const count = `${rows.length} of ${run.counts.targets.in_progress} rows in progress ${state}`
    const because = `${count}: ${assessment.because}${also}`
    found.set(id, { liveness: assessment.liveness, because, since: worst!.lastActivityAt })
  }
  return found
}

/** A worker with a target that has made no progress for longer than its policy allows is stalled. */
function withStalledTarget(
  assessment: LivenessAssessment,
  held: readonly Holding[],
  policies: ReadonlyMap<RunId, Policy>,
  now: Millis,
): LivenessAssessment {
  const stalled = held
    .map(({ run, policy, group, lastActivityAt }) => {
      const { maxSilenceMs } = policyForGroup(policies.get(run) ?? policy, group)
      return { idleMs: now - lastActivityAt, maxSilenceMs }
    })
    .filter(({ idleMs, maxSilenceMs }) => idleMs > maxSilenceMs)
    .toSorted((a, b) => b.idleMs - a.idleMs)[0]
  return stalled ? assessProgress(assessment, stalled.idleMs, stalled.maxSilenceMs) : assessment
}
