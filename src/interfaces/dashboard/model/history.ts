import type { History } from '../shapes.ts'

/** The applied actions on the runs of one source. */
export type SourceTotals = {
  readonly source: string
  /** Most frequent first. */
  readonly actions: readonly { readonly action: string; readonly count: number }[]
  readonly total: number
  readonly lastAt: string
}

/** Returns one line per source, newest change first. */
export function totalsBySource(counts: History['counts']): SourceTotals[] {
  return [...Map.groupBy(counts, ({ source }) => source)]
    .map(([source, all]) => ({
      source,
      actions: all
        .toSorted((a, b) => b.count - a.count)
        .map(({ action, count }) => ({ action, count })),
      total: all.reduce((sum, { count }) => sum + count, 0),
      lastAt: all.map(({ lastAt }) => lastAt).reduce((a, b) => (a > b ? a : b)),
    }))
    .toSorted((a, b) => (a.lastAt < b.lastAt ? 1 : -1))
}

/** Actions that recovery applies; an operator applies some of them too. */
const RECOVERIES: readonly string[] = [
  'resume',
  'replan',
  'retry',
  'park',
  'hold',
  'fail',
  'abandon',
]

export function isRecovery({ action }: { readonly action: string }): boolean {
  return RECOVERIES.includes(action)
}

/** Whether the path of a call names what it is about: `POST /api/runs/019…/cancel`. */
export function namesOne(call: string): boolean {
  return /\/api\/(runs|targets|sources)\/./.test(call)
}

/** A field that an action changed. `from` or `to` is null where it did not exist. */
export type FieldChange = {
  readonly what: string
  readonly from: string | null
  readonly to: string | null
}

/** The difference between before and after of an entry of the audit trail. */
type FieldChanges = {
  readonly changed: readonly FieldChange[]
  /** Facts of that moment that only `before` has: the page, the worker, the epoch. */
  readonly known: readonly { readonly what: string; readonly value: string }[]
}

/** The action and its reason have these in words. */
const IN_REASON = ['acknowledged', 'undoes', 'paused']

/** Compares both sides field by field; counts within `targets` one by one. */
export function compareFields(before: unknown, after: unknown): FieldChanges {
  const [was, is] = [flatten(before), flatten(after)]
  const changed: FieldChange[] = []
  const known: { what: string; value: string }[] = []
  for (const what of new Set([...was.keys(), ...is.keys()])) {
    if (IN_REASON.includes(what)) continue
    const [from, to] = [was.get(what) ?? null, is.get(what) ?? null]
    // How many it was about.
    const isTotal = what === 'count' || what === 'targets'
    if (isTotal) {
      if (to !== null && to !== '0') known.push({ what: 'targets', value: to })
      continue
    }
    // A count of targets that only one side has is a move, not a fact.
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

/** `in_progress` and `newRun` as words. */
function humanize(name: string): string {
  return name.replaceAll('_', ' ').replace(/([a-z])([A-Z])/g, (_, low: string, high: string) => {
    return `${low} ${high.toLowerCase()}`
  })
}

function formatValue(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
