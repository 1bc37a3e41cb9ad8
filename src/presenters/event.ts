import type { UnstuckEvent } from '../core/model/event.ts'
import { isId, shortId } from '../core/model/id.ts'
import { humanizeDuration } from '../core/model/time.ts'
import type { Cell, Sentence } from '../lib/text/sentence.ts'
import { plural } from './format.ts'
import { verdictLine, verdictView } from './verdict.ts'

/** An event as a line of the log; null for events that are too frequent. */
export function describeEvent(event: UnstuckEvent): string | null {
  switch (event.type) {
    case 'worker_start':
      return `working on ${event.source} (process ${event.pid}, presence: ${describePresence(event.presence)})`
    case 'worker_stop':
      return `stopped: ${event.reason}`
    case 'run_start':
      return `new run ${shortId(event.run)} of ${event.source}`
    case 'run_planned':
      return `run ${shortId(event.run)} is planned: ${event.targets} new targets`
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
      const what = event.target ? `target ${shortId(event.target)}` : `run ${shortId(event.run)}`
      return `ALERT: ${what} of ${event.source}: ${event.because}. See: ${event.command}`
    }
    case 'store_error':
      return `database error: ${event.message}`
    case 'store_recovered':
      return `database reachable again after ${humanizeDuration(event.afterMs)}`
    case 'target_start':
    case 'page_complete':
    case 'target_complete':
    case 'heartbeat':
      return null
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

const TYPE_COLUMN = 16
const FAILURE_TYPES = ['target_error', 'lease_lost', 'store_error', 'journal_gap']

/** True for events that `--errors` selects. */
export function isFailure({ type, error, status }: EventRecord): boolean {
  if (typeof error === 'string') return true
  if (type === 'run_end') return status !== 'succeeded'
  return typeof type === 'string' && FAILURE_TYPES.includes(type)
}

/** `2026-11-16 04:12:03.250  page_complete     key=ca/la page=3 items=20` */
export function recordSentence(record: EventRecord): Sentence {
  const { time, type } = record
  const name: Cell = {
    text: String(type).padEnd(TYPE_COLUMN),
    style: isFailure(record) ? 'bad' : undefined,
  }
  return [{ text: formatTime(time), style: 'dim' }, '  ', name, '  ', formatFacts(record)]
}

/** The fields of a record besides its time and type: `key=ca/la page=3 items=20`. */
export function formatFacts(record: EventRecord): string {
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
