import type { Id, RunId, WorkerId } from '../../model/id.ts'
import type { AdoptedRef, Run } from '../../model/run.ts'
import type { Evidence } from '../../model/worker.ts'
import type { Store } from '../../store/store.ts'
import { adoptedId, isAdoptedId, WHOLE_TABLE, type Part } from '../ids.ts'
import type { Mapping } from '../mapping.ts'
import { openAdoptedTable } from '../table/open-table.ts'
import { isActive, isOpen, liveRows } from './reading.ts'
import { idsOf, seeRun, seeTarget, wholeTable, type Reopened, type Seen } from './row-run.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { askAll, NOTHING_TOLD } from './user-functions.ts'
import { wordsOf } from './words.ts'

/** All that is live at one moment. */
export type Look = {
  /** Rows that are runs. */
  readonly runs: readonly Seen[]
  /** Tables that are one run each, and what of them is in progress. */
  readonly wholes: readonly { readonly run: Run; readonly active: readonly Seen[] }[]
}

export type Found = { readonly table: AdoptedTable; readonly key: string }

type Options = {
  readonly address: string
  readonly log: (line: string) => void
  /** Once, before anything is read. */
  readonly whenOpened: (tables: readonly AdoptedTable[]) => Promise<void>
}

const KEYS_PAGE = 5_000
const SHOWN_MAX = 50_000
const LOOK_LASTS_MS = 10_000
const WHOLE_LASTS_MS = 1_000
const ENDING_MAX = 10

/** The rows of users' own tables, seen as runs, targets and workers, and found again by the ids that they have as such. */
export class AdoptedRows {
  readonly #mappings: readonly Mapping[]
  readonly log: (line: string) => void
  readonly #store: Store
  readonly #address: string
  readonly #whenOpened: Options['whenOpened']
  #tables: Promise<AdoptedTable[]> | null = null
  /** The tables that are open, for those who cannot wait. */
  opened: readonly AdoptedTable[] = []
  #look: Promise<Look> | null = null
  /** Where the rows are that were shown: those of late, and those before them. */
  #shown = new Map<Id, AdoptedRef>()
  #shownBefore = new Map<Id, AdoptedRef>()
  /** What each piece of evidence was gathered from: what is done because of it is done to this and nothing newer. */
  readonly #judged = new WeakMap<Evidence, Seen>()
  #held: { readonly until: number; readonly seen: Map<WorkerId, Seen> } | null = null
  readonly #wholes = new Map<AdoptedTable, { readonly until: number; readonly run: Promise<Run> }>()
  readonly #said = new Set<string>()
  /** Opened again by a person, and moved on since. */
  readonly moved = new Set<Id>()

  constructor(store: Store, mappings: readonly Mapping[], options: Options) {
    this.#store = store
    this.#mappings = mappings
    this.#address = options.address
    this.log = options.log
    this.#whenOpened = options.whenOpened
  }

