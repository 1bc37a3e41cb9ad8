import { messageOf, NotFoundError, UsageError } from '../model/errors.ts'
import type { Id } from '../model/id.ts'
import type { Millis } from '../model/time.ts'
import type { DatasetEntry, Storage, StorageKind } from './crawlee-store.ts'

/**
 * Row → model for storages, as in `rows.ts`, and what goes into them, checked before an engine sees it: what one engine would
 * refuse, or give back as something else, is refused by both.
 */

export type StorageRow = {
  id: Id
  kind: StorageKind
  name: string
  created_at: Millis
  modified_at: Millis
  accessed_at: Millis
}

export function toStorage(row: StorageRow): Storage {
  return {
    id: row.id,
    kind: row.kind,
    name: row.name,
    createdAt: row.created_at,
    modifiedAt: row.modified_at,
    accessedAt: row.accessed_at,
  }
}

/** A storage is marked as accessed no oftener than this, so that those who look often keep nobody waiting. */
export const ACCESS_GRANULARITY_MS = 1_000

const LABEL_BYTES_MAX = 1_000

/** Whether a name or key can be in a store at all: one that cannot is not looked for. */
export function isStorableLabel(label: string): boolean {
  return (
    label !== '' &&
    !label.includes('\0') &&
    label.isWellFormed() &&
    Buffer.byteLength(label) <= LABEL_BYTES_MAX
  )
}

/** For those who put something in under this name or key. */
export function checkLabel(what: string, label: string): void {
  if (isStorableLabel(label)) return
  throw new UsageError(
    `${what} ${JSON.stringify(label.slice(0, 60))} cannot be stored. Give it 1 to ${LABEL_BYTES_MAX} bytes of text, ` +
      'without NUL and half characters.',
  )
}

/** An entry together with where it goes. */
export type Entry = DatasetEntry & { readonly dataset: Id }

/** Checks entries, and keeps each key once: the last one, in the place of the first. */
export function readEntries(entries: readonly Entry[]): Entry[] {
  const kept: Entry[] = []
  const places = new Map<string, number>()
  for (const entry of entries) {
    checkEntry(entry)
    const name = entry.key === null ? null : `${entry.dataset} ${entry.key}`
    const place = name === null ? undefined : places.get(name)
    if (place !== undefined) {
      kept[place] = entry
      continue
    }
    if (name !== null) places.set(name, kept.length)
    kept.push(entry)
  }
  return kept
}

function checkEntry({ key, data }: Entry): void {
  if (key !== null) checkLabel('The key', key)
  try {
    JSON.parse(data)
  } catch (error) {
    throw new UsageError(`An entry of a dataset is no JSON: ${messageOf(error)}.`, { cause: error })
  }
  if (!data.isWellFormed()) {
    throw new UsageError(
      'An entry of a dataset has half a character in it. JSON.stringify() writes it so that it can be stored.',
    )
  }
}

export function storageNotFound(id: Id): NotFoundError {
  return new NotFoundError(`storage ${id}`, 'Somebody has dropped it: open it again by its name.')
}

/** A part of the keys, which are in the order of their bytes. */
export type KeyRange = {
  readonly from: string
  /** Null: to the last one. */
  readonly below: string | null
}

/** The keys that are asked for; null: there can be none. */
export function keyRange({
  prefix = '',
  after = '',
}: {
  readonly prefix?: string | undefined
  readonly after?: string | undefined
}): KeyRange | null {
  if (prefix !== '' && !isStorableLabel(prefix)) return null
  // No key has a NUL in it, so this is the first that can follow.
  const next = after === '' ? '' : `${after.split('\0', 1)[0]!.toWellFormed()}\u0001`
  const from = Buffer.compare(Buffer.from(prefix), Buffer.from(next)) < 0 ? next : prefix
  return { from, below: endOf(prefix) }
}

const LAST_CODE_POINT = 0x10ffff
/** Between these two are half characters, which stand for nothing. */
const BEFORE_SURROGATES = 0xd7ff
const AFTER_SURROGATES = 0xe000

/** The first text behind all that begin with this prefix. */
function endOf(prefix: string): string | null {
  const points = Array.from(prefix, (character) => character.codePointAt(0)!)
  while (points.at(-1) === LAST_CODE_POINT) points.pop()
  const last = points.pop()
  if (last === undefined) return null
  return String.fromCodePoint(...points, last === BEFORE_SURROGATES ? AFTER_SURROGATES : last + 1)
}
