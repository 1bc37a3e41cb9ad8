import { messageOf, Refused, UsageError } from '../../model/errors.ts'
import { newId, type Id, type TargetId } from '../../model/id.ts'
import { sayRow } from '../../model/run.ts'
import type { AuditEntry, Deed, Intent, NewIntent, Store } from '../../store/store.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow, AdoptedTable, Change } from '../table/table.ts'
import { isPutBack } from './reading.ts'
import type { Resumption } from './resumption.ts'
import type { Seen } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import { keepStamp, stampBefore, stampIn, wroteOf } from './stamps.ts'
import { runStatusOf, targetStatusOf } from './words.ts'

/** What of a table can be written to, and by whom. */
export type Desk = {
  /** Our own, for the trail. */
  readonly store: Store
  readonly rows: AdoptedRows
  readonly resumption: Resumption
}

/** Something that is to be done to a row, and how it is told in the trail. */
export type RowDeed = Deed & {
  readonly action: string
  readonly evidence: unknown
  readonly change: Change
  /** Null: it is about the row as a run. */
  readonly target: TargetId | null
  /** What else the trail says of how it was, and is then. */
  readonly before?: Record<string, unknown>
  readonly after?: Record<string, unknown>
  /** A person opens it again: nothing automatic ends it until it has moved on. */
  readonly reopens?: boolean
  /** Nobody waits for an answer: what the user's database throws is logged, and stops nothing else. */
  readonly isAutomatic?: boolean
}

/** So long a process may take between its intent and what became of it. */
const LEFT_AFTER_MS = 30_000
/** Those of tables that this config does not have may yet be settled by somebody whose config has them. */
const STRANGE_AFTER_MS = 3_600_000
const LEFT_PAGE = 100
const TRAIL_MAX = 1_000
const ENTER_TRIES = 5

/**
 * Does it, if the row still is what was seen: then it is in the trail, once, and what went back in line is started. False
 * when somebody was faster. Two databases have no transaction in common, so the intent comes first: whoever dies in
 * between leaves it to the next one, who sees by the row what became of it.
 */
export async function carryOut(
  desk: Desk,
  seen: Pick<Seen, 'table' | 'row' | 'run' | 'target'>,
  deed: RowDeed,
): Promise<boolean> {
  const { store, rows, resumption } = desk
  const { table, row } = seen
  const intent = intentOf(seen, deed)
  await store.intend(intent)
  let changed: AdoptedRow | null
  try {
    changed = await table.change(row, deed.change)
  } catch (error) {
    // What the database says no to was not done; after anything else nobody knows yet.
    if (error instanceof Refused || error instanceof UsageError)
      await store.concludeIntent(intent.id, false)
    if (!deed.isAutomatic) throw error
    rows.sayOnce(`${deed.action} of ${sayRow(intent.ref)}: ${messageOf(error)}`)
    return false
  }
  if (!changed) {
    await store.concludeIntent(intent.id, false)
    return false
  }
  const isOurs = await enter(store, intent)
  if (isOurs && isResumption(table.mapping, intent.entry)) resumption.start(table.mapping, changed)
  return true
}

/**
 * The deed is done, and is in the trail afterwards. Who was slower than others wait for finds its intent settled by one of
 * them: if they saw nothing of it yet, it is entered all the same. False when they have entered it, and started the row.
 */
async function enter(store: Store, intent: NewIntent): Promise<boolean> {
  for (let tries = 1; tries <= ENTER_TRIES; tries++) {
    if (await store.concludeIntent(intent.id, true)) return true
    const entry = await entryOf(store, intent)
    if (entry) return isUnsure(entry)
    await store.intend(intent)
  }
  return true
}

async function entryOf(store: Store, { id, entry }: NewIntent): Promise<AuditEntry | undefined> {
  const { run, target } = entry
  const of = { ...(run !== null && { run }), ...(target !== null && { target }) }
  const trail = await store.audit({ ...of, newestFirst: true, limit: TRAIL_MAX })
  return trail.find(({ before }) => (before as { intent?: Id } | null)?.intent === id)
}

