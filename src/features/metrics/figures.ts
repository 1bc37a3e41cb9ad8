import { setImmediate, setTimeout } from 'node:timers/promises'
import { ORPHAN_REASONS, readOrphan, type Orphan } from './orphan.ts'
import { STEADY } from '../../core/decide/liveness.ts'
import { UnstuckError } from '../../core/model/errors.ts'
import { count, noLatency, sumStats } from '../../core/model/latency.ts'
import type { Counts } from '../../core/model/run.ts'
import type { Millis } from '../../core/model/time.ts'
import { RECOVERY_BOUNDS, type Figures } from './prometheus.ts'
import { judgeRuns, type PolicyOf } from '../../core/recovery/assess.ts'
import { TrailReader } from '../../core/recovery/audit-reader.ts'
import type { AuditEntry, Store } from '../../core/store/store.ts'
import { healthOf } from '../../presenters/health.ts'
import { rollCall } from '../../presenters/workers.ts'
import { health, sign } from '../../presenters/schema/run.ts'

/** Who asks within this time gets the same answer. */
const FRESH_MS = 3_000
const LOOK_EVERY_MS = 1_000
/** So long the first who ask wait for the trail to be read; a long one is read on beside what else is asked. */
const TRAIL_PATIENCE_MS = 500
/** Nobody has asked for so long: nobody is watched for any more until somebody does. */
const FORGET_AFTER_MS = 120_000
/** Recovered targets that are watched until somebody claims them; the newest. */
const WATCHED_MAX = 50
/** Orphaned runs that are remembered, so that what a worker left of one run is counted once. */
const KNOWN_MAX = 1_000

type Waiting = NonNullable<Orphan['waiting']> & { readonly lostAt: Millis }

/**
 * Counts what the metrics show: from the books, and from the audit trail, which it reads from its beginning. Until it has
 * read that once, what it would tell is not known: half a count would look like a sudden rise when the rest comes.
 */
export class FigureKeeper {
  readonly #store: Store
  readonly #policyOf: PolicyOf
  readonly #freshMs: number
  readonly #trail: TrailReader
  readonly #orphaned = Object.fromEntries(ORPHAN_REASONS.map((reason) => [reason, 0]))
  readonly #orphanedFor = noLatency(RECOVERY_BOUNDS)
  readonly #recoveredWithin = noLatency(RECOVERY_BOUNDS)
  readonly #known = new Set<string>()
  readonly #grown = new OnlyUp()
  #waiting: Waiting[] = []
  #isCaughtUp = false
  #reading: Promise<void> | null = null
  #fresh: { doneAt: number; readonly figures: Promise<Figures | null> } | null = null
  #askedAt = 0
  #timer: NodeJS.Timeout | undefined

  constructor(store: Store, policyOf: PolicyOf, freshMs = FRESH_MS) {
    this.#store = store
    this.#policyOf = policyOf
    this.#freshMs = freshMs
    this.#trail = new TrailReader(store, 0)
  }

