import { messageOf } from '../../model/errors.ts'
import { newId, type TargetId } from '../../model/id.ts'
import type { AuditEntry, Deed, Intent, Store } from '../../store/store.ts'
import type { AdoptedColumns, Mapping } from '../mapping.ts'
import type { Seen } from './row-run.ts'
import type { AdoptedRow, AdoptedTable, Change } from '../table/table.ts'
import { runStatusOf, targetStatusOf } from './words.ts'

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
}

/** So long a process may take between its intent and what became of it. */
const LEFT_AFTER_MS = 30_000
const LEFT_MAX = 100

/**
 * Does it, if the row still is what was seen: then it is in the trail, once. Answers the row as it is then, or null when
 * somebody was faster. Two databases have no transaction in common, so the intent comes first: whoever dies in between
 * leaves it to the next one, who sees by the row what became of it.
 */
export async function carryOut(
  store: Store,
  { table, row, run, target }: Seen,
  deed: RowDeed,
): Promise<AdoptedRow | null> {
  const { mapping } = table
  const { actor, action, because, evidence, change, reopens = false } = deed
  const statusOf = (word: string): string =>
    deed.target === null ? runStatusOf(mapping, word) : targetStatusOf(mapping, word)
  const stamp = stampBefore(mapping, row, change)
  const word = change.word ?? String(change.restore?.[mapping.columns.status] ?? row.word)
  const seenAs = deed.target === null ? run.status : target.status
  const entry: Omit<AuditEntry, 'id' | 'at'> = {
    actor,
    action,
    because,
    evidence,
    source: run.source,
    run: run.id,
    target: deed.target,
    before: {
      status: seenAs,
      ...deed.before,
      word: row.word,
      table: mapping.name,
      key: row.key,
      stamp: keepStamp(stamp),
    },
    after: { status: statusOf(word), ...deed.after, word },
  }
  const id = newId()
  const ref = { table: mapping.name, key: row.key }
  await store.intend({
    id,
    row: mapping.kind === 'runs' ? run.id : target.id,
    ref,
    entry,
    reopens,
  })
  const changed = await table.change(row, change)
  await store.concludeIntent(id, changed !== null)
  return changed
}

/** Those that a process which died has left. What goes wrong with one is logged, and it stays for the next look. */
export async function settleLeft(
  store: Store,
  tables: readonly AdoptedTable[],
  log: (line: string) => void,
): Promise<void> {
  try {
    for (const intent of await store.openIntents(LEFT_AFTER_MS, LEFT_MAX)) {
      const table = tables.find(({ mapping }) => mapping.name === intent.ref.table)
      const row = table && (await table.row(intent.ref.key))
      if (table) await store.concludeIntent(intent.id, row ? wasDone(intent, row) : false)
    }
  } catch (error) {
    log(`what was begun on an adopted table could not be looked after: ${messageOf(error)}`)
  }
}

/** The row has the word that was to be written: the one that was there before was another. */
function wasDone({ entry }: Intent, row: AdoptedRow): boolean {
  const { word } = entry.after as { word?: unknown }
  return row.word === word
}

/** What stood in the columns that the change writes. */
function stampBefore({ columns }: Mapping, row: AdoptedRow, change: Change): AdoptedRow['stamp'] {
  const fields: Readonly<Record<string, keyof AdoptedColumns>> = {
    word: 'status',
    finishedAt: 'finishedAt',
    error: 'error',
    owner: 'owner',
    heartbeatAt: 'heartbeatAt',
  }
  const names = [
    ...Object.keys(change).flatMap((field) => columns[fields[field]!] ?? []),
    ...Object.keys(change.restore ?? {}),
  ]
  return Object.fromEntries(
    names.filter((name) => name in row.stamp).map((name) => [name, row.stamp[name]!]),
  )
}

type Kept = Readonly<Record<string, string | number | null | { readonly bigint: string }>>

/** The trail is JSON, which has no large integers. */
function keepStamp(stamp: AdoptedRow['stamp']): Kept {
  return Object.fromEntries(
    Object.entries(stamp).map(([name, value]) => [
      name,
      typeof value === 'bigint' ? { bigint: String(value) } : value,
    ]),
  )
}

/** What stood there before this entry's deed; null when it tells of none. */
export function stampIn({ before }: Pick<AuditEntry, 'before'>): AdoptedRow['stamp'] | null {
  const { stamp } = (before ?? {}) as { stamp?: Kept }
  if (typeof stamp !== 'object' || stamp === null) return null
  return Object.fromEntries(
    Object.entries(stamp).map(([name, value]) => [
      name,
      typeof value === 'object' && value !== null ? BigInt(value.bigint) : value,
    ]),
  )
}
