import { messageOf } from '../../../core/model/errors.ts'
import { sanitizeLine } from '../sanitize-line.ts'

/** What went wrong when a function of the user's was asked about a row. */
export type CallbackFailure = { readonly key: string; readonly error: unknown }

/** Trouble with users' functions: of each it is said once, until it works again for those rows that it failed for. */
export class ErrorThrottle {
  readonly #log: (line: string) => void
  /** The rows that it failed for, by table and function. */
  readonly #failingRows = new Map<string, Set<string>>()

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  /** After it was asked about these rows. */
  report(
    table: string,
    name: string,
    keys: readonly string[],
    failures: readonly CallbackFailure[],
  ): void {
    const callback = JSON.stringify([table, name])
    const failing = this.#failingRows.get(callback) ?? new Set()
    this.#failingRows.set(callback, failing)
    const isReported = failures.some(({ key }) => failing.has(key))
    for (const key of keys) failing.delete(key)
    for (const { key } of failures) failing.add(key)
    const [first, ...others] = failures
    if (!first || isReported) return
    const rows = others.length === 1 ? 'row' : 'rows'
    const also = others.length > 0 ? ` (and for ${others.length} more ${rows})` : ''
    this.#log(
      `${name}() of row ${sanitizeLine(first.key)} of ${table}: ${messageOf(first.error)}${also}`,
    )
  }
}
