import { setImmediate, setTimeout } from 'node:timers/promises'
import { ORPHAN_REASONS, orphanOf, type Orphan } from './orphan.ts'
import { HEALTH_STATES } from '../../core/decide/health.ts'
import { LIVENESS_STATES } from '../../presenters/format.ts'
import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { UnstuckError } from '../../core/model/errors.ts'
import { recordLatency, emptyHistogram, sumStats } from '../../core/model/latency.ts'
import type { Counts } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import { RECOVERY_BOUNDS, type Figures } from './prometheus.ts'
import type { PolicyOf } from '../../core/model/policy-of.ts'
import { assess } from '../../core/recovery/assess.ts'
import { AuditReader } from '../../presenters/audit-reader.ts'
import type { AuditEntry, Store } from '../../core/store/store.ts'
import { workerViews } from '../../presenters/workers.ts'
import { ALERT_STORE } from '../alerts/store/store.ts'
import { METRICS_STORE } from './store/store.ts'

/** Reads within this time return the same figures. */
const CACHE_MS = 3_000
const POLL_MS = 1_000
/** How long the first read waits for the audit log; a long log is read further in the background. */
const AUDIT_WAIT_MS = 500
/** Without a read for this long, watching pauses until the next one. */
const IDLE_AFTER_MS = 120_000
/** The newest recovered targets, which are watched until they are claimed. */
const WATCHED_MAX = 50
/** Remembered orphaned runs, so that a worker's targets of one run are counted once. */
const ORPHANS_MAX = 1_000

type Waiting = NonNullable<Orphan['waiting']> & { readonly lostAt: Millis }

/**
 * Counts what the metrics show: from the books, and from the audit trail, which it reads from its beginning. Until it has
 * read that once, what it would tell is not known: half a count would look like a sudden rise when the rest comes.
 */
