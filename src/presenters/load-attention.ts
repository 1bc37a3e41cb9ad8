import { HEALTH_STATES, worstSeverity, type Severity } from '../core/decide/health.ts'
import type { AssessContext, AssessedRun, Assessment } from '../core/recovery/assess.ts'
import { assessSourceLock, type SourceLockState } from '../core/recovery/source-lock.ts'
import { LATEST_FAILED_MAX } from '../core/store/reads.ts'
import { ALERT_STORE, type Alert } from '../features/alerts/store/store.ts'
import { findLeftovers } from '../operator/leftover-processes.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { gaveUpUnacknowledged, loadAcknowledged } from './acknowledged.ts'
import { currentAlerts, failedWithAlert } from './alert-causes.ts'
import { groupAttention, type AttentionGroups } from './attention.ts'
import { loadContinuations } from './continuation.ts'
import { needsAttention } from './format.ts'
import type { Attention } from './results.ts'

/** Everything that needs attention now, and what that was concluded from. */
export type FoundAttention = {
  /** Worst first. */
  readonly live: readonly AssessedRun[]
  readonly groups: AttentionGroups
  readonly attention: readonly Attention[]
  /** Of the live runs, the workers, the tables and everything that needs attention. */
  readonly severity: Severity
  /** Sources whose commands are wrapped now, between two runs too, or reached their restart limit. */
  readonly lockStates: readonly SourceLockState[]
  /** Open, and their cause still holds. */
  readonly alerts: readonly Alert[]
}

/** Where there is no database yet. */
export const NOTHING_FOUND: FoundAttention = {
  live: [],
  groups: {
    runs: [],
    failures: [],
    workers: [],
    gaveUp: [],
    leftovers: [],
    unreadable: [],
    alerts: [],
  },
  attention: [],
  severity: 'ok',
  lockStates: [],
  alerts: [],
}

/** Reads what an assessment does not have: the last failed runs, acknowledgements and open alerts. */
export async function loadAttention(
  context: AssessContext,
  assessment: Assessment,
): Promise<FoundAttention> {
  const { store } = context
  const [listed, opened] = await Promise.all([
    store.runs({ latestFailed: true, limit: LATEST_FAILED_MAX }),
    (await store.extend(ALERT_STORE)).listAlerts({ open: true }),
  ])
  const locks = assessment.locks.filter(({ worker, gaveUp }) => worker ?? gaveUp)
  const lockStates = locks.map((lock) =>
    assessSourceLock(lock, assessment.observations, context.observer),
  )
  const live = assessment.runs.toSorted(
    (a, b) =>
      HEALTH_STATES.indexOf(a.health.state) - HEALTH_STATES.indexOf(b.health.state) ||
      b.run.createdAt - a.run.createdAt,
  )
  const known = [...live.map(({ run }) => run), ...listed.items]
  const alerted = await failedWithAlert(store, opened, new Set(known.map(({ id }) => id)))
  // The targets of an acknowledged run, which may be many, are not counted each time.
  const open = [...known, ...alerted].filter(({ acknowledgedAt }) => acknowledgedAt === null)
  const facts = {
    failed: [...listed.items, ...alerted],
    acknowledged: await loadAcknowledged(store, open),
    gaveUp: gaveUpUnacknowledged(locks),
    continuations: await loadContinuations(context, live),
  }
  const { now } = assessment
  const alerts = await currentAlerts(store, opened, { ...facts, runs: live, now })
  const groups = groupAttention({
    ...facts,
    assessment: { ...assessment, runs: live },
    leftovers: await findLeftovers(store, lockStates),
    alerts,
  })
  const attention = Object.values(groups).flat()
  const severity = worstSeverity([
    assessment.severity,
    ...(attention.length > 0 ? ['attention' as const] : []),
  ])
  return { live, groups, attention, severity, lockStates, alerts }
}

/** `2 other things need attention. See `unstuck status`.` Null when all of it is `shown` otherwise. */
export function otherAttention(
  attention: readonly Attention[],
  shown: ReadonlySet<Attention>,
): string | null {
  const others = attention.filter((item) => !shown.has(item)).length
  if (others === 0) return null
  return `${needsAttention(others, others < attention.length)} See \`${unstuckCommand('status')}\`.`
}
