import type { Id } from '../model/id.ts'
import type { AdoptedRef } from '../model/run.ts'
import type { Millis } from '../model/time.ts'
import type { AuditEntry } from './operator-requests.ts'

/** What is remembered of rows in tables that are not ours: what we did to them, and what people said of them. */
export interface AdoptedStore {
  /** Of these, those that anything was ever done to. */
  rememberedRows(ids: readonly Id[]): Promise<RememberedRow[]>
  /**
   * Something is about to be done to rows elsewhere. Written before it is done, because the two databases have no
   * transaction in common: whoever comes after a crash finds it and can see by the row what became of it.
   */
  recordIntents(intents: readonly NewIntent[]): Promise<void>
  /**
   * What became of them. Done: it is in the trail, once, however often this is said, and the row is remembered. Not done:
   * it is forgotten. Unsure: it is in the trail, which says so. True for the one call that settled it.
   */
  concludeIntents(ends: readonly IntentResult[]): Promise<boolean[]>
  /** Those that nobody has settled for so long, oldest first. */
  openIntents(olderThanMs: number, limit: number): Promise<Intent[]>
  /** Nothing automatic is held off any more: it has an owner again, or has moved on. */
  forgetReopening(ids: readonly Id[]): Promise<void>
}

/** By its name in the config. */
export type UnreadableTable = { readonly table: string; readonly because: string }

export type RememberedRow = AdoptedRef & {
  /** Of the run, or of the target. */
  readonly id: Id
  /** When a person took back what had been done to it; null once it has moved on since. */
  readonly reopenedAt: Millis | null
}

export type NewIntent = {
  readonly id: Id
  /** The row: a run, or a target of an adopted table of targets. */
  readonly row: Id
  readonly ref: AdoptedRef
  /** As it will stand in the trail. */
  readonly entry: Omit<AuditEntry, 'id' | 'at'>
  /** A person opens it again: nothing automatic ends it until it has moved on. */
  readonly reopens: boolean
}
export type Intent = NewIntent & { readonly at: Millis }
export type IntentResult = { readonly id: Id; readonly isDone: boolean | 'unsure' }
