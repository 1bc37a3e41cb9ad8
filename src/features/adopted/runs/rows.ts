import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import type { Id, RunId, WorkerId } from '../../../core/model/id.ts'
import type { Run, RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { RunOrigin } from '../../../core/model/traits.ts'
import type { Store } from '../../../core/store/store.ts'
import type { AdoptedStore, RememberedRow } from '../store/store.ts'
import { adoptedId, TABLE_RUN_KEY } from '../ids.ts'
import type { Mapping } from '../mapping.ts'
import { callUserFunctions, ErrorThrottle, NO_RESULTS } from './callbacks.ts'
import { liveRows } from './row-queries.ts'
import {
  activityFields,
  idsOf,
  resolveRow,
  toTableRun,
  type RowFacts,
  type Reopened,
  type ResolvedRow,
} from './row-run.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { hashRow, hashTableRun } from './row-hash.ts'
import { AdoptedTables } from './tables.ts'
import { RowLocator } from './row-locator.ts'
import { isActive, isOpen, statusOf, statusValuesFor } from './status-mapping.ts'

/** All live rows at one time. */
export type LiveRows = {
  /** Rows of tables of runs. */
  readonly runs: readonly ResolvedRow[]
  /** Tables of targets, each as one run, with its rows in progress. */
  readonly tableRuns: readonly { readonly run: Run; readonly active: readonly ResolvedRow[] }[]
  /** Rows with a known worker, by its id. */
  readonly byWorker: Map<WorkerId, ResolvedRow>
}

type AdoptedRowsOptions = {
  readonly address: string
  readonly log: (line: string) => void
  readonly policyOf?: RowFacts['policyOf']
}

const LIVE_TTL_MS = 10_000
const TABLE_RUN_TTL_MS = 1_000
const LOGGED_MAX = 1_000
/** Rows in progress that are read for the last activity of a table in a list. */
const TABLE_ROWS_MAX = 100
/** Rows processed before the event loop gets its turn. */
const YIELD_EVERY = 1_000

/** Rows of adopted tables as runs, targets and workers, and the way back from their ids to the rows. */
export class AdoptedRows {
  readonly log: (line: string) => void
  readonly #store: Store
  readonly #adopted: AdoptedStore
  readonly #policyOf: RowFacts['policyOf']
  readonly tables: AdoptedTables
  readonly locator: RowLocator
  /** `isCurrent`: nothing was changed since it started. */
  #lastLoad: { at: number; isCurrent: boolean; readonly all: Promise<LiveRows> } | null = null
  readonly #tableRuns = new Map<
    AdoptedTable,
    { readonly until: number; readonly run: Promise<Run> }
  >()
  readonly #logged = new Set<string>()
  readonly #errorThrottle: ErrorThrottle
  /** Reopened rows that have changed since. */
  readonly #moved = new Set<Id>()

  constructor(
    store: Store,
    adopted: AdoptedStore,
    mappings: readonly Mapping[],
    options: AdoptedRowsOptions,
  ) {
    this.#store = store
    this.#adopted = adopted
    this.log = options.log
    this.#errorThrottle = new ErrorThrottle(options.log)
    this.#policyOf = options.policyOf
    this.tables = new AdoptedTables(mappings, options)
    this.locator = new RowLocator(adopted, this.tables)
  }

  /** Resolves rows to runs and targets. Calls the user's functions for live rows only. */
  async resolve(
    table: AdoptedTable,
    rows: readonly AdoptedRow[],
    tableRun?: Run,
  ): Promise<ResolvedRow[]> {
    if (rows.length === 0) return []
    const { mapping } = table
    const { now, serverStartedAt } = await table.clock()
    const open = rows.filter((row) => isOpen(mapping, row))
    const openRows = open.map((row) => ({ row, isActive: isActive(mapping, row) }))
    const callbackResults = new Map(
      (await callUserFunctions(mapping, openRows, this.#errorThrottle)).map((one, at) => [
        open[at]!.key,
        one,
      ]),
    )
    const remembered = await this.#remembered(table, rows)
    const reopened = await this.#reopened(
      table,
      open.flatMap(({ key }) => remembered.get(key) ?? []),
    )
    const run =
      mapping.kind === 'targets' ? (tableRun ?? (await this.#cachedTableRun(table))) : null
    const all: ResolvedRow[] = []
    for (const row of rows) {
      if (all.length % YIELD_EVERY === YIELD_EVERY - 1) await yieldToEventLoop()
      const facts = {
        now,
        serverStartedAt,
        callbackResults: callbackResults.get(row.key) ?? NO_RESULTS,
        reopened: reopened.get(row.key) ?? null,
        acknowledgedAt: acknowledgedAt(remembered.get(row.key), () => hashRow(row)),
        policyOf: this.#policyOf,
      }
      const resolved = withRowHash(resolveRow(table, row, run, facts))
      this.#remember(resolved)
      all.push(resolved)
    }
    return all
  }

  /**
   * Returns the row if it has not changed since it was assessed. The user's functions are not called again. `tableRun`: of
   * a table of targets.
   */
  async resolveUnchanged(
    { table: name, key }: RunOrigin,
    rowHash: string | undefined,
    tableRun: Run | null,
  ): Promise<ResolvedRow | null> {
    const table = await this.tables.find(name)
    if (!table) return null
    const read = await this.tables.query(table, () => Promise.all([table.row(key), table.clock()]))
    const [row, clock] = read ?? [null, null]
    if (!row || !clock || hashRow(row) !== rowHash) return null
    const facts = { ...clock, callbackResults: NO_RESULTS, reopened: null }
    return resolveRow(table, row, tableRun, facts)
  }

  /** Reads what is remembered of rows that are open or may need attention. */
  async #remembered(
    { mapping }: AdoptedTable,
    rows: readonly AdoptedRow[],
  ): Promise<Map<string, RememberedRow>> {
    const kept = rows.filter((row) => !NEVER_ACKNOWLEDGED.has(statusOf(mapping, row)))
    if (kept.length === 0) return new Map()
    const ids = kept.map((row) => idsOf(mapping, row)[mapping.kind === 'runs' ? 'run' : 'target'])
    const found = await this.#adopted.rememberedRows(ids)
    return new Map(found.map((one) => [one.key, one]))
  }

  /** Returns when each row was reopened, with the status that it had then. */
  async #reopened(
    { mapping }: AdoptedTable,
    remembered: readonly RememberedRow[],
  ): Promise<Map<string, Reopened>> {
    const found = new Map<string, Reopened>()
    for (const { id, key, reopenedAt: at } of remembered) {
      if (at === null) continue
      const of =
        mapping.kind === 'runs'
          ? { run: id }
          : { run: adoptedId(mapping.name, TABLE_RUN_KEY, 'run'), target: id }
      const [last] = await this.#store.audit({ ...of, newestFirst: true, limit: 1 })
      const { statusValue } = (last?.after ?? {}) as { statusValue?: unknown }
      found.set(key, { at, status: typeof statusValue === 'string' ? statusValue : null })
    }
    return found
  }

  /** Returns the one run of a table of targets. */
  async tableRun(table: AdoptedTable, active?: readonly AdoptedRow[]): Promise<Run> {
    const { mapping } = table
    const [counts, { now }] = await Promise.all([table.counts(), table.clock()])
    // Rows in progress are found by their status; the last active ones of all need a scan.
    const statusValues = statusValuesFor(mapping, ['in_progress'])
    let rows = active ?? (await table.rows({ statusValues, limit: TABLE_ROWS_MAX }))
    if (rows.length === 0) rows = await table.latestRows(activityFields(mapping))
    if (rows.length === 0) rows = await table.rows({ limit: 1 })
    const run = toTableRun(mapping, counts, rows, now)
    this.locator.remember(run.id, { table: table.mapping.name, key: TABLE_RUN_KEY })
    const [known] = await this.#adopted.rememberedRows([run.id])
    return { ...run, acknowledgedAt: acknowledgedAt(known, () => hashTableRun(run)) }
  }

  /** Returns the same from a cache of a short time, so that reading one target does not count all of them. */
  #cachedTableRun(table: AdoptedTable): Promise<Run> {
    const now = performance.now()
    const known = this.#tableRuns.get(table)
    if (known && now < known.until) return known.run
    const run = this.tableRun(table)
    this.#tableRuns.set(table, { until: now + TABLE_RUN_TTL_MS, run })
    run.catch(() => this.#tableRuns.delete(table))
    return run
  }

  /** Loads all live rows. Concurrent calls share one load. */
  loadLive(): Promise<LiveRows> {
    if (this.#lastLoad?.isCurrent) return this.#lastLoad.all
    const load = { at: performance.now(), isCurrent: true, all: this.#loadLiveNow() }
    this.#lastLoad = load
    queueMicrotask(() => {
      load.isCurrent = false
    })
    return load.all
  }

  async #loadLiveNow(): Promise<LiveRows> {
    const loads = await this.tables.queryAll(async (table) => {
      const rows = await liveRows(table)
      if (table.mapping.kind === 'runs')
        return { runs: await this.resolve(table, rows), tableRuns: [] }
      const run = await this.tableRun(table, rows)
      return { runs: [], tableRuns: [{ run, active: await this.resolve(table, rows, run) }] }
    })
    const runs = loads.flatMap((one) => one.runs)
    const tableRuns = loads.flatMap((one) => one.tableRuns)
    const byWorker = [...runs, ...tableRuns.flatMap(({ active }) => active)]
      .filter(({ observation }) => observation !== null)
      .map((resolved) => [resolved.observation!.worker.id, resolved] as const)
    return { runs, tableRuns, byWorker: new Map(byWorker) }
  }

  /** Returns the row that a worker has claimed, from the last load. */
  async claimOf(worker: WorkerId): Promise<ResolvedRow | null> {
    const last = this.#lastLoad
    const isFresh = last !== null && performance.now() < last.at + LIVE_TTL_MS
    const byWorker = isFresh ? (await last.all.catch(() => null))?.byWorker : undefined
    const resolved = byWorker?.get(worker)
    byWorker?.delete(worker)
    if (resolved && last) {
      // A caller that iterates over many workers gets all of them from one load, however long that takes.
      last.at = performance.now()
      return resolved
    }
    const now = await this.resolveId(worker)
    return now?.observation ? now : null
  }

  /** Returns the row with this id of a run, target or worker; null for the run of a whole table. */
  async resolveId(id: Id): Promise<ResolvedRow | null> {
    const found = await this.locator.find(id)
    const row = found && found.key !== TABLE_RUN_KEY ? await found.table.row(found.key) : null
    const [resolved] = row ? await this.resolve(found!.table, [row]) : []
    return resolved ?? null
  }

  /** Returns a run by id: a row, or a whole table. */
  async run(id: RunId): Promise<Run | null> {
    const found = await this.locator.find(id)
    if (found?.key === TABLE_RUN_KEY) return this.tableRun(found.table)
    const resolved = found && (await this.resolveId(id))
    return resolved?.run.id === id ? resolved.run : null
  }

  #remember({ table, row, run, target, observation, hasMoved }: ResolvedRow): void {
    const { name, kind } = table.mapping
    const ref = { table: name, key: row.key }
    if (kind === 'runs') this.locator.remember(run.id, ref)
    this.locator.remember(target.id, ref)
    if (observation) this.locator.remember(observation.worker.id, ref)
    if (hasMoved) this.#moved.add(kind === 'runs' ? run.id : target.id)
  }

  /** Lets automatic recovery act again on reopened rows that have changed since. */
  async forgetReopeningOfMoved(): Promise<void> {
    const moved = [...this.#moved]
    this.#moved.clear()
    if (moved.length > 0) await this.#adopted.forgetReopening(moved)
  }

  /** Logs a line once. */
  logOnce(line: string): void {
    if (this.#logged.has(line)) return
    if (this.#logged.size === LOGGED_MAX) this.#logged.clear()
    this.#logged.add(line)
    this.log(line)
  }
}

/** A row with one of these statuses has nothing to acknowledge. */
const NEVER_ACKNOWLEDGED: ReadonlySet<RunStatus | TargetStatus> = new Set([
  'succeeded',
  'done',
  'cancelled',
])

/** Returns when the row was acknowledged; null if it was not, or has changed since. */
function acknowledgedAt(known: RememberedRow | undefined, hashNow: () => string): Millis | null {
  const mark = known?.acknowledged
  return mark && mark.hash === hashNow() ? mark.at : null
}

/** Adds the hash of the row to the run, so that a verdict is applied only to the row that was assessed. */
function withRowHash(resolved: ResolvedRow): ResolvedRow {
  const { table, row, run, observation } = resolved
  if (!isOpen(table.mapping, row)) return resolved
  const rowHash = hashRow(row)
  return {
    ...resolved,
    run: table.mapping.kind === 'runs' ? { ...run, rowHash } : run,
    observation: observation && {
      ...observation,
      evidence: { ...observation.evidence, rowHash },
    },
  }
}