function isUnsure({ after }: Pick<AuditEntry, 'after'>): boolean {
  return (after as { unsure?: unknown } | null)?.unsure === true
}

function intentOf(
  { table: { mapping }, row, run, target }: Pick<Seen, 'table' | 'row' | 'run' | 'target'>,
  deed: RowDeed,
): NewIntent {
  const { actor, action, because, evidence, change, reopens = false } = deed
  const isRun = deed.target === null
  const word = change.word ?? String(change.restore?.[mapping.columns.status] ?? row.word)
  const id = newId()
  const ref = { table: mapping.name, key: row.key }
  const entry = {
    actor,
    action,
    because,
    evidence,
    source: run.source,
    run: run.id,
    target: deed.target,
    before: {
      status: isRun ? run.status : target.status,
      ...deed.before,
      word: row.word,
      ...ref,
      stamp: keepStamp(stampBefore(mapping, row, change)),
      intent: id,
    },
    after: {
      status: isRun ? runStatusOf(mapping, word) : targetStatusOf(mapping, word),
      ...deed.after,
      word,
      ...wroteOf(mapping, change),
    },
  }
  return { id, row: mapping.kind === 'runs' ? run.id : target.id, ref, entry, reopens }
}

/** Those that a process which died has left, on these tables. What goes wrong with one is logged, and it stays. */
export async function settleLeft(desk: Desk, tables: readonly AdoptedTable[]): Promise<void> {
  const { store, rows } = desk
  const tried = new Set<Id>()
  try {
    // Those that stay must not hide the ones behind them.
    for (let limit = LEFT_PAGE; ; limit *= 4) {
      const left = await store.openIntents(LEFT_AFTER_MS, limit)
      for (const intent of left.filter(({ id }) => !tried.has(id))) {
        tried.add(intent.id)
        await settleOne(desk, tables, intent).catch((error: unknown) =>
          rows.sayOnce(`what was begun on ${sayRow(intent.ref)}: ${messageOf(error)}`),
        )
      }
      if (left.length < limit) return
    }
  } catch (error) {
    rows.sayOnce(`what was begun on adopted tables: ${messageOf(error)}`)
  }
}

async function settleOne(
  { store, rows, resumption }: Desk,
  tables: readonly AdoptedTable[],
  intent: Intent,
): Promise<void> {
  const { id, ref, entry, at } = intent
  const table = tables.find(({ mapping }) => mapping.name === ref.table)
  if (!table) {
    const isStrange =
      !rows.tables.names.includes(ref.table) && (await store.now()) - at > STRANGE_AFTER_MS
    if (isStrange) await store.concludeIntent(id, 'unsure')
    return
  }
  const row = await table.row(ref.key)
  const became = whatBecame(intent, row)
  const isOurs = await store.concludeIntent(id, became)
  if (isOurs && row && became === true && isResumption(table.mapping, entry))
    resumption.start(table.mapping, row)
}

/** By what stands in the row now: what was there before, what was to be written, or what somebody made of it since. */
function whatBecame({ entry }: Intent, row: AdoptedRow | null): boolean | 'unsure' {
  const stamp = stampIn(entry)
  if (!row || !stamp) return 'unsure'
  if (Object.entries(stamp).every(([name, value]) => row.stamp[name] === value)) return false
  const { word } = entry.after as { word?: unknown }
  return String(word).toLowerCase() === row.word.toLowerCase() ? true : 'unsure'
}

/** What is taken back is not started: it is as it was. */
function isResumption(mapping: Mapping, { action, after }: NewIntent['entry']): boolean {
  const { word } = after as { word?: unknown }
  return action !== 'revert' && typeof word === 'string' && isPutBack(mapping, word)
}
