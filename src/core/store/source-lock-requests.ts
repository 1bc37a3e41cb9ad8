import type { WorkerId } from '../model/id.ts'

/** What is asked about the guard of a source. */

export type HoldSource = {
  readonly source: string
  readonly worker: WorkerId
  readonly killTimeoutMs: number
  /** For the source's first guard; a later one keeps the first cookie. */
  readonly cookie: string
  readonly instead?: { readonly worker: WorkerId; readonly beats: number } | undefined
}

export type FreeSource = {
  readonly source: string
  readonly worker: WorkerId
  readonly beats?: number | undefined
  readonly gaveUp?: string | undefined
}
