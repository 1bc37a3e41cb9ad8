import { createHash } from 'node:crypto'
import { constants } from 'node:fs'
import { lstat, open as openFile, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import type { Emit, UnstuckEvent } from '../../core/model/event.ts'
import { isId, shortId, type WorkerId } from '../../core/model/id.ts'
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

const SUFFIX = '.jsonl'
const PLAIN_SOURCE = /^[a-z0-9][a-z0-9._-]{0,59}$/i
const SLUG_MAX = 50
const NAME = /^(?:(.{1,60})-([0-9a-f]{8})-\d{1,10}|([0-9a-f-]{36}))\.jsonl(\.zst)?$/

/** Returns the name of a worker's journal: its source, the end of its id, and the process that writes. */
export function journalName(source: string, worker: WorkerId, pid: number): string {
  return `${sourceInName(source)}-${shortId(worker)}-${pid}${SUFFIX}`
}

/** Returns how file names name a source; a name that is long or has other characters gets a digest. */
export function sourceInName(source: string): string {
  // Workers of many sources: `unstuck work --exec`.
  if (source === '') return 'commands'
  if (PLAIN_SOURCE.test(source)) return source
  const slug = source
    .replace(/[^a-z0-9]+/gi, '-')
    .replace(/^-/, '')
    .slice(0, SLUG_MAX)
  const digest = createHash('sha256').update(source).digest('hex').slice(0, 8)
  return `${slug.replace(/-$/, '') || 'source'}-${digest}`
}

/** A file that is named like a journal. */
export type JournalFile = {
  readonly path: string
  /** As file names name it; null: the name has only the id of its worker, as in earlier versions. */
  readonly source: string | null
  /** The id of its worker, or the end of it. */
  readonly worker: string
  readonly isCompressed: boolean
}

/** Returns the journals in a folder by their names. Links are left out. */
export async function listJournals(folder: string): Promise<JournalFile[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch(() => [])
  return entries.flatMap((entry) => {
    const [, source = null, end, id, compressed] = NAME.exec(entry.name) ?? []
    const worker = end ?? id
    if (!entry.isFile() || worker === undefined || (id !== undefined && !isId(id))) return []
    return [{ path: join(folder, entry.name), source, worker, isCompressed: !!compressed }]
  })
}

const HOUR_MS = 60 * 60_000
const INTERVAL_MS = HOUR_MS
const KEEP_MS = 7 * 24 * HOUR_MS
const KEEP_NEWEST = 1_000
/** A worker writes to its journal every ten seconds: without a write for this long it has ended. */
const IDLE_MS = HOUR_MS
const BATCH = 1_000

type Journal = Pick<JournalFile, 'path' | 'worker'> & { readonly writtenAt: number }

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
    const worker = await readWorker(journal)
    if (worker === null || working.has(worker)) continue
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
  const journals: Journal[] = []
  for (const { path, worker, isCompressed } of await listJournals(folder)) {
    const stat = isCompressed ? null : await lstat(path).catch(() => null)
    if (stat) journals.push({ worker, path, writtenAt: stat.mtimeMs })
  }
  return journals.sort((a, b) => a.writtenAt - b.writtenAt)
}

const HEAD_BYTES = 200
const HEAD = /^\{"time":".*?,"worker":"([0-9a-f-]{36})",/

/** Returns the worker in the first line of a journal; null if its name is of another one, or the file is no journal. */
async function readWorker({ path, worker }: Journal): Promise<WorkerId | null> {
  const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants
  const opened = await openFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK).catch(() => null)
  if (!opened) return null
  await using file = opened
  const { buffer, bytesRead } = await file.read(Buffer.alloc(HEAD_BYTES), 0, HEAD_BYTES, 0)
  const [, id = ''] = HEAD.exec(buffer.toString('utf8', 0, bytesRead)) ?? []
  return id.endsWith(worker) ? id : null
}
