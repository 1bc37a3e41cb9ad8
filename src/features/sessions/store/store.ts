import type { Millis } from '../../../core/model/time.ts'
import type { StoreExtension } from '../../../core/store/store.ts'

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

export const SESSION_STORE: StoreExtension<SessionStore> = {
  sqlite: async () => (await import('./sqlite.ts')).sessionMethods,
  postgres: async () => (await import('./postgres.ts')).sessionMethods,
}
