/** One thing that a deed changed. `from` or `to` is null where it was not there. */
export type FieldChange = {
  readonly what: string
  readonly from: string | null
  readonly to: string | null
}

/** What an entry of the audit trail says of before and after, for people. */
type FieldChanges = {
  /** What became different. */
  readonly changed: readonly FieldChange[]
  /** What was so at that moment and is only told of before: the page, the worker, the epoch. */
  readonly known: readonly { readonly what: string; readonly value: string }[]
}

/** Compares both sides field by field; counts within `targets` one by one. */
export function compareFields(before: unknown, after: unknown): FieldChanges {
  const [was, is] = [flatten(before), flatten(after)]
  const changed: FieldChange[] = []
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

function flatten(side: unknown): Map<string, string> {
  const fields = new Map<string, string>()
  if (typeof side !== 'object' || side === null) return fields
  for (const [name, value] of Object.entries(side)) {
    if (value === null || value === undefined) continue
    if (name === 'targets' && typeof value === 'object')
      for (const [status, count] of Object.entries(value as object))
        fields.set(`targets ${humanize(status)}`, formatValue(count))
    else
      fields.set(
        humanize(name),
        name === 'status' ? humanize(formatValue(value)) : formatValue(value),
      )
  }
  return fields
}

/** `in_progress` and `newRun` as people write them. */
function humanize(name: string): string {
  return name.replaceAll('_', ' ').replace(/([a-z])([A-Z])/g, (_, low: string, high: string) => {
    return `${low} ${high.toLowerCase()}`
  })
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
