import { isId, shortId } from '../../core/model/id.ts'
import type { JournalEntry, Skipped } from './reader.ts'
import type { TextWriter } from '../../lib/terminal/text-writer.ts'
import type { Cell } from '../../lib/text/sentence.ts'
import { plural } from '../../presenters/format.ts'

const TYPE_COLUMN = 16
const FAILURE_TYPES = ['target_error', 'lease_lost', 'store_error', 'journal_gap']

/** Whether something went wrong there, for `--errors`. */
export function isFailure({ type, error, status }: JournalEntry): boolean {
  if (typeof error === 'string') return true
  if (type === 'run_end') return status !== 'succeeded'
  return typeof type === 'string' && FAILURE_TYPES.includes(type)
}

/** `2026-11-16 04:12:03.250  page_complete     key=ca/la page=3 items=20` */
export function printEntry(writer: TextWriter, entry: JournalEntry): void {
  const { time, type } = entry
  const name: Cell = {
    text: String(type).padEnd(TYPE_COLUMN),
    style: isFailure(entry) ? 'bad' : undefined,
  }
  writer.line({ text: formatTime(time), style: 'dim' }, '  ', name, '  ', formatFacts(entry))
}

/** What an entry says besides its time and type: `key=ca/la page=3 items=20`. */
export function formatFacts(entry: JournalEntry): string {
  const { time: _, type: __, worker: ___, verdict, ...facts } = entry
  return Object.entries({ ...summarizeVerdict(verdict), ...facts })
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${formatValue(value)}`)
    .join(' ')
}

/** Of a verdict people want what was decided and why; the evidence is in the JSON. */
function summarizeVerdict(verdict: unknown): Record<string, unknown> {
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

/** What could not be read, or null when all could. */
export function describeSkipped({ garbage, tooLong, cut }: Skipped): string | null {
  const parts = [
    garbage > 0 && `${plural(garbage, 'line')} that ${garbage === 1 ? 'is' : 'are'} no JSON object`,
    tooLong > 0 && `${plural(tooLong, 'line')} over 1 MB`,
    cut > 0 && 'an unfinished end',
  ].filter(Boolean)
  return parts.length > 0 ? `Passed over: ${parts.join(', ')}.` : null
}
