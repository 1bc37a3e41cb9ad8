import { constants } from 'node:fs'
import { lstat, open as openFile, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Emit, UnstuckEvent } from '../../core/model/event.ts'
import { isId, type WorkerId } from '../../core/model/id.ts'
import { redact } from '../../core/model/redact.ts'
import { AppendFile } from './append-file.ts'

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

const HOUR_MS = 60 * 60_000
const INTERVAL_MS = HOUR_MS
const KEEP_MS = 7 * 24 * HOUR_MS
const KEEP_NEWEST = 1_000
/** A worker writes to its journal every ten seconds: without a write for this long it has ended. */
const IDLE_MS = HOUR_MS
const BATCH = 1_000
const SUFFIX = '.jsonl'

type Journal = { readonly worker: WorkerId; readonly path: string; readonly writtenAt: number }

/** The store, as far as it is needed here. */
type WorkerList = { observations(): Promise<readonly { worker: { id: WorkerId } }[]> }

/** Removes old journals from a folder now and every hour, for as long as this process runs. An error is ignored until the next time. */
export function pruneJournalsHourly(folder: string, open: () => Promise<WorkerList>): void {
  const prune = (): void => void pruneJournals(folder, open, Date.now()).catch(() => {})
  setInterval(prune, INTERVAL_MS).unref()
  prune()
}

/**
 * Removes journals that were last written to more than a week ago, and all but the newest thousand; of both only those of
 * workers that have ended. Touches nothing but files of ours: named after a worker, no links, with its id in the first line.
 * Returns how many were removed.
 */
export async function pruneJournals(
  folder: string,
  open: () => Promise<WorkerList>,
  now: number,
): Promise<number> {
  const journals = await journalsIn(folder)
  const beyondLimit = new Set(journals.slice(0, -KEEP_NEWEST))
  const isOld = (journal: Journal): boolean => {
    const idleMs = now - journal.writtenAt
    return idleMs > KEEP_MS || (beyondLimit.has(journal) && idleMs > IDLE_MS)
  }
  const old = journals.filter(isOld).slice(0, BATCH)
  if (old.length === 0) return 0
  const working = new Set((await (await open()).observations()).map(({ worker }) => worker.id))
  let removed = 0
  for (const journal of old) {
    if (working.has(journal.worker) || !(await isJournal(journal))) continue
    if (
      await unlink(journal.path).then(
        () => true,
        () => false,
      )
    )
      removed++
  }
  return removed
}

/** Returns them by their last write, the oldest first. */
async function journalsIn(folder: string): Promise<Journal[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  const journals: Journal[] = []
  for (const { name } of entries.filter((entry) => entry.isFile())) {
    const worker = name.slice(0, -SUFFIX.length)
    if (!name.endsWith(SUFFIX) || !isId(worker)) continue
    const path = join(folder, name)
    const stat = await lstat(path).catch(() => null)
    if (stat) journals.push({ worker, path, writtenAt: stat.mtimeMs })
  }
  return journals.sort((a, b) => a.writtenAt - b.writtenAt)
}

const HEAD_BYTES = 200

/** A journal begins with the time and the id of its worker. */
async function isJournal({ path, worker }: Journal): Promise<boolean> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const opened = await openFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => null)
  if (!opened) return false
  await using file = opened
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  const head = buffer.toString('utf8', 0, bytesRead)
  return head.startsWith('{"time":"') && head.includes(`,"worker":"${worker}",`)
}
