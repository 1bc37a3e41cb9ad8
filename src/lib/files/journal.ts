import type { Emit, UnstuckEvent } from '../../core/model/event.ts'
import type { WorkerId } from '../../core/model/id.ts'
import { AppendFile } from './append-file.ts'
import { redact } from '../../core/model/redact.ts'

/** Longer lines are neither written nor read: a reader holds a line in memory. */
export const LINE_BYTES_MAX = 1_000_000

/**
 * Opens the journal of a worker: one JSON object per line, `{ time, worker, …event }`. Only for reading along, so it never
 * throws. Events that cannot be written are counted, and the count is written when writing works again.
 */
export function openJournal(
  path: string,
  worker: WorkerId,
  options: { retryAfterMs?: number } = {},
): Emit {
  const gapLine = (lost: number): string => lineOf(worker, { type: 'journal_gap', lost })
  const file = new AppendFile(path, { ...options, gapLine })
  return (event) => {
    try {
      file.append(lineOf(worker, event))
    } catch {
      // The event cannot be written as JSON.
      file.countLost(1)
    }
  }
}

type Gap = { readonly type: 'journal_gap'; readonly lost: number }

function lineOf(worker: WorkerId, event: UnstuckEvent | Gap): string {
  const time = new Date().toISOString()
  const line = redact(JSON.stringify({ time, worker, ...event }))
  if (Buffer.byteLength(line) < LINE_BYTES_MAX) return `${line}\n`
  return `${JSON.stringify({ time, worker, type: event.type, tooLong: line.length })}\n`
}