export class MetricsCollector {
  readonly #store: Store
  readonly #policyOf: PolicyOf
  readonly #cacheMs: number
  readonly #audit: AuditReader
  readonly #orphaned = Object.fromEntries(ORPHAN_REASONS.map((reason) => [reason, 0]))
  readonly #orphanedFor = emptyHistogram(RECOVERY_BOUNDS)
  readonly #recoveredWithin = emptyHistogram(RECOVERY_BOUNDS)
  readonly #knownOrphans = new Set<string>()
  readonly #counters = new MonotonicCounters()
  #waiting: Waiting[] = []
  #isCaughtUp = false
  #reading: Promise<void> | null = null
  #cached: { doneAt: number; readonly figures: Promise<Figures | null> } | null = null
  #askedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, policyOf: PolicyOf, cacheMs = CACHE_MS) {
    this.#store = store
    this.#policyOf = policyOf
    this.#cacheMs = cacheMs
    this.#audit = new AuditReader(store, 0)
  }

  /** Returns null while the database is unavailable. Concurrent calls share one read. */
  collect(): Promise<Figures | null> {
    this.#askedAt = performance.now()
    if (!this.#cached || this.#askedAt - this.#cached.doneAt > this.#cacheMs) {
      const cached = { doneAt: Infinity, figures: this.#tryCollect() }
      void cached.figures.then(
        () => (cached.doneAt = performance.now()),
        () => {},
      )
      this.#cached = cached
    }
    this.#timer ??= setInterval(() => this.#schedule(), POLL_MS).unref()
    return this.#cached.figures
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Polls between two scrapes: a recovered target may be claimed and done before the next one. */
  #schedule(): void {
    if (performance.now() - this.#askedAt > IDLE_AFTER_MS) return this.stop()
    this.#readAudit().catch(() => {})
  }

  async #tryCollect(): Promise<Figures | null> {
    try {
      await this.#catchUp()
      return await this.#collect()
    } catch (error) {
      this.#cached = null
      if (error instanceof UnstuckError) return null
      throw error
    }
  }

  async #catchUp(): Promise<void> {
    const reading = this.#readAudit()
    if (this.#isCaughtUp) return reading
    const waited = new AbortController()
    const { signal } = waited
    // A later error is met by the next read.
    const patience = setTimeout(AUDIT_WAIT_MS, undefined, { signal }).catch(() => {})
    await Promise.race([reading, patience]).finally(() => waited.abort())
    reading.catch(() => {})
  }

  async #collect(): Promise<Figures> {
    const store = this.#store
    const context = { store, observer: TRUSTED_OBSERVER, policyOf: this.#policyOf }
    const alertStore = await store.extend(ALERT_STORE)
    const metricsStore = await store.extend(METRICS_STORE)
    const [assessment, runs, totals, stats, alerts] = await Promise.all([
      assess(context),
      store.runTotals(),
      store.targetTotals(),
      metricsStore.workerStats(),
      alertStore.listAlerts({ open: true }),
    ])
    const { runs: live, now } = assessment
    const still = Math.max(...live.map(({ run }) => now - run.lastActivityAt))
    return {
      runs,
      counters: this.#counters.update(totals),
      liveRuns: countByKey(
        HEALTH_STATES,
        live.map(({ health }) => health.state),
      ),
      workers: countByKey(
        LIVENESS_STATES,
        workerViews(assessment).map((worker) => worker.liveness),
      ),
      idleSeconds: live.length > 0 ? still / 1_000 : null,
      alertsOpen: alerts.length,
      ...sumStats(stats),
      orphaned: this.#isCaughtUp ? { ...this.#orphaned } : null,
      orphanedDuration: this.#isCaughtUp ? this.#orphanedFor : null,
      recoveryDuration: this.#recoveredWithin,
    }
  }

  /** Reads the audit log. Concurrent calls share one read. */
  #readAudit(): Promise<void> {
    this.#reading ??= this.#readNextEntries().finally(() => (this.#reading = null))
    return this.#reading
  }

  async #readNextEntries(): Promise<void> {
    for (let entries; (entries = await this.#audit.next()).length > 0;) {
      for (const entry of entries) this.#addEntry(entry)
      // A long log must not block other work.
      await setImmediate()
    }
    this.#isCaughtUp = true
    await this.#checkClaims()
  }

  #addEntry(entry: AuditEntry): void {
    const orphan = orphanOf(entry)
    if (!orphan) return
    const { reason, silentMs, waiting } = orphan
    // An old recovery no longer shows how fast the target was claimed.
    if (this.#isCaughtUp && waiting && silentMs !== null) {
      this.#waiting = [...this.#waiting, { ...waiting, lostAt: entry.at - silentMs }]
      this.#waiting = this.#waiting.slice(-WATCHED_MAX)
    }
    const key = `${orphan.run} ${orphan.worker ?? entry.id}`
    if (this.#knownOrphans.has(key)) return
    this.#knownOrphans.add(key)
    if (this.#knownOrphans.size > ORPHANS_MAX)
      this.#knownOrphans.delete(this.#knownOrphans.values().next().value!)
    this.#orphaned[reason]!++
    if (silentMs !== null) recordLatency(this.#orphanedFor, silentMs / 1_000, RECOVERY_BOUNDS)
  }

  async #checkClaims(): Promise<void> {
    const left: Waiting[] = []
    for (const one of this.#waiting) {
      const target = await this.#store.target(one.target)
      if (target?.epoch === one.epoch && target.status === 'planned') left.push(one)
      // Claimed more than once since the last poll: the time of the first claim is no longer known.
      if (target?.epoch !== one.epoch + 1) continue
      const seconds = ((target.claimedAt ?? target.lastActivityAt) - one.lostAt) / 1_000
      recordLatency(this.#recoveredWithin, Math.max(0, seconds), RECOVERY_BOUNDS)
    }
    this.#waiting = left
  }
}

/** A counter must only grow, but the counts of a deleted run disappear from the store. */
class MonotonicCounters {
  readonly #seen = new Map<string, number>()
  readonly #removed = new Map<string, number>()

  update(counts: Counts): Counts {
    const { targets, ...rest } = counts
    const grown = Object.entries(rest).map(([name, value]) => [name, this.#increase(name, value)])
    return { targets, ...(Object.fromEntries(grown) as typeof rest) }
  }

  #increase(name: string, value: number): number {
    const removed =
      Math.max(0, (this.#seen.get(name) ?? 0) - value) + (this.#removed.get(name) ?? 0)
    this.#seen.set(name, value)
    this.#removed.set(name, removed)
    return value + removed
  }
}

/** Counts each value, including those that do not occur. */
function countByKey(keys: readonly string[], found: readonly string[]): Record<string, number> {
  const counts = Object.fromEntries(keys.map((key) => [key, 0]))
  for (const key of found) counts[key] = (counts[key] ?? 0) + 1
  return counts
}
