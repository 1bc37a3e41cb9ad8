import { setImmediate as breathe } from 'node:timers/promises'
import type { Id, RunId, WorkerId } from '../../../core/model/id.ts'
import type { AdoptedRef, Run } from '../../../core/model/run.ts'
import type { Store } from '../../../core/store/store.ts'
import { adoptedId, WHOLE_TABLE } from '../ids.ts'
import type { Mapping } from '../mapping.ts'
import { Complaints } from './error-throttle.ts'
import { isActive, isOpen, liveRows } from './reading.ts'
import {
  idsOf,
  seeRun,
  seeTarget,
  wholeTable,
  type Facts,
  type Reopened,
  type Seen,
} from './row-run.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { sealOf } from './row-hash.ts'
import { Tables } from './tables.ts'
import { askAll, NOTHING_TOLD } from './callbacks.ts'
import { Whereabouts } from './row-locator.ts'
import { wordsOf } from './status-mapping.ts'

/** All that is live at one moment. */
export type AllLive = {
  /** Rows that are runs. */
  readonly runs: readonly Seen[]
  /** Tables that are one run each, and what of them is in progress. */
  readonly wholes: readonly { readonly run: Run; readonly active: readonly Seen[] }[]
  /** Those of them that somebody is known to have, by that worker. */
  readonly held: Map<WorkerId, Seen>
}

type Options = {
  readonly address: string
  readonly log: (line: string) => void
  readonly policyOf: Facts['policyOf']
}

const LOOK_LASTS_MS = 10_000
const WHOLE_LASTS_MS = 1_000
const SAID_MAX = 1_000
/** So many rows are seen in one go: then others have their turn. */
const BREATH = 1_000

/** The rows of users' own tables, seen as runs, targets and workers, and found again by the ids that they have as such. */
export class AdoptedRows {
  readonly log: (line: string) => void
  readonly #store: Store
  readonly #policyOf: Facts['policyOf']
  readonly tables: Tables
  readonly where: Whereabouts
  /** `isNow`: nothing has happened since it was begun. */
  #lastLook: { at: number; isNow: boolean; readonly all: Promise<AllLive> } | null = null
  readonly #wholes = new Map<AdoptedTable, { readonly until: number; readonly run: Promise<Run> }>()
  readonly #said = new Set<string>()
  readonly #complaints: Complaints
  /** Opened again by a person, and moved on since. */
  readonly moved = new Set<Id>()

  constructor(store: Store, mappings: readonly Mapping[], options: Options) {
    this.#store = store
    this.log = options.log
    this.#complaints = new Complaints(options.log)
    this.#policyOf = options.policyOf
    this.tables = new Tables(mappings, options)
    this.where = new Whereabouts(store, this.tables)
  }

