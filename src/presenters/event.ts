import type { UnstuckEvent } from '../core/model/event.ts'
import { isId, shortId } from '../core/model/id.ts'
import { humanizeDuration } from '../core/model/time.ts'
import type { Cell, Sentence } from '../lib/text/sentence.ts'
import { plural } from './format.ts'
import { verdictLine, verdictView } from './verdict.ts'

const FREQUENT: readonly UnstuckEvent['type'][] = [
  'target_start',
  'page_complete',
  'target_complete',
  'heartbeat',
]

/** An event as a line of the log; null for events that are too frequent. */
export function describeEvent(event: UnstuckEvent): string | null {
  return FREQUENT.includes(event.type) ? null : eventSentence(event)
}

function eventSentence(event: UnstuckEvent): string {
  switch (event.type) {
    case 'worker_start':
      return `working on ${event.source} (process ${event.pid}, presence: ${describePresence(event.presence)})`
    case 'worker_stop':
      return `stopped: ${event.reason}`
    case 'run_start':
      return `new run ${shortId(event.run)} of ${event.source}`
    case 'run_planned':
      return `run ${shortId(event.run)} is planned: ${plural(event.targets, 'new target')}`
    case 'run_end':
      return `run ${shortId(event.run)} ${event.status}`
    case 'target_error': {
      const then =
        event.retryInMs === null
          ? 'gave up'
          : `trying again in ${humanizeDuration(event.retryInMs)}`
      return `${event.key} page ${event.page}: ${event.error} — ${then}`
    }
    case 'text_replaced':
      return `${event.key} page ${event.page}: ${event.count} characters that cannot be stored (NUL, lone surrogates) were replaced by U+FFFD`
    case 'target_released':
      return `${event.key} released after page ${event.page}`
    case 'lease_lost':
      return `${event.key} dropped: ${event.because}`
    case 'recovery':
      return verdictLine(verdictView(event.verdict, true))
    case 'alert': {
      const what = `${event.target ? 'target' : 'run'} ${event.name}`
      return `ALERT: ${what} of ${event.source}: ${event.because}. See: ${event.command}`
    }
    case 'store_error':
      return `database error: ${event.message}`
    case 'store_recovered':
      return `database reachable again after ${humanizeDuration(event.afterMs)}`
    case 'target_start':
      return `${event.key}: ${event.page > 0 ? `continues after page ${event.page}` : 'started'}`
    case 'page_complete':
      return `${event.key}: page ${event.page} saved with ${plural(event.items, 'item')}`
    case 'target_complete':
      return `${event.key}: done, ${plural(event.page, 'page')}`
    case 'log':
      return event.level === 'info' ? event.message : `${event.level}: ${event.message}`
    case 'heartbeat':
      return `heartbeat, with ${plural(event.claims, 'claim')}`
  }
}

function describePresence(kind: string): string {
  if (kind === 'file') return 'lock file'
  return kind === 'session' ? 'database session' : 'heartbeats alone'
}

/** A line of a journal. */
export type EventRecord = { readonly time?: unknown; readonly type?: unknown } & Readonly<
  Record<string, unknown>
>

/** What the sentence of an event is made of: an event of another version may lack some of it. */
const FIELDS: Readonly<Record<UnstuckEvent['type'], readonly string[]>> = {
  worker_start: ['source', 'pid', 'presence'],
  worker_stop: ['reason'],
  run_start: ['run', 'source'],
  run_planned: ['run', 'targets'],
  run_end: ['run', 'status'],
  target_start: ['key', 'page'],
  page_complete: ['key', 'page', 'items'],
  target_complete: ['key', 'page'],
  target_error: ['key', 'page', 'error', 'retryInMs'],
  text_replaced: ['key', 'page', 'count'],
  target_released: ['key', 'page'],
  lease_lost: ['key', 'because'],
  log: ['level', 'message'],
  recovery: ['verdict'],
  alert: ['name', 'source', 'because', 'command'],
  heartbeat: ['claims'],
  store_error: ['message'],
  store_recovered: ['afterMs'],
}
const VERDICT_FIELDS = ['run', 'source', 'target', 'action', 'because', 'from', 'to', 'evidence']

