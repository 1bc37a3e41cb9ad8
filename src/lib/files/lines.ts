import type { FileHandle } from 'node:fs/promises'

const BLOCK = 64 * 1024
const LINE_FEED = 0x0a

export type LinePage = {
  readonly lines: string[]
  /** Behind the last of them: where the next page begins. */
  readonly end: number
}

/**
 * Whole lines of a file from a place on: at most so many, and about so many bytes of them, but always one if there is one. A
 * line that is still being written is left for the next page; one that is longer than a page is passed over.
 */
export async function readLines(
  file: FileHandle,
  start: number,
  { lines: linesMax, bytes }: { lines: number; bytes: number },
): Promise<LinePage> {
  const lines: string[] = []
  let end = start
  let rest = Buffer.alloc(0)
  while (lines.length < linesMax && end - start < bytes) {
    const block = Buffer.alloc(BLOCK)
    const { bytesRead } = await file.read(block, 0, BLOCK, end + rest.length)
    if (bytesRead === 0) break
    const content = Buffer.concat([rest, block.subarray(0, bytesRead)])
    let from = 0
    for (let at; lines.length < linesMax && (at = content.indexOf(LINE_FEED, from)) !== -1;) {
      lines.push(content.toString('utf8', from, at))
      from = at + 1
    }
    end += from
    rest = content.subarray(from)
    if (lines.length === 0 && rest.length >= bytes) {
      end += rest.length
      rest = Buffer.alloc(0)
    }
  }
  return { lines, end }
}

/**
 * Splits bytes in chunks, cut anywhere, into lines. Empty lines are skipped, and so are those longer than the
 * limit: a line is held in memory until its end is there.
 */
export class LineSplitter {
  readonly #maxBytes: number
  #parts: Buffer[] = []
  #length = 0
  /** How many lines were passed over. */
  tooLong = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** The lines that end in this chunk. */
  push(chunk: Buffer): Buffer[] {
    const lines: Buffer[] = []
    let from = 0
    for (let end; (end = chunk.indexOf(LINE_FEED, from)) !== -1; from = end + 1) {
      this.#add(chunk.subarray(from, end))
      const line = this.end()
      if (line) lines.push(line)
    }
    this.#add(chunk.subarray(from))
    return lines
  }

  /** What is left of a line that has not ended; null when nothing is. */
  end(): Buffer | null {
    const [parts, length] = [this.#parts, this.#length]
    this.#parts = []
    this.#length = 0
    if (length > this.#maxBytes) this.tooLong++
    if (length === 0 || length > this.#maxBytes) return null
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  }

  #add(part: Buffer): void {
    if (part.length === 0) return
    this.#length += part.length
    if (this.#length <= this.#maxBytes) this.#parts.push(part)
    else this.#parts = []
  }
}
