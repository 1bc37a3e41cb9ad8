import type { Run } from '../core/model/run.ts'
import type { RunId } from '../core/model/id.ts'
import { blockedReason } from '../core/model/verdict.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import type { Millis } from '../core/model/time.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import type { Store } from '../core/store/store.ts'
import type { Alert, AlertCandidate } from '../features/alerts/store/store.ts'
import { withoutAcknowledged, type AcknowledgedTargets } from './acknowledged.ts'
import { gaveUpItem, healthItem, parkedItem } from './attention.ts'
import type { Continuation } from './continuation.ts'
import { recountOrphans } from './orphan-alerts.ts'
import type { Attention } from './results.ts'

/** What raises alerts, with the sentences of `status`, and which stored alerts still have their cause. */

export type AlertCauses = {
  readonly now: Millis
  readonly runs: readonly AssessedRun[]
  /** The last run of each source, if it failed. */
  readonly failed: readonly Run[]
  readonly acknowledged: AcknowledgedTargets
  /** Of sources whose command reached its restart limit. */
  readonly gaveUp: readonly SourceLock[]
  readonly continuations: ReadonlyMap<RunId, Continuation>
}

/**
 * Returns the open alerts whose cause still holds, with the present reason. In the store an alert stays open until a
 * process with its rule checks again, which may be never.
 */
export async function currentAlerts(
  store: Store,
  open: readonly Alert[],
  { now, runs, failed, acknowledged, gaveUp, continuations }: AlertCauses,
): Promise<Alert[]> {
  if (open.length === 0) return []
  const found = [
    ...runs.flatMap((one) => runCandidate(one, continuations, now) ?? []),
    ...withParked([...runs.map(({ run }) => run), ...failed], acknowledged).map((run) =>
      parkedCandidate(run, null),
    ),
    ...gaveUp.map(gaveUpCandidate),
    ...(await recountOrphans(store, open, now)),
  ]
  const byCause = new Map(found.map((one) => [one.cause, one]))
  return open.flatMap((alert) => {
    const candidate = byCause.get(alert.cause)
    // What is unreadable now is not over.
    if (!candidate) return store.unreadable.length > 0 ? alert : []
    // The stored reason has the error of a parked target too.
    const isSame = alert.because.startsWith(`${candidate.because}: `)
    return { ...alert, ...candidate, because: isSame ? alert.because : candidate.because }
  })
}

/** A limited list of failed runs may lack one that has an open alert: it is read on its own. */
export async function failedWithAlert(
  store: Store,
  open: readonly Alert[],
  known: ReadonlySet<RunId>,
): Promise<Run[]> {
  const found: Run[] = []
  for (const { rule, run: id } of open) {
    // A run of an unreadable table is unknown, and nothing is resolved meanwhile.
    if (rule !== 'parked' || id === null || known.has(id) || store.unreadable.length > 0) continue
    const run = await store.run(id)
    if (run?.status !== 'failed') continue
    const [newest] = (await store.runs({ source: run.source, limit: 1 })).items
    if (newest?.id === id) found.push(run)
  }
  return found
}

/** Returns the runs with parked targets that are not acknowledged. */
export function withParked(runs: readonly Run[], acknowledged: AcknowledgedTargets): Run[] {
  return runs
    .flatMap((run) => withoutAcknowledged(run, acknowledged) ?? [])
    .filter((run) => run.counts.targets.parked > 0)
}

/** `error`: the error of one of its parked targets. */
export function parkedCandidate(run: Run, error: string | null): AlertCandidate {
  return toCandidate('parked', run.id, parkedItem(run, error))
}

export function gaveUpCandidate({ source, gaveUp }: SourceLock): AlertCandidate {
  return toCandidate('gave-up', `${source} ${gaveUp!.at}`, gaveUpItem(source, gaveUp!.because))
}

/** Returns the alert for a live run that needs attention, once recovery has had its time; null when there is none. */
export function runCandidate(
  assessed: AssessedRun,
  continuations: ReadonlyMap<RunId, Continuation>,
  now: Millis,
): AlertCandidate | null {
  const { run, policy, health, ageDecision } = assessed
  const candidate = (rule: string) => toCandidate(rule, run.id, healthItem(assessed, continuations))
  if (health.severity === 'ok') return null
  switch (health.state) {
    case 'dead': {
      const isAutomatic = policy.autoClean && blockedReason(run, ageDecision) === null
      return isAutomatic ? null : candidate('dead')
    }
    case 'interrupted':
      return candidate('silent')
    case 'orphaned':
      // Of a table of targets, since the worst row last changed: the others may be at work.
      return now - health.since <= recoveryTimeMs(assessed) ? null : candidate('silent')
    case 'stalled': {
      const ranForMs = now - (run.resumedAt ?? run.startedAt ?? run.createdAt)
      const isOverrun = policy.maxDurationMs !== null && ranForMs > policy.maxDurationMs
      return candidate(isOverrun ? 'overrun' : 'silent')
    }
    default:
      return null
  }
}

/** How long an orphaned run may wait for recovery before it is reported. */
function recoveryTimeMs({ run, policy, owner, decision }: AssessedRun): number {
  const { alertAfterMs, ownerIsKnown } = run.traits
  if (ownerIsKnown) return alertAfterMs
  if (owner) return policy.leaseMs + alertAfterMs
  return decision.action === 'fail' && policy.staleAfterMs !== null
    ? policy.staleAfterMs + alertAfterMs
    : policy.abandonAfterMs
}

function toCandidate(
  rule: string,
  about: string,
  { run, source, because, command }: Attention & { because: string },
): AlertCandidate {
  return { cause: `${rule} ${about}`, rule, source, run, because, command }
}
