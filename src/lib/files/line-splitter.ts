const LINE_FEED = 0x0a

/**
 * Bytes that come in chunks, cut anywhere, as lines. Empty lines are passed over, and so are those longer than the
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
