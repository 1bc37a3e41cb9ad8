import { StringDecoder } from 'node:string_decoder'

/** The longest line, in characters; the rest is cut. */
export const LINE_MAX = 64 * 1024
/** Redacted beyond the cut, so that a secret at the cut is found too. */
const LOOKAHEAD = 4 * 1024
export const TRUNCATION_MARK = ' … [cut: the line was longer than 64 KB]'

/** Splits output into sanitized lines. Buffers at most one line, of bounded length. */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8')
  readonly #sanitize: (text: string) => string
  /** The line without an end yet. */
  #partial = ''
  /** The current line was cut; its rest is skipped. */
  #isTruncated = false

  constructor(sanitize: (text: string) => string) {
    this.#sanitize = sanitize
  }

  /** Returns the lines that end in this chunk. */
  push(chunk: Buffer): string[] {
    return this.#split(this.#decoder.write(chunk))
  }

  /** Returns the last line, if it has no line feed. */
  end(): string[] {
    const lines = this.#split(this.#decoder.end())
    if (this.#partial !== '') lines.push(this.#finish(this.#partial))
    this.#partial = ''
    return lines
  }

  #split(text: string): string[] {
    const pieces = text.split('\n')
    pieces[0] = this.#partial + pieces[0]!
    this.#partial = pieces.pop()!
    if (this.#isTruncated && pieces.length > 0) {
      pieces.shift()
      this.#isTruncated = false
    }
    const lines = pieces.map((piece) => this.#finish(piece))
    if (this.#isTruncated) this.#partial = ''
    else this.#partial = partialLine(this.#partial)
    if (this.#partial.length > LINE_MAX + LOOKAHEAD) {
      lines.push(truncate(this.#sanitize(this.#partial).slice(0, -LOOKAHEAD)))
      this.#partial = ''
      this.#isTruncated = true
    }
    return lines
  }

  #finish(line: string): string {
    const text = this.#sanitize(lastOverwrite(line))
    return text.length > LINE_MAX ? truncate(text) : text
  }
}

function truncate(text: string): string {
  return text.slice(0, LINE_MAX) + TRUNCATION_MARK
}

/** Returns the text after the last carriage return: what a terminal would show of a progress bar. */
function lastOverwrite(line: string): string {
  if (!line.includes('\r')) return line
  let end = line.length
  while (line[end - 1] === '\r') end--
  return end === 0 ? '' : line.slice(line.lastIndexOf('\r', end - 1) + 1, end)
}

/** The same for an incomplete line. A trailing carriage return may be half of a line end, so it stays. */
function partialLine(line: string): string {
  return line.endsWith('\r') ? `${lastOverwrite(line)}\r` : lastOverwrite(line)
}