  /** These rows as everybody else sees them. Only of live ones more is asked than the row itself says. */
  async see(table: AdoptedTable, rows: readonly AdoptedRow[], whole?: Run): Promise<Seen[]> {
    if (rows.length === 0) return []
    const { mapping } = table
    const { now, serverStartedAt } = await table.clock()
    const open = rows.filter(({ word }) => isOpen(mapping, word))
    const asked = open.map((row) => ({ row, isActive: isActive(mapping, row.word) }))
    const told = new Map(
      (await askAll(mapping, asked, this.#complaints)).map((one, at) => [open[at]!.key, one]),
    )
    const reopened = await this.#reopened(table, open)
    const run = mapping.kind === 'targets' ? (whole ?? (await this.#aboutWhole(table))) : null
    const all: Seen[] = []
    for (const row of rows) {
      if (all.length % BREATH === BREATH - 1) await breathe()
      const facts = {
        now,
        serverStartedAt,
        told: told.get(row.key) ?? NOTHING_TOLD,
        reopened: reopened.get(row.key) ?? null,
        policyOf: this.#policyOf,
      }
      const seen = sealed(run ? seeTarget(table, row, run, facts) : seeRun(table, row, facts))
      this.#remember(seen)
      all.push(seen)
    }
    return all
  }

  /**
   * This row, if it still is what was judged. Nobody is asked about it again: the judgement is made. `whole`: the run
   * that its table is.
   */
  async seeStill(
    { table: name, key }: AdoptedRef,
    seal: string | undefined,
    whole?: Run,
  ): Promise<Seen | null> {
    const table = (await this.tables.usable()).find(({ mapping }) => mapping.name === name)
    if (!table) return null
    const read = await this.tables.askOne(table, () => Promise.all([table.row(key), table.clock()]))
    const [row, clock] = read ?? [null, null]
    if (!row || !clock || sealOf(row) !== seal) return null
    const facts = { ...clock, told: NOTHING_TOLD, reopened: null }
    return whole ? seeTarget(table, row, whole, facts) : seeRun(table, row, facts)
  }

  /** Those that a person opened again, and the word that they were left with. */
  async #reopened(
    { mapping }: AdoptedTable,
    rows: readonly AdoptedRow[],
  ): Promise<Map<string, Reopened>> {
    const found = new Map<string, Reopened>()
    if (rows.length === 0) return found
    const isRun = mapping.kind === 'runs'
    const ids = rows.map((row) => (isRun ? idsOf(mapping, row).run : idsOf(mapping, row).target))
    for (const { id, key, reopenedAt: at } of await this.#store.adoptedRows(ids)) {
      if (at === null) continue
      const of = isRun
        ? { run: id }
        : { run: adoptedId(mapping.name, WHOLE_TABLE, 'run'), target: id }
      const [last] = await this.#store.audit({ ...of, newestFirst: true, limit: 1 })
      const { word } = (last?.after ?? {}) as { word?: unknown }
      found.set(key, { at, word: typeof word === 'string' ? word : null })
    }
    return found
  }

  /** The one run that a table of targets is. */
  async whole(table: AdoptedTable, active?: readonly AdoptedRow[]): Promise<Run> {
    const { mapping } = table
    const [counts, { now }] = await Promise.all([table.counts(), table.clock()])
    // What is at work is found by its word; the newest of all takes a look at each.
    const words = wordsOf(mapping, ['in_progress'])
    const [newest] = active ?? (await table.rows({ words, limit: 1 }))
    const run = wholeTable(
      mapping,
      counts,
      newest ?? (await table.rows({ limit: 1 }))[0] ?? null,
      now,
    )
    this.where.show(run.id, { table: table.mapping.name, key: WHOLE_TABLE })
    return run
  }

  /** The same for those to whom a moment does not matter: to look at a target is not to count them all. */
  #aboutWhole(table: AdoptedTable): Promise<Run> {
    const now = performance.now()
    const known = this.#wholes.get(table)
    if (known && now < known.until) return known.run
    const run = this.whole(table)
    this.#wholes.set(table, { until: now + WHOLE_LASTS_MS, run })
    run.catch(() => this.#wholes.delete(table))
    return run
  }

  /** All that is live now. Asked for twice in one breath, it is one look. */
  look(): Promise<AllLive> {
    if (this.#lastLook?.isNow) return this.#lastLook.all
    const look = { at: performance.now(), isNow: true, all: this.#lookNow() }
    this.#lastLook = look
    queueMicrotask(() => {
      look.isNow = false
    })
    return look.all
  }

  async #lookNow(): Promise<AllLive> {
    const looks = await this.tables.ask(async (table) => {
      const rows = await liveRows(table)
      if (table.mapping.kind === 'runs') return { runs: await this.see(table, rows), wholes: [] }
      const run = await this.whole(table, rows)
      return { runs: [], wholes: [{ run, active: await this.see(table, rows, run) }] }
    })
    const runs = looks.flatMap((one) => one.runs)
    const wholes = looks.flatMap((one) => one.wholes)
    const held = [...runs, ...wholes.flatMap(({ active }) => active)]
      .filter(({ witnessed }) => witnessed !== null)
      .map((seen) => [seen.witnessed!.worker.id, seen] as const)
    return { runs, wholes, held: new Map(held) }
  }

  /** What a worker holds, as of the look in which it was seen: asked for once, it costs nothing more. */
  async heldBy(worker: WorkerId): Promise<Seen | null> {
    const last = this.#lastLook
    const isFresh = last !== null && performance.now() < last.at + LOOK_LASTS_MS
    const held = isFresh ? (await last.all.catch(() => null))?.held : undefined
    const seen = held?.get(worker)
    held?.delete(worker)
    if (seen && last) {
      // Who goes through very many of them gets all from the one look, however long that takes.
      last.at = performance.now()
      return seen
    }
    const now = await this.seeId(worker)
    return now?.witnessed ? now : null
  }

  /** Whatever row has this id, as a run, a target or a worker; not for the run that a whole table is. */
  async seeId(id: Id): Promise<Seen | null> {
    const found = await this.where.find(id)
    const row = found && found.key !== WHOLE_TABLE ? await found.table.row(found.key) : null
    const [seen] = row ? await this.see(found!.table, [row]) : []
    return seen ?? null
  }

  /** A run by its id, be it a row or a whole table. */
  async run(id: RunId): Promise<Run | null> {
    const found = await this.where.find(id)
    if (found?.key === WHOLE_TABLE) return this.whole(found.table)
    const seen = found && (await this.seeId(id))
    return seen?.run.id === id ? seen.run : null
  }

  #remember({ table, row, run, target, witnessed, hasMoved }: Seen): void {
    const { name, kind } = table.mapping
    const ref = { table: name, key: row.key }
    if (kind === 'runs') this.where.show(run.id, ref)
    this.where.show(target.id, ref)
    if (witnessed) this.where.show(witnessed.worker.id, ref)
    if (hasMoved) this.moved.add(kind === 'runs' ? run.id : target.id)
  }

  /** To the log, however often it is so. */
  sayOnce(line: string): void {
    if (this.#said.has(line)) return
    if (this.#said.size === SAID_MAX) this.#said.clear()
    this.#said.add(line)
    this.log(line)
  }
}

/** What is judged of it says what exactly was seen: what is done because of that is done to this and nothing newer. */
function sealed(seen: Seen): Seen {
  const { table, row, run, witnessed } = seen
  if (!isOpen(table.mapping, row.word)) return seen
  const seal = sealOf(row)
  return {
    ...seen,
    run: table.mapping.kind === 'runs' ? { ...run, seal } : run,
    witnessed: witnessed && { ...witnessed, evidence: { ...witnessed.evidence, seal } },
  }
}
