import { LIMITS } from '../../../core/model/limits.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { StoreExtension } from '../../../core/store/store.ts'
import { storedJson, storedText } from '../../../core/store/stored-text.ts'

/** A browser that logged in to the dashboard. */
export type Session = {
  /** The SHA-256 of what the browser holds, in hex: a reader of the database cannot log in with it. */
  readonly id: string
  /** The name of the token that it logged in with. */
  readonly token: string
  /** Binds the session to that token, so that another token of the same name does not continue it. */
  readonly tokenMark: string
  readonly createdAt: Millis
  readonly expiresAt: Millis
}

export type NewSession = Pick<Session, 'id' | 'token' | 'tokenMark'> & { readonly lastsMs: number }

/** Sessions of the dashboard. Every server on the database sees the same ones. */
export interface SessionStore {
  /** Also deletes expired sessions. */
  createSession(session: NewSession): Promise<void>
  /** Returns null if there is no such session, or it has expired. */
  session(id: string): Promise<Session | null>
  /** Ends a session. Returns false if there was none. */
  deleteSession(id: string): Promise<boolean>
}

/** A mutating request over HTTP, whether or not it changed anything. */
export type Operation = {
  /** Grows with each operation. */
  readonly id: number
  readonly at: Millis
  readonly actor: string
  /** Of the caller; null if the server that mounts ours does not pass it. */
  readonly address: string | null
  /** `POST /api/recovery` */
  readonly call: string
  /** The request body, any JSON. */
  readonly selection: unknown
  /** The previewed plan that the request applies; null: none was named. */
  readonly plan: string | null
  /** Of the response. */
  readonly status: number
  readonly result: string
}

export type NewOperation = Omit<Operation, 'id' | 'at'>

/** Mutating requests over HTTP. */
export interface OperationStore {
  /** Records a request. Append-only: a repeated call writes a second row. */
  recordOperation(operation: NewOperation): Promise<void>
  /** Returns operations, newest first. */
  operations(page: {
    after?: number | undefined
    limit: number
  }): Promise<{ items: Operation[]; next: number | null }>
}

export const ACCESS_STORE: StoreExtension<SessionStore & OperationStore> = {
  sqlite: async () => (await import('./sqlite.ts')).accessMethods,
  postgres: async () => (await import('./postgres.ts')).accessMethods,
  clean: (store) => ({
    recordOperation: (operation) =>
      store.recordOperation({
        ...operation,
        actor: name(operation.actor),
        address: operation.address === null ? null : name(operation.address),
        call: name(operation.call),
        plan: operation.plan === null ? null : name(operation.plan),
        selection: storedJson(
          operation.selection,
          operation.status < 400 ? LIMITS.evidence : LIMITS.refusedBody,
        ),
        result: storedText(operation.result, LIMITS.reason),
      }),
  }),
}

function name(text: string): string {
  return storedText(text, LIMITS.listed)
}

/** Makes a page of rows that were read one beyond the limit, which shows whether there are more. */
export function toOperations(
  rows: readonly Operation[],
  limit: number,
): { items: Operation[]; next: number | null } {
  const items = rows.slice(0, limit)
  return { items, next: rows.length > limit ? items.at(-1)!.id : null }
}
