import { closeSync, constants, fstatSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Emit, UnstuckEvent } from '../model/event.ts'
import type { WorkerId } from '../model/id.ts'
import { redact } from './redact.ts'

/** Longer lines are not written, and not read either: no event needs them, and a reader holds a line in memory. */
export const LINE_BYTES_MAX = 1_000_000
/** After a failed write, how long lines are only counted: a full disk must not cost each event a system call. */
const RETRY_AFTER_MS = 1_000

/**
 * A worker's journal, for people: one JSON object per line, `{ time, worker, …event }`. The database is the truth;
 * so nothing here ever throws. What cannot be written is counted, and the count is written when it works again.
 */
export function openJournal(
  path: string,
  worker: WorkerId,
  { retryAfterMs = RETRY_AFTER_MS } = {},
): Emit {
  let fd: number | null = null
  let lost = 0
  let retryAt = 0
  /** The file ends inside a line: the next one must not continue it. */
  let torn = false

  const append = (line: string): void => {
    if (fd === null) {
      fd = open(path)
      torn = endsInsideLine(fd)
    }
    const bytes = Buffer.from(torn ? `\n${line}` : line)
    torn = writeSync(fd, bytes) < bytes.length
    if (torn) throw new Error('the disk took only a part')
  }

  return (event) => {
    const uptime = performance.now()
    if (uptime < retryAt) {
      lost++
      return
    }
    try {
      const line = lineOf(worker, event)
      if (lost > 0) append(lineOf(worker, { type: 'journal_gap', lost }))
      lost = 0
      append(line)
    } catch {
      lost++
      retryAt = uptime + retryAfterMs
      fd = closeQuietly(fd)
    }
  }
}

function open(path: string): number {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants
  return openSync(path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)
}

type Gap = { readonly type: 'journal_gap'; readonly lost: number }

function lineOf(worker: WorkerId, event: UnstuckEvent | Gap): string {
  const time = new Date().toISOString()
  const line = redact(JSON.stringify({ time, worker, ...event }))
  if (Buffer.byteLength(line) < LINE_BYTES_MAX) return `${line}\n`
  return `${JSON.stringify({ time, worker, type: event.type, tooLong: line.length })}\n`
}

/** A process killed in the middle of a write leaves half a line behind. */
function endsInsideLine(fd: number): boolean {
  const { size } = fstatSync(fd)
  if (size === 0) return false
  const last = Buffer.alloc(1)
  readSync(fd, last, 0, 1, size - 1)
  return last[0] !== 0x0a
}

function closeQuietly(fd: number | null): null {
  try {
    if (fd !== null) closeSync(fd)
  } catch {
    // There is nothing left to do about it.
  }
  return null
}
