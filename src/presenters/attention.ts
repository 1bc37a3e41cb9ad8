import { runName } from '../core/model/traits.ts'
import type { Alert } from '../features/alerts/store/store.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import { type RunId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import type { Liveness } from '../core/model/worker.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import type { AssessedRun, Assessment } from '../core/recovery/assess.ts'
import type { AssessedWorker } from '../core/recovery/assess-workers.ts'
import type { UnreadableTable } from '../core/store/store.ts'
import { withoutAcknowledged, type AcknowledgedTargets } from './acknowledged.ts'
import { waysOut } from './allowed-actions.ts'
import { describeHost, type Continuation } from './continuation.ts'
import { plural } from './format.ts'
import type { Leftover } from '../operator/leftover-processes.ts'
import { leftoverItem } from './leftover-processes.ts'
import type { Attention } from './results.ts'
import { needsOperator } from './stuck-rows.ts'

export type AttentionFacts = {
  readonly assessment: Pick<Assessment, 'runs' | 'workers' | 'unreadable'>
  /** The last run of each source, if it failed. */
  readonly failed: readonly Run[]
  readonly acknowledged: AcknowledgedTargets
  /** Of sources whose command reached its restart limit. */
  readonly gaveUp: readonly SourceLock[]
  readonly leftovers: readonly Leftover[]
  readonly alerts: readonly Alert[]
  /** The commands that continue interrupted runs. */
  readonly continuations: ReadonlyMap<RunId, Continuation>
}

/** Everything that needs attention, by what it is about. */
export type AttentionGroups = Readonly<
  Record<
    'runs' | 'failures' | 'workers' | 'gaveUp' | 'leftovers' | 'unreadable' | 'alerts',
    readonly Attention[]
  >
>

/** Lists everything that needs attention: `status`, the dashboard, `doctor` and alerts report this list. */
export function groupAttention(facts: AttentionFacts): AttentionGroups {
  const { runs, workers, unreadable } = facts.assessment
  const unwell = runs.filter(({ health }) => health.severity !== 'ok')
  const withFailures = [...runs.map(({ run }) => run), ...facts.failed]
    .flatMap((run) => withoutAcknowledged(run, facts.acknowledged) ?? [])
    .filter((run) => describeFailures(run) !== null)
  const found = {
    runs: unwell.map((one) => healthItem(one, facts.continuations)),
    failures: withFailures.map(failuresItem),
    workers: workerItems(workers, unwell),
    gaveUp: facts.gaveUp.map(({ source, gaveUp }) => gaveUpItem(source, gaveUp!.because)),
    leftovers: facts.leftovers.map(leftoverItem),
    unreadable: unreadable.map(unreadableItem),
  }
  return { ...found, alerts: alertItems(facts.alerts, Object.values(found).flat()) }
}

/** Returns `2 targets failed, 1 parked`, or null when no target of the run needs attention. */
export function describeFailures(run: Run): string | null {
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

/** The sentence of an unhealthy run. `continuations`: what continues runs, by id. */
export function healthItem(
  assessed: AssessedRun,
  continuations: ReadonlyMap<RunId, Continuation>,
): Attention & { because: string } {
  const { run, health } = assessed
  const { state } = health
  const found = continuations.get(run.id)
  const because = health.because + (found ? describeHost(found) : '')
  const command = found?.command ?? health.command
  const item = { run: run.id, source: run.source, what: state, because, command }
  if (!needsOperator(assessed)) return item
  return { ...item, commands: waysOut(run).map((way) => way.command) }
}

function failuresItem(run: Run): Attention {
  const { failed, parked, stuck } = run.counts.targets
  const id = runName(run)
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
      what: `${LOST.includes(liveness) ? 'a lost' : liveness === 'unknown' ? 'an unknown' : `a ${liveness}`} worker holds ${plural(targets, 'target')}`,
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
