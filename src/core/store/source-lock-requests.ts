import type { WorkerId } from '../model/id.ts'

/** What is asked about the guard of a source. */

export type LockSourceRequest = {
  readonly source: string
  readonly worker: WorkerId
  readonly killTimeoutMs: number
  /** For the source's first guard; a later one keeps the first cookie. */
  readonly processTag: string
  readonly takeOverFrom?: { readonly worker: WorkerId; readonly heartbeats: number } | undefined
}

export type UnlockSourceRequest = {
  readonly source: string
  readonly worker: WorkerId
  readonly heartbeats?: number | undefined
  readonly gaveUp?: string | undefined
}
