/** One thing that a deed changed. `from` or `to` is null where it was not there. */
export type Change = {
  readonly what: string
  readonly from: string | null
  readonly to: string | null
}

/** What an entry of the audit trail says of before and after, for people. */
export type Changes = {
  /** What became different. */
  readonly changed: readonly Change[]
  /** What was so at that moment and is only told of before: the page, the worker, the epoch. */
  readonly known: readonly { readonly what: string; readonly value: string }[]
}

/** Compares both sides field by field; counts within `targets` one by one. */
export function changesOf(before: unknown, after: unknown): Changes {
  const [was, is] = [flat(before), flat(after)]
  const changed: Change[] = []
  const known: { what: string; value: string }[] = []
  for (const what of new Set([...was.keys(), ...is.keys()])) {
    const [from, to] = [was.get(what) ?? null, is.get(what) ?? null]
    // A count of targets that is told of one side only is a move from there, not a fact of then.
    const isMove = to !== null || what.startsWith('targets ')
    if (!isMove) known.push({ what, value: from! })
    else if (from !== to) changed.push({ what, from, to })
  }
  return { changed, known }
}

function flat(side: unknown): Map<string, string> {
  const fields = new Map<string, string>()
  if (typeof side !== 'object' || side === null) return fields
  for (const [name, value] of Object.entries(side)) {
    if (value === null || value === undefined) continue
    if (name === 'targets' && typeof value === 'object')
      for (const [status, count] of Object.entries(value as object))
        fields.set(`targets ${words(status)}`, said(count))
    else fields.set(words(name), name === 'status' ? words(said(value)) : said(value))
  }
  return fields
}

/** `in_progress` and `newRun` as people write them. */
function words(name: string): string {
  return name.replaceAll('_', ' ').replace(/([a-z])([A-Z])/g, (_, low: string, high: string) => {
    return `${low} ${high.toLowerCase()}`
  })
}

function said(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
