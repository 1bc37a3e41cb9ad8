import { isId, shortId } from '../../core/model/id.ts'
import type { JournalEntry, Skipped } from '../../features/journal/reader.ts'
import type { Cell, Paper } from '../../lib/terminal/text-writer.ts'
import { plural } from '../../presenters/format.ts'

const TYPE_COLUMN = 16
const TROUBLE = ['target_error', 'lease_lost', 'store_trouble', 'journal_gap']

/** Whether something went wrong there, for `--errors`. */
export function isTrouble({ type, error, status }: JournalEntry): boolean {
  if (typeof error === 'string') return true
  if (type === 'run_end') return status !== 'succeeded'
  return typeof type === 'string' && TROUBLE.includes(type)
}

/** `2026-11-16 04:12:03.250  page_complete     key=ca/la page=3 items=20` */
export function printEntry(paper: Paper, entry: JournalEntry): void {
  const { time, type } = entry
  const name: Cell = {
    text: String(type).padEnd(TYPE_COLUMN),
    ink: isTrouble(entry) ? 'bad' : undefined,
  }
  paper.line({ text: clock(time), ink: 'dim' }, '  ', name, '  ', factsOf(entry))
}

/** What an entry says besides its time and type: `key=ca/la page=3 items=20`. */
export function factsOf(entry: JournalEntry): string {
  const { time: _, type: __, worker: ___, verdict, ...facts } = entry
  return Object.entries({ ...readable(verdict), ...facts })
    .filter(([, value]) => value !== null && value !== undefined)
    .map(([name, value]) => `${name}=${show(value)}`)
    .join(' ')
}

/** Of a verdict people want what was decided and why; the evidence is in the JSON. */
function readable(verdict: unknown): Record<string, unknown> {
  if (typeof verdict !== 'object' || verdict === null) return {}
  const { action, source, target, because } = verdict as Record<string, unknown>
  return { action, source, target, because }
}

function clock(time: unknown): string {
  const text = typeof time === 'string' ? time : '?'
  return text.replace('T', ' ').replace(/Z$/, '').padEnd(23)
}

function show(value: unknown): string {
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
