import type { Id } from '../../../core/model/id.ts'
import type { RunOrigin } from '../../../core/model/traits.ts'
import type { Millis } from '../../../core/model/time.ts'
import { cleanAuditInfo } from '../../../core/store/clean-input.ts'
import type { AuditEntry, StoreExtension } from '../../../core/store/store.ts'
import { storedJson } from '../../../core/store/stored-text.ts'

/** What Unstuck's database remembers of rows in users' tables: operations in progress, and rows that were changed. */
export interface AdoptedStore {
  /** Returns those of the rows that an operation ever changed. */
  rememberedRows(ids: readonly Id[]): Promise<RememberedRow[]>
  /**
   * Records operations before they change rows: the two databases have no common transaction, so after a crash another
   * process determines from the row what became of the operation.
   */
  recordIntents(intents: readonly NewIntent[]): Promise<void>
  /**
   * Records the results. Done: writes the audit entry once, however often this is called, and remembers the row, or
   * forgets it if it was deleted. Not done: forgets the intent. Unsure: writes the audit entry, marked as unsure. Returns
   * true for the one call that concluded the intent.
   */
  concludeIntents(ends: readonly IntentResult[]): Promise<boolean[]>
  /** Returns intents that were recorded at least so long ago and not concluded, oldest first. */
  openIntents(olderThanMs: number, limit: number): Promise<Intent[]>
  /** Lets automatic recovery act on the rows again: they have an owner, or have changed. */
  forgetReopening(ids: readonly Id[]): Promise<void>
  /** Marks rows as acknowledged by an operator, or removes the marks, with one audit entry. */
  markRows(marks: readonly RowMark[], entry: NewIntent['entry']): Promise<void>
  /** Returns whether rows of this table are acknowledged. */
  hasMarks(table: string): Promise<boolean>
}

export const ADOPTED_STORE: StoreExtension<AdoptedStore> = {
  sqlite: async () => (await import('./sqlite.ts')).adoptedMethods,
  postgres: async () => (await import('./postgres.ts')).adoptedMethods,
  clean: (store) => ({
    recordIntents: (intents) => store.recordIntents(intents.map(cleanIntent)),
    markRows: (marks, entry) => store.markRows(marks, cleanAuditInfo(entry)),
  }),
}

export type RememberedRow = RunOrigin & {
  /** Of the run, or of the target. */
  readonly id: Id
  /** When an operator reverted an operation on the row; null once the row has changed since. */
  readonly reopenedAt: Millis | null
  /** When an operator acknowledged the row, and the hash of the row then: the mark holds while that is the same. */
  readonly acknowledged: { readonly at: Millis; readonly hash: string } | null
}

/** `hash` of the row; null removes the mark. */
export type RowMark = RunOrigin & { readonly id: Id; readonly hash: string | null }

export type NewIntent = {
  readonly id: Id
  /** The row: a run, or a target of an adopted table of targets. */
  readonly row: Id
  readonly ref: RunOrigin
  /** The audit entry of the operation. */
  readonly entry: Omit<AuditEntry, 'id' | 'at' | 'key'>
  /** An operator reopens the row: automatic recovery ignores it until it changes. */
  readonly reopens: boolean
}
export type Intent = NewIntent & { readonly at: Millis }
export type IntentResult = { readonly id: Id; readonly isDone: boolean | 'unsure' }

function cleanIntent(intent: NewIntent): NewIntent {
  const { entry } = intent
  return { ...intent, entry: { ...cleanAuditInfo(entry), evidence: storedJson(entry.evidence) } }
}

// — Rows of both engines —

export type RememberedRecord = {
  id: string
  name: string
  key: string
  reopened_at: number | null
  acknowledged_at: number | null
  acknowledged_hash: string | null
}
export function toRemembered(record: RememberedRecord): RememberedRow {
  const { id, name, key, reopened_at, acknowledged_at: at, acknowledged_hash: hash } = record
  const acknowledged = at === null || hash === null ? null : { at, hash }
  return { id, table: name, key, reopenedAt: reopened_at, acknowledged }
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

/** Returns whether the row was deleted. Nothing is remembered of it, because another row may get its id. */
export function isRowGone({ action }: NewIntent['entry'], isDone: boolean | 'unsure'): boolean {
  return action === 'delete' && isDone === true
}

/** Returns the audit entry with the result in it. */
export function concluded(
  entry: NewIntent['entry'],
  isDone: boolean | 'unsure',
): NewIntent['entry'] {
  if (isDone !== 'unsure') return entry
  return { ...entry, after: { ...(entry.after as object | null), unsure: true } }
}
