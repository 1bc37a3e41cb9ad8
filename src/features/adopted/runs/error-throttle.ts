import { messageOf } from '../../../core/model/errors.ts'
import { inOneLine } from '../sanitize-line.ts'

/** What went wrong when a function of the user's was asked about a row. */
export type Trouble = { readonly key: string; readonly error: unknown }

/** Trouble with users' functions: of each it is said once, until it works again for those rows that it failed for. */
export class Complaints {
  readonly #log: (line: string) => void
  /** The rows that it failed for, by table and function. */
  readonly #known = new Map<string, Set<string>>()

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  /** After it was asked about these rows. */
  hear(table: string, name: string, asked: readonly string[], troubles: readonly Trouble[]): void {
    const which = JSON.stringify([table, name])
    const known = this.#known.get(which) ?? new Set()
    this.#known.set(which, known)
    const isKnown = troubles.some(({ key }) => known.has(key))
    for (const key of asked) known.delete(key)
    for (const { key } of troubles) known.add(key)
    const [first, ...others] = troubles
    if (!first || isKnown) return
    const rows = others.length === 1 ? 'row' : 'rows'
    const also = others.length > 0 ? ` (and for ${others.length} more ${rows})` : ''
    this.#log(
      `${name}() of row ${inOneLine(first.key)} of ${table}: ${messageOf(first.error)}${also}`,
    )
  }
}
