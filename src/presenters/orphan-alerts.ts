import { formatDuration, humanizeDuration, parseDuration, type Millis } from '../core/model/time.ts'
import { TARGET_STATUS_AFTER } from '../core/model/verdict.ts'
import type { AuditEntry, Store } from '../core/store/store.ts'
import type { Alert, AlertCandidate } from '../features/alerts/store/store.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'

/** A worker that a run lost. */
export type LostWorker = { readonly at: Millis; readonly source: string }

/** More than so many runs lost a worker within this time. `sources`: empty means all. */
type OrphansRule = {
  readonly moreThan: number
  readonly withinMs: number
  readonly sources: readonly string[]
}

/** Returns the finding of a rule; null when too few workers were lost. */
export function orphansCandidate(
  rule: OrphansRule,
  lost: readonly LostWorker[],
  now: Millis,
): AlertCandidate | null {
  const { moreThan, withinMs } = rule
  const counted = lost.filter(
    ({ at, source }) =>
      at > now - withinMs && (rule.sources.length === 0 || rule.sources.includes(source)),
  )
  if (counted.length <= moreThan) return null
  const sources = [...new Set(counted.map(({ source }) => source))].sort()
  const because =
    `runs lost a worker ${counted.length} times within ${humanizeDuration(withinMs)}, ` +
    `more than ${moreThan} times: ${sources.slice(0, SOURCES_SHOWN).join(', ')}` +
    (sources.length > SOURCES_SHOWN ? ` and ${sources.length - SOURCES_SHOWN} more` : '')
  const command = unstuckCommand('history', [], { since: formatDuration(withinMs) })
  const source = sources.length === 1 ? sources[0]! : null
  return { cause: orphansCause(rule), rule: 'orphans', source, run: null, because, command }
}

const SOURCES_SHOWN = 3

/** The cause has the whole rule, so that any process can count again: see `readCause`. */
export function orphansCause({ moreThan, withinMs, sources }: OrphansRule): string {
  const whose = sources.length === 0 ? '' : ` ${JSON.stringify(sources)}`
  return `orphans ${moreThan}/${formatDuration(withinMs)}${whose}`
}

/** Returns the rule of an alert of this kind; null for any other alert. */
function readCause(cause: string): OrphansRule | null {
  const [, moreThan, within, sources = '[]'] =
    /^orphans (\d+)\/(\w+)(?: (\[.*\]))?$/.exec(cause) ?? []
  const withinMs = parseDuration(within)
  if (withinMs === null) return null
  return { moreThan: Number(moreThan), withinMs, sources: JSON.parse(sources) as string[] }
}

/** Counts again for open alerts of this kind. Returns the findings of those whose rule still matches. */
export async function recountOrphans(
  store: Store,
  open: readonly Pick<Alert, 'cause'>[],
  now: Millis,
): Promise<AlertCandidate[]> {
  const rules = open.flatMap(({ cause }) => readCause(cause) ?? [])
  const windowMs = Math.max(0, ...rules.map(({ withinMs }) => withinMs))
  const lost = await new OrphanTracker(windowMs).read(store, now)
  return rules.flatMap((rule) => orphansCandidate(rule, lost, now) ?? [])
}

const PAGE_SIZE = 500
/** Per check. The next check reads the rest. */
const PAGES_MAX = 10
/** An entry with a lower id may be committed after one with a higher id. */
const OVERLAP = 50

/** Follows the audit log for runs that lost a worker. A worker with a hundred claimed targets counts once. */
export class OrphanTracker {
  readonly #windowMs: number
  readonly #losses = new Map<string, LostWorker>()
  #after: number | null = null

  /** `windowMs`: the longest interval of a rule. */
  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  async read(store: Store, now: Millis): Promise<readonly LostWorker[]> {
    if (this.#windowMs === 0) return []
    const since = now - this.#windowMs
    this.#after ??= await startPosition(store)
    let after = Math.max(0, this.#after - OVERLAP)
    for (let page = 0; page < PAGES_MAX; page++) {
      const entries = await store.audit({ since, after, limit: PAGE_SIZE })
      for (const entry of entries) this.#record(entry)
      after = entries.at(-1)?.id ?? after
      this.#after = Math.max(this.#after, after)
      if (entries.length < PAGE_SIZE) break
    }
    for (const [key, { at }] of this.#losses) if (at <= since) this.#losses.delete(key)
    return [...this.#losses.values()]
  }

  #record({ at, source, run, target, action, because, before }: AuditEntry): void {
    const worker = (before as { worker?: unknown } | null)?.worker
    // On a timeout the worker is alive.
    const isLoss =
      target !== null && action in TARGET_STATUS_AFTER && !because.startsWith('timeout:')
    if (isLoss && typeof worker === 'string') this.#losses.set(`${run} ${worker}`, { at, source })
  }
}

/** Returns a position no further back than one check can read. */
async function startPosition(store: Store): Promise<number> {
  const [last] = await store.audit({ newestFirst: true, limit: 1 })
  return Math.max(0, (last?.id ?? 0) - PAGE_SIZE * PAGES_MAX + OVERLAP)
}
