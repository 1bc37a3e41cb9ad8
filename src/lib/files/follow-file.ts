import { open as openFile, stat, type FileHandle } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { rotatedPath } from './append-file.ts'

const BLOCK = 64 * 1024
const LINE_FEED = 0x0a
const POLL_MS = 250
/** More older files than this are not looked for. */
const ROTATED_MAX = 20
/** A file system whose inode numbers change with each read must not cause an endless loop. */
const ATTEMPTS_MAX = 100
const EMPTY = Buffer.alloc(0)

export type FollowFileOptions = {
  /** Fires when the reader has had enough. */
  readonly signal: AbortSignal
  /** Asked each time all was read that is there. After a yes there is one more look, and then it ends. */
  readonly isFinished?: () => Promise<boolean>
  /** The next part was removed before it was read. */
  readonly onMissed?: () => void
  readonly open?: (path: string) => Promise<FileHandle>
}

/**
 * The bytes of an open file from a place on, those to come, and those of the files that follow it under the same name.
 * An empty chunk marks the end for now. Closes the file. It polls instead of watching: that works on
 * every file system, and in containers.
 */
export async function* followFile(
  path: string,
  first: FileHandle,
  start: number,
  { signal, isFinished, onMissed, open = openFile }: FollowFileOptions,
): AsyncGenerator<Buffer> {
  let file = first
  let position = start
  let isLastRead = false
  let next: NextFile | null = null
  try {
    while (!signal.aborted) {
      const { bytesRead, buffer } = await file.read(Buffer.alloc(BLOCK), 0, BLOCK, position)
      position += bytesRead
      if (bytesRead > 0) {
        yield buffer.subarray(0, bytesRead)
        continue
      }
      if (next) {
        await file.close()
        file = next.file
        position = 0
        if (next.missed) onMissed?.()
        next = null
        // Half a line of the old file must not run into the new one.
        yield Buffer.from('\n')
        continue
      }
      next = await findNextFile(path, file, position, open)
      // What was appended between the read above and the rotation is still to be read.
      if (next) continue
      if (isLastRead) return
      yield EMPTY
      isLastRead = (await isFinished?.()) ?? false
      await sleep(POLL_MS, undefined, { signal }).catch(() => {})
    }
  } finally {
    await file.close()
    await next?.file.close()
  }
}

/** Where the last `count` lines of a file begin, looked for from its end: such files grow large. */
export async function lastLinesOffset(file: FileHandle, count: number): Promise<number> {
  const block = Buffer.alloc(BLOCK)
  // The line feed at the very end closes the last line and begins none, so one more is looked for.
  let wanted = count + 1
  const { size } = await file.stat()
  for (let end = size; end > 0; end -= BLOCK) {
    const start = Math.max(0, end - BLOCK)
    const { bytesRead } = await file.read(block, 0, end - start, start)
    if (end === size && block[bytesRead - 1] !== LINE_FEED) wanted--
    for (let i = bytesRead - 1; i >= 0; i--) {
      if (block[i] === LINE_FEED && --wanted === 0) return start + i + 1
    }
  }
  return 0
}

type NextFile = { readonly file: FileHandle; readonly missed: boolean }

type RotatedFile = { readonly path: string; readonly ino: number }

/** A file and those it once was, newest first. */
export async function rotatedFiles(path: string): Promise<RotatedFile[]> {
  const paths = [path, ...Array.from({ length: ROTATED_MAX }, (_, n) => rotatedPath(path, n + 1))]
  const all = await Promise.all(
    paths.map(async (path) => {
      const found = await stat(path).catch(() => null)
      return found && { path, ino: found.ino }
    }),
  )
  return all.filter((one) => one !== null)
}

/** The file that was begun when ours was full, or put in its place; null while ours is the newest. */
async function findNextFile(
  path: string,
  file: FileHandle,
  position: number,
  open: (path: string) => Promise<FileHandle>,
): Promise<NextFile | null> {
  const { ino } = await file.stat()
  const newest = await stat(path).catch(() => null)
  if (newest?.ino === ino) {
    return newest.size < position ? { file: await open(path), missed: false } : null
  }
  for (let tries = 0; tries < ATTEMPTS_MAX; tries++) {
    const next = nextAfter(await rotatedFiles(path), ino)
    if (!next) return null
    const opened = await open(next.path).catch(ignoreMissing)
    // Names change during the check: only what holds before and after counts.
    const isSame = (await opened?.stat())?.ino === next.ino
    const isStill = isSame && nextAfter(await rotatedFiles(path), ino)?.ino === next.ino
    if (opened && isStill) return { file: opened, missed: next.missed }
    await opened?.close()
  }
  return null
}

function ignoreMissing(error: unknown): null {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
  throw error
}

/** Files before ours are newer. If ours is gone, the oldest is the nearest. */
function nextAfter(
  newestFirst: readonly RotatedFile[],
  ino: number,
): (RotatedFile & { missed: boolean }) | null {
  const at = newestFirst.findIndex((one) => one.ino === ino)
  const next = at === -1 ? newestFirst.at(-1) : newestFirst[at - 1]
  return next ? { ...next, missed: at === -1 } : null
}