  /** Null while the database does not answer. Asked by many at once, it looks once. */
  figures(): Promise<Figures | null> {
    this.#askedAt = performance.now()
    if (!this.#fresh || this.#askedAt - this.#fresh.doneAt > this.#freshMs) {
      const fresh = { doneAt: Infinity, figures: this.#look() }
      void fresh.figures.then(
        () => (fresh.doneAt = performance.now()),
        () => {},
      )
      this.#fresh = fresh
    }
    this.#timer ??= setInterval(() => this.#goOn(), LOOK_EVERY_MS).unref()
    return this.#fresh.figures
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  /** Between two scrapes: a recovered target may be claimed and done before the next. */
  #goOn(): void {
    if (performance.now() - this.#askedAt > FORGET_AFTER_MS) return this.stop()
    this.#readTrail().catch(() => {})
  }

  async #look(): Promise<Figures | null> {
    try {
      await this.#catchUp()
      return await this.#gather()
    } catch (error) {
      this.#fresh = null
      if (error instanceof UnstuckError) return null
      throw error
    }
  }

  async #catchUp(): Promise<void> {
    const reading = this.#readTrail()
    if (this.#isCaughtUp) return reading
    const enough = new AbortController()
    const { signal } = enough
    // What goes wrong after that is met by the next who reads.
    const patience = setTimeout(TRAIL_PATIENCE_MS, undefined, { signal }).catch(() => {})
    await Promise.race([reading, patience]).finally(() => enough.abort())
    reading.catch(() => {})
  }

  async #gather(): Promise<Figures> {
    const store = this.#store
    const now = await store.now()
    const workers = await store.workers()
    const [roll, runs, totals, live, stats, alerts] = await Promise.all([
      rollCall(store, now, workers),
      store.runTotals(),
      store.targetTotals(),
      store.liveRuns(),
      store.workerStats(),
      store.openAlerts(),
    ])
    const judged = judgeRuns(live, workers, { now, judge: STEADY, policyOf: this.#policyOf })
    const still = Math.max(...live.map(({ run }) => now - run.lastActivityAt))
    return {
      runs,
      books: this.#grown.books(totals),
      liveRuns: tally(
        health.options,
        judged.map((one) => healthOf(one, now).state),
      ),
      workers: tally(
        sign.options,
        roll.map((worker) => worker.sign),
      ),
      stillSeconds: live.length > 0 ? still / 1_000 : null,
      alertsOpen: alerts.length,
      ...sumStats(stats),
      orphaned: this.#isCaughtUp ? { ...this.#orphaned } : null,
      orphanedFor: this.#isCaughtUp ? this.#orphanedFor : null,
      recoveredWithin: this.#recoveredWithin,
    }
  }

  /** One reader at a time; who comes while it reads waits for the same. */
  #readTrail(): Promise<void> {
    this.#reading ??= this.#readOn().finally(() => (this.#reading = null))
    return this.#reading
  }

  async #readOn(): Promise<void> {
    for (let entries; (entries = await this.#trail.next()).length > 0;) {
      for (const entry of entries) this.#enter(entry)
      // A trail of years must not keep others waiting.
      await setImmediate()
    }
    this.#isCaughtUp = true
    await this.#lookForClaims()
  }

  #enter(entry: AuditEntry): void {
    const orphan = readOrphan(entry)
    if (!orphan) return
    const { reason, silentMs, waiting } = orphan
    // What is long over says nothing about how fast it was taken up.
    if (this.#isCaughtUp && waiting && silentMs !== null) {
      this.#waiting = [...this.#waiting, { ...waiting, lostAt: entry.at - silentMs }]
      this.#waiting = this.#waiting.slice(-WATCHED_MAX)
    }
    const key = `${orphan.run} ${orphan.worker ?? entry.id}`
    if (this.#known.has(key)) return
    this.#known.add(key)
    if (this.#known.size > KNOWN_MAX) this.#known.delete(this.#known.values().next().value!)
    this.#orphaned[reason]!++
    if (silentMs !== null) count(this.#orphanedFor, silentMs / 1_000, RECOVERY_BOUNDS)
  }

  async #lookForClaims(): Promise<void> {
    const left: Waiting[] = []
    for (const one of this.#waiting) {
      const target = await this.#store.target(one.target)
      if (target?.epoch === one.epoch && target.status === 'planned') left.push(one)
      // Claimed more than once since the last look: when it was first is no longer known.
      if (target?.epoch !== one.epoch + 1) continue
      const seconds = ((target.claimedAt ?? target.lastActivityAt) - one.lostAt) / 1_000
      count(this.#recoveredWithin, Math.max(0, seconds), RECOVERY_BOUNDS)
    }
    this.#waiting = left
  }
}

/** A counter only grows; but a run that is deleted takes its counts out of the books with it. */
class OnlyUp {
  readonly #seen = new Map<string, number>()
  readonly #lost = new Map<string, number>()

  books(counts: Counts): Counts {
    const { targets, ...rest } = counts
    const grown = Object.entries(rest).map(([name, value]) => [name, this.#grow(name, value)])
    return { targets, ...(Object.fromEntries(grown) as typeof rest) }
  }

  #grow(name: string, value: number): number {
    const lost = Math.max(0, (this.#seen.get(name) ?? 0) - value) + (this.#lost.get(name) ?? 0)
    this.#seen.set(name, value)
    this.#lost.set(name, lost)
    return value + lost
  }
}

/** How many of each, those that are none among them. */
function tally(keys: readonly string[], found: readonly string[]): Record<string, number> {
  const counts = Object.fromEntries(keys.map((key) => [key, 0]))
  for (const key of found) counts[key] = (counts[key] ?? 0) + 1
  return counts
}
