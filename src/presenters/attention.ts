import type { Alert } from '../features/alerts/store/store.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import { shortId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import type { Liveness } from '../core/model/worker.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import type { AssessedRun, AssessedWorker, Assessment } from '../core/recovery/assess.ts'
import type { UnreadableTable } from '../core/store/store.ts'
import { plural } from './format.ts'
import type { Attention } from './results.ts'

export type AttentionFacts = {
  readonly assessment: Pick<Assessment, 'runs' | 'workers' | 'unreadable'>
  /** The last run of each source, if it failed. */
  readonly failed: readonly Run[]
  readonly locks: readonly SourceLock[]
  readonly alerts: readonly Alert[]
}

/** Lists everything that needs attention: `status`, the dashboard, `doctor` and alerts report this list. */
export function listAttention(facts: AttentionFacts): Attention[] {
  const { runs, workers, unreadable } = facts.assessment
  const unwell = runs.filter(({ health }) => health.severity !== 'ok')
  const withFailures = [...runs.map(({ run }) => run), ...facts.failed].filter(
    (run) => describeFailures(run) !== null,
  )
  const found = [
    ...unwell.map(healthItem),
    ...withFailures.map(failuresItem),
    ...workerItems(workers, unwell),
    ...facts.locks.flatMap(({ source, gaveUp }) =>
      gaveUp ? [gaveUpItem(source, gaveUp.because)] : [],
    ),
    ...unreadable.map(unreadableItem),
  ]
  return [...found, ...alertItems(facts.alerts, found)]
}

/** Returns `2 targets failed, 1 parked`, or null when no target of the run needs attention. */
function describeFailures(run: Run): string | null {
  const { status, counts } = run
  const { targets } = counts
  if (!run.traits.hasTargets) return status === 'failed' ? 'the run failed' : null
  const kinds = (['failed', 'parked', 'stuck'] as const).filter((kind) => targets[kind] > 0)
  if (kinds.length === 0) return status === 'failed' ? 'the run failed' : null
  const parts = kinds.map((kind, i) =>
    i === 0 ? `${plural(targets[kind], 'target')} ${kind}` : `${targets[kind]} ${kind}`,
  )
  return parts.join(', ')
}

/** The sentence of an unhealthy run. */
export function healthItem({ run, health }: AssessedRun): Attention & { because: string } {
  const { state, because, command } = health
  return { run: run.id, source: run.source, what: state, because, command }
}

function failuresItem(run: Run): Attention {
  const { failed, parked, stuck } = run.counts.targets
  const id = shortId(run.id)
  const command =
    failed === 0 && parked + stuck > 0
      ? unstuckCommand('unpark', [], { run: id })
      : unstuckCommand('show', [id])
  const what = describeFailures(run)!
  return { run: run.id, source: run.source, what, because: run.error, command }
}

/** Lost and stalled workers that hold targets of otherwise healthy runs: recovery lists these targets. */
function workerItems(
  workers: readonly AssessedWorker[],
  unwell: readonly AssessedRun[],
): Attention[] {
  const reported = new Set(unwell.map(({ run }) => run.id))
  return workers
    .filter(
      ({ severity, runs }) => severity !== 'ok' && ![...runs].every((run) => reported.has(run)),
    )
    .map(({ worker, targets, assessment: { liveness, because } }) => ({
      run: null,
      source: worker.source,
      what: `a ${LOST.includes(liveness) ? 'lost' : liveness} worker holds ${plural(targets, 'target')}`,
      because,
      command: LOST.includes(liveness) ? 'unstuck recover' : 'unstuck workers',
    }))
}

const LOST: readonly Liveness[] = ['gone', 'silent']

/** The sentence of a run with parked targets. `error`: the error of one of them. */
export function parkedItem(run: Run, error: string | null): Attention & { because: string } {
  const item = failuresItem(run)
  return { ...item, because: error === null ? item.what : `${item.what}: ${error}` }
}

/** The restart limit is reached: the supervisor does not start the command again. */
export function gaveUpItem(source: string, because: string): Attention & { because: string } {
  const command = unstuckCommand('logs', [source])
  return { run: null, source, what: 'gave up', because, command }
}

/** Runs in a table that cannot be read may be stuck. */
function unreadableItem({ table, because }: UnreadableTable): Attention {
  const what = 'the table cannot be read'
  return { run: null, source: table, what, because, command: 'unstuck doctor' }
}

/** Open alerts about anything that is not listed already. */
function alertItems(alerts: readonly Alert[], found: readonly Attention[]): Attention[] {
  const isListed = ({ run, source }: Alert): boolean =>
    found.some((item) =>
      run === null ? item.run === null && item.source === source : item.run === run,
    )
  return alerts
    .filter((alert) => !isListed(alert))
    .map(({ rule, source, run, because, command }) => ({
      run,
      source: source ?? 'several sources',
      what: `alert ${rule}`,
      because,
      command,
    }))
}
