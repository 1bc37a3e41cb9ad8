import { iso, type Millis } from '../core/model/time.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import type { AuditEntry, Store } from '../core/store/store.ts'
import { METRICS_STORE, type AuditCount } from '../features/metrics/store/store.ts'
import { safeJson } from '../lib/text/safe-text.ts'
import {
  right,
  left,
  flex,
  type Section,
  type Sentence,
  type Table,
  makeTable,
} from '../lib/text/sentence.ts'
import { evidenceSentences, auditView } from './view.ts'
import { auditName, formatAgo, isRunRow, plural } from './format.ts'
import type { Presented } from './presented.ts'
import { formatMove } from './verdict.ts'

export type HistoryFilter = {
  readonly since?: Millis | undefined
  readonly source?: string | undefined
  readonly run?: RunId | undefined
  readonly action?: string | undefined
}

/** A part of the audit trail, newest first, and how often each action was applied. */
export type History = {
  readonly counts: readonly AuditCount[]
  readonly items: readonly AuditEntry[]
  /** Where the next part begins; null at the end. */
  readonly next: number | null
}

export const EMPTY_HISTORY: History = { counts: [], items: [], next: null }

/** `history` and the history page. */
export function presentHistory({ counts, items, next }: History, now: Millis) {
  const total = counts.reduce((sum, { count }) => sum + count, 0)
  return {
    view: {
      counts: counts.map(({ lastAt, ...count }) => ({ ...count, lastAt: iso(lastAt) })),
      items: items.map(auditView),
      next,
    },
    severity: 'ok' as const,
    summary:
      total === 0 ? NOTHING_DONE : `${plural(total, 'entry', 'entries')} in the audit trail.`,
    sections:
      total === 0
        ? [{ heading: null, sentences: [[NOTHING_DONE]] }]
        : [
            { heading: null, table: countsTable(counts, now), sentences: [] },
            { heading: 'Newest first', sentences: entrySentences(items, next, now) },
          ],
  } satisfies Presented<object>
}

export const NOTHING_DONE =
  'The audit trail is empty: no recovery, no cleaning, no operator action.'

function countsTable(counts: readonly AuditCount[], now: Millis): Table {
  return makeTable(counts, [
    flex('SOURCE', ({ source }) => source),
    left('ACTION', ({ action }) => action),
    right('TIMES', ({ count }) => String(count)),
    right('LAST', ({ lastAt }) => formatAgo(lastAt, now)),
  ])
}

function entrySentences(
  items: readonly AuditEntry[],
  next: number | null,
  now: Millis,
): Sentence[] {
  if (items.length === 0) return [['There are no older entries.']]
  const shown = plural(items.length, 'entry', 'entries')
  const more = `${shown} shown. There are more: add \`--after ${next}\`, or a higher \`--limit\`.`
  return [
    ...items.map((entry) => auditSentence(entry, now, auditSubject(entry))),
    ...(next === null ? [] : [[{ text: more, style: 'dim' as const }]]),
  ]
}

/** An entry of the audit trail: time, change, actor and reason. `subject` may be empty. */
export function auditSentence(entry: AuditEntry, now: Millis, subject: string): Sentence {
  return [
    '- ',
    { text: `${formatAgo(entry.at, now)}:`, style: 'dim' },
    ' ',
    { text: entry.action, style: 'strong' },
    `${subject && ` ${subject}`}${changeOf(entry)}${formatActorAndReason(entry)}.`,
  ]
}

/** `target austin (91bc4f2a) of run 4f2a91bc of shop`, `run courses:4711 of maths`; `shop` for an action on the source. */
export function auditSubject(entry: AuditEntry): string {
  const { run, target, source, before } = entry
  const name = auditName(entry)
  if (run === null) return name
  const isRun = target === null || isRunRow(before)
  return `${name}${isRun ? '' : ` of run ${shortId(run)}`} of ${source}`
}

function changeOf({ before, after }: AuditEntry): string {
  if (isRunRow(before)) return ''
  const [from, to] = [before, after].map((side) => (side as { status?: string } | null)?.status)
  const change = from && to ? formatMove(from, to) : ''
  return change && ` (${change})`
}

/** A reason that ends with the actor already names it. */
function formatActorAndReason({ actor, because }: AuditEntry): string {
  return because.endsWith(` by ${actor}`) ? `: ${because}` : `, by ${actor}: ${because}`
}

/** One entry with its evidence, and what it changed. */
export function auditEntrySections(entry: AuditEntry, now: Millis): Section[] {
  const { id, at, actor, before, after } = entry
  const facts = `${iso(at)}, entry ${id}, by ${actor}`
  const sections: Section[] = [
    {
      heading: null,
      sentences: [auditSentence(entry, now, auditSubject(entry)), [{ text: facts, style: 'dim' }]],
    },
    { heading: 'Evidence', sentences: evidenceSentences(entry.evidence).map((one) => [one]) },
    { heading: 'Before', sentences: fieldSentences(before) },
    { heading: 'After', sentences: fieldSentences(after) },
  ]
  return sections.filter(({ sentences }) => sentences.length > 0)
}

function fieldSentences(record: unknown): Sentence[] {
  if (typeof record !== 'object' || record === null) return []
  return Object.entries(record).map(([name, value]) => [`${name}: ${safeJson(value)}`])
}

const BATCH_SIZE = 500
/** Batches read at most for one answer. */
const BATCHES_MAX = 40
const RUN_ENTRIES_MAX = 10_000

export async function readHistory(
  store: Store,
  filter: HistoryFilter,
  page: { readonly after?: number | undefined; readonly limit: number },
): Promise<History> {
  return { ...(await readEntries(store, filter, page)), counts: await countActions(store, filter) }
}

/** The trail has no index by action: filtered by action, a page may be short although there are more. */
async function readEntries(
  store: Store,
  { action, ...filter }: HistoryFilter,
  { after, limit }: { after?: number | undefined; limit: number },
): Promise<Pick<History, 'items' | 'next'>> {
  const batch = action === undefined ? limit + 1 : BATCH_SIZE
  const found: AuditEntry[] = []
  let last = after
  for (let n = 0; n < BATCHES_MAX; n++) {
    const entries = await store.audit({ ...filter, newestFirst: true, after: last, limit: batch })
    found.push(...entries.filter((entry) => action === undefined || entry.action === action))
    if (found.length > limit) {
      const items = found.slice(0, limit)
      return { items, next: items.at(-1)!.id }
    }
    if (entries.length < batch) return { items: found, next: null }
    last = entries.at(-1)!.id
  }
  return { items: found, next: last ?? null }
}

async function countActions(
  store: Store,
  { since, source, run, action }: HistoryFilter,
): Promise<AuditCount[]> {
  const counts =
    run === undefined
      ? await (await store.extend(METRICS_STORE)).auditCounts({ since, source })
      : countEntries(
          await store.audit({ run, since, source, newestFirst: true, limit: RUN_ENTRIES_MAX }),
        )
  return counts.filter((count) => action === undefined || count.action === action)
}

/** Of one run, newest first. */
function countEntries(entries: readonly AuditEntry[]): AuditCount[] {
  const groups = Map.groupBy(entries, (entry) => entry.action)
  return [...groups]
    .map(([action, all]) => ({
      source: all[0]!.source,
      action,
      count: all.length,
      lastAt: all[0]!.at,
    }))
    .sort((a, b) => (a.action < b.action ? -1 : 1))
}
