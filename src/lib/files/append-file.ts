import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  writeSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { assertTrusted } from '../../core/host/trusted-path.ts'

/** After a failed write, lines are only counted for this time: on a full disk each attempt would cost a system call. */
const RETRY_AFTER_MS = 1_000
const LINE_FEED = 0x0a
/** A rotation takes less than a millisecond. */
const LOCK_MS = 5_000
const NO_THROW = { throwIfNoEntry: false } as const

export type AppendOptions = {
  /** Makes the line, with its line feed, that reports how many lines were lost before it. */
  readonly gapLine: (lost: number) => string
  /** A file that would grow beyond this size is renamed to `PATH.1`. Without it the file is never rotated. */
  readonly maxBytes?: number
  /** How many rotated files are kept, at least one. */
  readonly keep?: number
  readonly retryAfterMs?: number
}

/**
 * Appends lines to a file. Lines are with the kernel when the call returns, so killing this process loses none. Never
 * throws: lines that cannot be written are counted, and the count is written when writing works again.
 */
export class AppendFile {
  readonly #path: string
  readonly #gapLine: AppendOptions['gapLine']
  readonly #maxBytes: number
  readonly #keep: number
  readonly #retryAfterMs: number
  #fd: number | null = null
  #size = 0
  #lost = 0
  #retryAt = 0

  constructor(path: string, options: AppendOptions) {
    this.#path = path
    this.#gapLine = options.gapLine
    this.#maxBytes = options.maxBytes ?? Infinity
    this.#keep = options.keep ?? 1
    this.#retryAfterMs = options.retryAfterMs ?? RETRY_AFTER_MS
  }

  /** Appends whole lines, each with its line feed. */
  append(lines: string): void {
    const bytes = Buffer.from(lines)
    const canRetry = performance.now() >= this.#retryAt
    const written = canRetry && this.#writeGap() ? this.#write(bytes) : 0
    if (written < bytes.length) this.countLost(countLines(bytes.subarray(written)))
  }

  /** Counts lines that are not written; the next line reports them. */
  countLost(lines: number): void {
    this.#lost += lines
  }

  /** Closes the file. The next line opens it again. */
  close(): void {
    try {
      if (this.#fd !== null) closeSync(this.#fd)
    } catch {
      // A failed close has no remedy.
    }
    this.#fd = null
  }

  #writeGap(): boolean {
    if (this.#lost === 0) return true
    const line = Buffer.from(this.#gapLine(this.#lost))
    if (this.#write(line) < line.length) return false
    this.#lost = 0
    return true
  }

  /** Returns how many bytes were written. */
  #write(bytes: Buffer): number {
    let total = 0
    try {
      while (total < bytes.length) {
        this.#fd ??= this.#open()
        // Another process may write the same file.
        this.#size = fstatSync(this.#fd).size
        const rest = bytes.subarray(total)
        const part = this.#linesThatFit(rest)
        if (part.length === 0 && this.#rotate()) continue
        total += writeSync(this.#fd, part.length === 0 ? rest : part)
      }
    } catch {
      this.close()
      this.#retryAt = performance.now() + this.#retryAfterMs
    }
    return total
  }

  #open(): number {
    const folder = dirname(this.#path)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    assertTrusted(this.#path, 'log', { within: dirname(folder) })
    const { O_RDWR, O_APPEND, O_CREAT, O_NOFOLLOW } = constants
    const fd = openSync(this.#path, O_RDWR | O_APPEND | O_CREAT | O_NOFOLLOW, 0o600)
    try {
      const stat = fstatSync(fd)
      // Opening a pipe without a reader would block.
      if (!stat.isFile()) throw new Error(`${this.#path} is no file`)
      this.#size = stat.size
      if (endsInsideLine(fd, stat.size)) this.#size += writeSync(fd, '\n')
      return fd
    } catch (error) {
      closeSync(fd)
      throw error
    }
  }

  /** Returns true if another process that writes the same file has rotated it, and this one continues in the new file. */
  #reopenIfReplaced(): boolean {
    const isReplaced = fstatSync(this.#fd!).ino !== lstatSync(this.#path, NO_THROW)?.ino
    if (isReplaced) this.close()
    return isReplaced
  }

  /** Returns as many whole lines as fit into the file. A line longer than the limit gets a file of its own. */
  #linesThatFit(bytes: Buffer): Buffer {
    const room = this.#maxBytes - this.#size
    if (bytes.length <= room) return bytes
    const end = room > 0 ? bytes.lastIndexOf(LINE_FEED, room - 1) + 1 : 0
    return bytes.subarray(0, end > 0 || this.#size > 0 ? end : bytes.indexOf(LINE_FEED) + 1)
  }

  /** Begins a new file. Returns false while another process that writes the same file does: the full one then takes the lines. */
  #rotate(): boolean {
    const lock = `${this.#path}.lock`
    if (!tryLock(lock)) return false
    try {
      if (this.#reopenIfReplaced()) return true
      this.close()
      for (let n = this.#keep - 1; n >= 1; n--) {
        renameIfExists(rotatedPath(this.#path, n), rotatedPath(this.#path, n + 1))
      }
      renameIfExists(this.#path, rotatedPath(this.#path, 1))
      return true
    } finally {
      rmSync(lock, { force: true })
    }
  }
}

/** Returns the name of a rotated file; 1 is the newest. */
export function rotatedPath(path: string, n: number): string {
  return `${path}.${n}`
}

/** Returns false if another process has the lock. One that was killed with it has it for a while longer. */
function tryLock(path: string): boolean {
  try {
    closeSync(openSync(path, 'wx', 0o600))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    const { mtimeMs = Infinity } = lstatSync(path, NO_THROW) ?? {}
    if (Date.now() - mtimeMs > LOCK_MS) rmSync(path, { force: true })
    return false
  }
}

function renameIfExists(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

/** Returns whether the file ends in half a line, left by a kill during a write or by a full disk. */
function endsInsideLine(fd: number, size: number): boolean {
  if (size === 0) return false
  const last = Buffer.alloc(1)
  readSync(fd, last, 0, 1, size - 1)
  return last[0] !== LINE_FEED
}

function countLines(bytes: Buffer): number {
  let count = 0
  for (let at = -1; (at = bytes.indexOf(LINE_FEED, at + 1)) !== -1;) count++
  return count
}
