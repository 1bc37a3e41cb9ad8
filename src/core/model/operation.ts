import type { Millis } from './time.ts'

/** A mutating request over HTTP, whether or not it changed anything. */
export type Operation = {
  /** Grows; the order of things. */
  readonly id: number
  readonly at: Millis
  readonly actor: string
  /** Where from; null when the server around us does not tell. */
  readonly address: string | null
  /** `POST /api/recovery` */
  readonly call: string
  /** What was asked for, any JSON. */
  readonly selection: unknown
  /** The preview that it was to carry out; null: it named none. */
  readonly plan: string | null
  /** As HTTP has it. */
  readonly status: number
  readonly result: string
}