  /** All of them, found and checked at the first call. What fails is tried again at the next. */
  tables(): Promise<AdoptedTable[]> {
    this.#tables ??= this.#open().catch((error: unknown) => {
      this.#tables = null
      throw error
    })
    return this.#tables
  }

  async #open(): Promise<AdoptedTable[]> {
    const opened: AdoptedTable[] = []
    try {
      for (const mapping of this.#mappings)
        opened.push(await openAdoptedTable(mapping, mapping.db ?? this.#address))
    } catch (error) {
      await Promise.allSettled(opened.map((table) => table.close()))
      throw error
    }
    this.opened = opened
    await this.#whenOpened(opened)
    return opened
  }

  async close(): Promise<void> {
    const tables = await this.#tables?.catch(() => [])
    this.#tables = null
    this.opened = []
    await Promise.allSettled((tables ?? []).map((table) => table.close()))
  }

  /** These rows as everybody else sees them. Only of live ones more is asked than the row itself says. */
  async see(table: AdoptedTable, rows: readonly AdoptedRow[], whole?: Run): Promise<Seen[]> {
    if (rows.length === 0) return []
    const { mapping } = table
    const { now, serverStartedAt } = await table.clock()
    const open = rows.filter(({ word }) => isOpen(mapping, word))
    const asked = open.map((row) => ({ row, isActive: isActive(mapping, row.word) }))
    const told = new Map(
      (await askAll(mapping, asked, this.log)).map((one, at) => [open[at]!.key, one]),
    )
    const reopened = await this.#reopened(table, open)
    const run = mapping.kind === 'targets' ? (whole ?? (await this.#aboutWhole(table))) : null
    return rows.map((row) => {
      const facts = {
        now,
        serverStartedAt,
        told: told.get(row.key) ?? NOTHING_TOLD,
        reopened: reopened.get(row.key) ?? null,
      }
      const seen = run ? seeTarget(table, row, run, facts) : seeRun(table, row, facts)
      this.#remember(seen)
      return seen
    })
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
    this.#show(run.id, { table: table.mapping.name, key: WHOLE_TABLE })
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
  look(): Promise<Look> {
    if (this.#look) return this.#look
    const look = this.#lookNow()
    this.#look = look
    queueMicrotask(() => {
      this.#look = null
    })
    return look
  }

  async #lookNow(): Promise<Look> {
    const tables = await this.tables()
    const looks = await Promise.all(
      tables.map(async (table) => {
        if (table.mapping.kind === 'runs')
          return { runs: await this.see(table, await liveRows(table)), wholes: [] }
        const active = await liveRows(table)
        const run = await this.whole(table, active)
        return { runs: [], wholes: [{ run, active: await this.see(table, active, run) }] }
      }),
    )
    const look = {
      runs: looks.flatMap(({ runs }) => runs),
      wholes: looks.flatMap(({ wholes }) => wholes),
    }
    const held = allSeen(look).filter(({ witnessed }) => witnessed !== null)
    this.#held = {
      until: performance.now() + LOOK_LASTS_MS,
      seen: new Map(held.map((seen) => [seen.witnessed!.worker.id, seen])),
    }
    return look
  }

  /** What a worker holds, as of the look in which it was seen: asked for once, it costs nothing more. */
  async heldBy(worker: WorkerId): Promise<Seen | null> {
    const held = this.#held && performance.now() < this.#held.until ? this.#held.seen : null
    const seen = held?.get(worker)
    held?.delete(worker)
    if (seen) return seen
    const now = await this.seeId(worker)
    return now?.witnessed ? now : null
  }

  /** The row that this evidence is about, as it was when the evidence was gathered. */
  judgedBy(evidence: Evidence): Seen | null {
    return this.#judged.get(evidence) ?? null
  }

  /** Whatever row has this id, as a run, a target or a worker; not for the run that a whole table is. */
  async seeId(id: Id): Promise<Seen | null> {
    const found = await this.find(id)
    const row = found && found.key !== WHOLE_TABLE ? await found.table.row(found.key) : null
    const [seen] = row ? await this.see(found!.table, [row]) : []
    return seen ?? null
  }

  /** A run by its id, be it a row or a whole table. */
  async run(id: RunId): Promise<Run | null> {
    const found = await this.find(id)
    if (found?.key === WHOLE_TABLE) return this.whole(found.table)
    const seen = found && (await this.seeId(id))
    return seen?.run.id === id ? seen.run : null
  }

  /** Among the rows that were shown, then those that anything was ever done to, then all. */
  async find(id: Id): Promise<Found | null> {
    if (!isAdoptedId(id)) return null
    const tables = await this.tables()
    const at = ({ table: name, key }: AdoptedRef): Found | null => {
      const table = tables.find(({ mapping }) => mapping.name === name)
      return table ? { table, key } : null
    }
    const known = this.#whereShown(id) ?? (await this.#store.adoptedRows([id]))[0]
    if (known) return at(known)
    await this.#walk((one) => one === id, ['run', 'target', 'worker'], 1)
    const walked = this.#whereShown(id)
    return walked ? at(walked) : null
  }

  /** The ids of runs, or of targets, that end so. */
  async ending(suffix: string, part: Part): Promise<Id[]> {
    const fits = (id: Id): boolean => id.endsWith(suffix)
    const remembered = await this.#store.adoptedEnding(suffix)
    const shown = [...this.#shown.keys(), ...this.#shownBefore.keys()].filter(fits)
    const known = new Set([...shown, ...remembered])
    if (known.size === 0) for (const id of await this.#walk(fits, [part], ENDING_MAX)) known.add(id)
    const ids: Id[] = []
    for (const id of known) {
      const found = await this.find(id)
      if (found && adoptedId(found.table.mapping.name, found.key, part) === id) ids.push(id)
    }
    return ids
  }

  /** Looks at the ids of all rows there are. */
  async #walk(fits: (id: Id) => boolean, parts: readonly Part[], max: number): Promise<Id[]> {
    const ids: Id[] = []
    for (const table of await this.tables()) {
      const { name, kind } = table.mapping
      const look = (key: string, of: readonly Part[]): void => {
        for (const part of of) {
          const id = adoptedId(name, key, part)
          this.#show(id, { table: name, key })
          if (fits(id)) ids.push(id)
        }
      }
      const ofRows = parts.filter((part) => kind === 'runs' || part !== 'run')
      if (kind === 'targets' && parts.includes('run')) look(WHOLE_TABLE, ['run'])
      for (let after: string | null = null; ofRows.length > 0 && ids.length < max;) {
        const keys: string[] = await table.keys(after, KEYS_PAGE)
        for (const key of keys) look(key, ofRows)
        if (keys.length < KEYS_PAGE) break
        after = keys.at(-1)!
      }
    }
    return ids
  }

  #remember(seen: Seen): void {
    const { table, row, run, target, witnessed, hasMoved } = seen
    const { name, kind } = table.mapping
    const ref = { table: name, key: row.key }
    if (kind === 'runs') this.#show(run.id, ref)
    this.#show(target.id, ref)
    if (witnessed) {
      this.#show(witnessed.worker.id, ref)
      this.#judged.set(witnessed.evidence, seen)
    }
    if (hasMoved) this.moved.add(kind === 'runs' ? run.id : target.id)
  }

  #show(id: Id, ref: AdoptedRef): void {
    if (this.#shown.size === SHOWN_MAX) {
      this.#shownBefore = this.#shown
      this.#shown = new Map()
    }
    this.#shown.set(id, ref)
  }

  #whereShown(id: Id): AdoptedRef | undefined {
    return this.#shown.get(id) ?? this.#shownBefore.get(id)
  }

  /** To the log, however often it is so. */
  sayOnce(line: string): void {
    if (this.#said.has(line)) return
    this.#said.add(line)
    this.log(line)
  }
}

/** Everything in it that may be held. */
export function allSeen({ runs, wholes }: Look): Seen[] {
  return [...runs, ...wholes.flatMap(({ active }) => active)]
}
