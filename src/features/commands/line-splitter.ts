import { StringDecoder } from 'node:string_decoder'

/** What is kept of a line, in characters. */
export const LINE_MAX = 64 * 1024
/** More of a long line is looked at than is kept, so that no secret escapes because the cut went through it. */
const LOOKAHEAD = 4 * 1024
export const TRUNCATION_MARK = ' … [cut: the line was longer than 64 KB]'

/** The bytes that a program prints, as lines that are made clean. Holds no more than one line, however long it gets. */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8')
  readonly #sanitize: (text: string) => string
  /** The line that has not ended. */
  #partial = ''
  /** It was cut already: what still comes of it is passed over. */
  #isTruncated = false

  constructor(sanitize: (text: string) => string) {
    this.#sanitize = sanitize
  }

  /** The lines that end in this chunk. */
  push(chunk: Buffer): string[] {
    return this.#split(this.#decoder.write(chunk))
  }

  /** The last line, if it has no end of its own. */
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

/** A progress bar writes over its line again and again: what a person would have seen last. */
function lastOverwrite(line: string): string {
  if (!line.includes('\r')) return line
  let end = line.length
  while (line[end - 1] === '\r') end--
  return end === 0 ? '' : line.slice(line.lastIndexOf('\r', end - 1) + 1, end)
}

/** The same while more may come. A carriage return at the end may be half of a line's end, so it stays. */
function partialLine(line: string): string {
  return line.endsWith('\r') ? `${lastOverwrite(line)}\r` : lastOverwrite(line)
}
