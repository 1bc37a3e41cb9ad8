import type { AlertCandidate, AlertFacts } from './decide.ts'
import type { AlertKind } from './rule.ts'
import type { Alert } from './store/store.ts'
import type { RunId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import { blockedReason, TARGET_STATUS_AFTER } from '../../core/model/verdict.ts'
import type { Millis } from '../../core/model/time.ts'
import type { AuditEntry, Store } from '../../core/store/store.ts'
import { LATEST_FAILED_MAX } from '../../core/store/reads.ts'
import { loadContinuations, type Continuation } from '../../presenters/continuation.ts'
import {
  gaveUpUnacknowledged,
  loadAcknowledged,
  withoutAcknowledged,
} from '../../presenters/acknowledged.ts'
import { gaveUpItem, healthItem, parkedItem } from '../../presenters/attention.ts'
import type { Attention } from '../../presenters/results.ts'
import { assess, type AssessContext, type AssessedRun } from '../../core/recovery/assess.ts'

/** Reads what the rules are matched with. The sentences are those of `status` and the dashboard. */
export async function collectFacts(
  context: AssessContext,
  orphanTracker: OrphanTracker,
  open: readonly Alert[],
): Promise<AlertFacts & { readonly now: Millis }> {
  const { store } = context
  const { now, runs, locks } = await assess(context)
  const live = runs.map(({ run }) => run)
  const continuations = await loadContinuations(context, runs)
  return {
    now,
    found: [
      ...runs.flatMap((one) => runCandidate(one, continuations, now) ?? []),
      ...(await parkedCandidates(store, live, open)),
      ...gaveUpUnacknowledged(locks).map(({ source, gaveUp }) =>
        toCandidate('gave-up', `${source} ${gaveUp!.at}`, gaveUpItem(source, gaveUp!.because)),
      ),
    ],
    orphans: await orphanTracker.read(store, now),
  }
}

function toCandidate(
  rule: AlertKind,
  about: string,
  { run, source, because, command }: Attention & { because: string },
): AlertCandidate {
  return { cause: `${rule} ${about}`, rule, source, run, because, command }
}

/** Returns the alert for a live run that needs attention, once recovery has had its time; null when there is none. */
export function runCandidate(
  assessed: AssessedRun,
  continuations: ReadonlyMap<RunId, Continuation>,
  now: Millis,
): AlertCandidate | null {
  const { run, policy, health, ageDecision } = assessed
  const candidate = (rule: AlertKind) =>
    toCandidate(rule, run.id, healthItem(assessed, continuations))
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

/**
 * Returns parked targets of live runs that are not acknowledged, and of failed runs without a newer run of their source. The latter are read up to
 * a limit; a run with an open alert is read on its own, so that its alert is not resolved because others came after it.
 */
async function parkedCandidates(
  store: Store,
  live: readonly Run[],
  open: readonly Alert[],
): Promise<AlertCandidate[]> {
  const parked = new Map<RunId, Run>()
  const check = (run: Run): void => {
    if (run.counts.targets.parked > 0) parked.set(run.id, run)
  }
  const failed = await store.runs({ latestFailed: true, limit: LATEST_FAILED_MAX })
  for (const run of [...live, ...failed.items]) check(run)
  for (const { rule, run: id } of open) {
    // A run of an unreadable table is unknown, and nothing is resolved meanwhile.
    if (rule !== 'parked' || id === null || parked.has(id) || store.unreadable.length > 0) continue
    const run = await store.run(id)
    if (run?.status !== 'failed') continue
    const [newest] = (await store.runs({ source: run.source, limit: 1 })).items
    if (newest?.id === id) check(run)
  }
  const acknowledged = await loadAcknowledged(store, [...parked.values()])
  const left = [...parked.values()]
    .flatMap((run) => withoutAcknowledged(run, acknowledged) ?? [])
    .filter((run) => run.counts.targets.parked > 0)
  return Promise.all(
    left.map(async (run) => {
      const filter = { statuses: ['parked'], acknowledged: false, limit: 1 } as const
      const [one] = (await store.targets(run.id, filter)).items
      return toCandidate('parked', run.id, parkedItem(run, one?.lastError ?? null))
    }),
  )
}

const PAGE_SIZE = 500
/** Per check. The next check reads the rest. */
const PAGES_MAX = 10
/** An entry with a lower id may be committed after one with a higher id. */
const OVERLAP = 50

/** Follows the audit log for runs that lost a worker. A worker with a hundred claimed targets counts once. */
export class OrphanTracker {
  readonly #windowMs: number
  readonly #losses = new Map<string, AlertFacts['orphans'][number]>()
  #after: number | null = null

  /** `windowMs`: the longest interval of a rule. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  async read(store: Store, now: Millis): Promise<AlertFacts['orphans']> {
    if (this.#windowMs === 0) return []
    const since = now - this.#windowMs
    this.#after ??= await startPosition(store)
    let after = Math.max(0, this.#after - OVERLAP)
    for (let page = 0; page < PAGES_MAX; page++) {
      const entries = await store.audit({ since, after, limit: PAGE_SIZE })
      for (const entry of entries) this.#record(entry)
      after = entries.at(-1)?.id ?? after
      this.#after = Math.max(this.#after, after)
      if (entries.length < PAGE_SIZE) break
    }
    for (const [key, { at }] of this.#losses) if (at <= since) this.#losses.delete(key)
    return [...this.#losses.values()]
  }

  #record({ at, source, run, target, action, because, before }: AuditEntry): void {
    const worker = (before as { worker?: unknown } | null)?.worker
    // On a timeout the worker is alive.
    const isLoss =
      target !== null && action in TARGET_STATUS_AFTER && !because.startsWith('timeout:')
    if (isLoss && typeof worker === 'string') this.#losses.set(`${run} ${worker}`, { at, source })
  }
}

/** Returns a position no further back than one check can read. */
async function startPosition(store: Store): Promise<number> {
  const [last] = await store.audit({ newestFirst: true, limit: 1 })
  return Math.max(0, (last?.id ?? 0) - PAGE_SIZE * PAGES_MAX + OVERLAP)
}