/** A line of a journal as a sentence; one that is not understood as its fields. */
export function describeRecord(record: EventRecord): string {
  const { type } = record
  const isKnown =
    typeof type === 'string' &&
    Object.hasOwn(FIELDS, type) &&
    FIELDS[type as UnstuckEvent['type']].every((name) => name in record) &&
    (type !== 'recovery' || hasFields(record['verdict'], VERDICT_FIELDS))
  return isKnown ? eventSentence(record as UnstuckEvent) : recordFacts(record)
}

function hasFields(value: unknown, names: readonly string[]): boolean {
  return typeof value === 'object' && value !== null && names.every((name) => name in value)
}

/** `page_complete key=ca/la page=3 items=20` */
export function recordFacts(record: EventRecord): string {
  return `${String(record.type)} ${formatFacts(record)}`.trim()
}

const TYPE_COLUMN = 16
const FAILURE_TYPES = ['target_error', 'lease_lost', 'store_error', 'journal_gap']

/** True for events that `--errors` selects. */
export function isFailure({ type, error, status }: EventRecord): boolean {
  if (typeof error === 'string') return true
  if (type === 'run_end') return status !== 'succeeded'
  return typeof type === 'string' && FAILURE_TYPES.includes(type)
}

/** `2026-11-16 04:12:03.250  page_complete     key=ca/la page=3 items=20`, with the end of the worker's id before its type. */
export function recordSentence(record: EventRecord, { withWorker = false } = {}): Sentence {
  const { time, type, worker } = record
  const name: Cell = {
    text: String(type).padEnd(TYPE_COLUMN),
    style: isFailure(record) ? 'bad' : undefined,
  }
  const writer = withWorker ? `  ${typeof worker === 'string' ? shortId(worker) : '?'}` : ''
  return [{ text: formatTime(time) + writer, style: 'dim' }, '  ', name, '  ', formatFacts(record)]
}

/** The fields of a record besides its time and type: `key=ca/la page=3 items=20`. */
function formatFacts(record: EventRecord): string {
  const { time: _, type: __, worker: ___, verdict, ...facts } = record
  return Object.entries({ ...verdictFacts(verdict), ...facts })
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${formatValue(value)}`)
    .join(' ')
}

/** The evidence of a verdict is in the JSON. */
function verdictFacts(verdict: unknown): Record<string, unknown> {
  if (typeof verdict !== 'object' || verdict === null) return {}
  const { action, source, target, because } = verdict as Record<string, unknown>
  return { action, source, target, because }
}

function formatTime(time: unknown): string {
  const text = typeof time === 'string' ? time : '?'
  return text.replace('T', ' ').replace(/Z$/, '').padEnd(23)
}

function formatValue(value: unknown): string {
  if (typeof value === 'string') {
    if (isId(value)) return shortId(value)
    return /^[^\s="]+$/.test(value) ? value : JSON.stringify(value)
  }
  return JSON.stringify(value) ?? String(value)
}

/** Describes the parts of a journal that could not be read; null if there are none. */
export function describeSkipped({
  garbage,
  tooLong,
  cut,
}: Readonly<Record<'garbage' | 'tooLong' | 'cut', number>>): string | null {
  const parts = [
    garbage > 0 && `${plural(garbage, 'line')} that ${garbage === 1 ? 'is' : 'are'} no JSON object`,
    tooLong > 0 && `${plural(tooLong, 'line')} over 1 MB`,
    cut > 0 && 'an unfinished end',
  ].filter(Boolean)
  return parts.length > 0 ? `Skipped: ${parts.join(', ')}.` : null
}
