import type { Intent, NewIntent, RememberedRow } from './adopted-store.ts'

/** Rows of the two tables → what they remember, for both engines. */

export type RememberedRecord = {
  id: string
  name: string
  key: string
  reopened_at: number | null
}
export function toRemembered({ id, name, key, reopened_at }: RememberedRecord): RememberedRow {
  return { id, table: name, key, reopenedAt: reopened_at }
}

export type IntentRecord = {
  id: string
  at: number
  row_id: string
  name: string
  key: string
  entry: unknown
  reopens: boolean | number
}
export function toIntent({ id, at, row_id, name, key, entry, reopens }: IntentRecord): Intent {
  return {
    id,
    at,
    row: row_id,
    ref: { table: name, key },
    entry: entry as NewIntent['entry'],
    reopens: Boolean(reopens),
  }
}

/** As it goes into the trail. */
export function concluded(
  entry: NewIntent['entry'],
  isDone: boolean | 'unsure',
): NewIntent['entry'] {
  if (isDone !== 'unsure') return entry
  return { ...entry, after: { ...(entry.after as object | null), unsure: true } }
}
