import type { AlertFacts } from './decide.ts'
import type { Alert } from './store/store.ts'
import type { RunId } from '../../core/model/id.ts'
import type { Run } from '../../core/model/run.ts'
import { blockedReason, TARGET_STATUS_AFTER } from '../../core/model/verdict.ts'
import type { Millis } from '../../core/model/time.ts'
import type { AuditEntry, Store } from '../../core/store/store.ts'
import { LATEST_FAILED_MAX } from '../../core/store/listing.ts'
import { assess, type AssessContext, type AssessedRun } from '../../core/recovery/assess.ts'

/** Reads everything that a rule can match. Runs are reported by the health that every interface shows. */
export async function collectFacts(
  context: AssessContext,
  orphanTracker: OrphanTracker,
  open: readonly Alert[],
): Promise<AlertFacts & { readonly now: Millis }> {
  const { store } = context
  const { now, runs } = await assess(context)
  return {
    now,
    runs: runs.flatMap((one) => runProblem(one, now) ?? []),
    parked: await findParked(
      store,
      runs.map(({ run }) => run),
      open,
    ),
    orphans: await orphanTracker.read(store, now),
    gaveUp: (await store.sourceLocks()).flatMap(({ source, gaveUp }) =>
      gaveUp ? [{ source, ...gaveUp }] : [],
    ),
  }
}

/** Recovery takes a second or two while any worker runs; after this time none does. */
const UNRECOVERED_MS = 60_000
/** A server checks adopted tables every minute. */
const ADOPTED_UNRECOVERED_MS = 2 * 60_000

/** Returns the alert for a live run that needs attention, once recovery has had its time; null when there is none. */
export function runProblem(assessed: AssessedRun, now: Millis): AlertFacts['runs'][number] | null {
  const { run, policy, health, ageDecision } = assessed
  const { state, severity, because, command } = health
  const problem = (what: 'dead' | 'silent' | 'overrun', reason = because) => ({
    run: run.id,
    source: run.source,
    what,
    because: reason,
    command,
  })
  if (severity === 'ok') return null
  switch (state) {
    case 'dead': {
      const isAutomatic = policy.autoClean && blockedReason(run, ageDecision) === null
      return isAutomatic ? null : problem('dead')
    }
    case 'interrupted':
      return problem('silent')
    case 'orphaned': {
      if (now - run.lastActivityAt <= recoveryTimeMs(assessed)) return null
      return problem(
        'silent',
        command === 'unstuck recover' ? `${because}; not recovered yet` : because,
      )
    }
    case 'stalled': {
      const ranForMs = now - (run.resumedAt ?? run.startedAt ?? run.createdAt)
      const isOverrun = policy.maxDurationMs !== null && ranForMs > policy.maxDurationMs
      return problem(isOverrun ? 'overrun' : 'silent')
    }
    default:
      return null
  }
}

/** How long an orphaned run may wait for recovery before it is reported. */
function recoveryTimeMs({ run, policy, owner, decision }: AssessedRun): number {
  if (!run.adopted) return UNRECOVERED_MS
  if (owner) return policy.leaseMs + ADOPTED_UNRECOVERED_MS
  return decision.action === 'fail' && policy.staleAfterMs !== null
    ? policy.staleAfterMs + ADOPTED_UNRECOVERED_MS
    : policy.abandonAfterMs
}

/**
 * Returns parked targets of live runs, and of failed runs without a newer run of their source. The latter are read up to
 * a limit; a run with an open alert is read on its own, so that its alert is not resolved because others came after it.
 */
async function findParked(
  store: Store,
  live: readonly Run[],
  open: readonly Alert[],
): Promise<AlertFacts['parked']> {
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
  return Promise.all(
    [...parked.values()].map(async ({ id, source, counts }) => {
      const [one] = (await store.targets(id, { statuses: ['parked'], limit: 1 })).items
      return { run: id, source, targets: counts.targets.parked, error: one?.lastError ?? null }
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
