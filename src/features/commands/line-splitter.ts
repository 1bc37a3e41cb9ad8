import { StringDecoder } from 'node:string_decoder'

/** What is kept of a line, in characters. */
export const LINE_MAX = 64 * 1024
/** More of a long line is looked at than is kept, so that no secret escapes because the cut went through it. */
const BEYOND = 4 * 1024
export const CUT_MARK = ' … [cut: the line was longer than 64 KB]'

/** The bytes that a program prints, as lines that are made clean. Holds no more than one line, however long it gets. */
export class LineSplitter {
  readonly #decoder = new StringDecoder('utf8')
  readonly #clean: (text: string) => string
  /** The line that has not ended. */
  #rest = ''
  /** It was cut already: what still comes of it is passed over. */
  #isCut = false

  constructor(clean: (text: string) => string) {
    this.#clean = clean
  }

  /** The lines that end in this chunk. */
  push(chunk: Buffer): string[] {
    return this.#take(this.#decoder.write(chunk))
  }

  /** The last line, if it has no end of its own. */
  end(): string[] {
    const lines = this.#take(this.#decoder.end())
    if (this.#rest !== '') lines.push(this.#finish(this.#rest))
    this.#rest = ''
    return lines
  }

  #take(text: string): string[] {
    const pieces = text.split('\n')
    pieces[0] = this.#rest + pieces[0]!
    this.#rest = pieces.pop()!
    if (this.#isCut && pieces.length > 0) {
      pieces.shift()
      this.#isCut = false
    }
    const lines = pieces.map((piece) => this.#finish(piece))
    if (this.#isCut) this.#rest = ''
    else this.#rest = unfinished(this.#rest)
    if (this.#rest.length > LINE_MAX + BEYOND) {
      lines.push(cut(this.#clean(this.#rest).slice(0, -BEYOND)))
      this.#rest = ''
      this.#isCut = true
    }
    return lines
  }

  #finish(line: string): string {
    const text = this.#clean(lastState(line))
    return text.length > LINE_MAX ? cut(text) : text
  }
}

function cut(text: string): string {
  return text.slice(0, LINE_MAX) + CUT_MARK
}

/** A progress bar writes over its line again and again: what a person would have seen last. */
function lastState(line: string): string {
  if (!line.includes('\r')) return line
  let end = line.length
  while (line[end - 1] === '\r') end--
  return end === 0 ? '' : line.slice(line.lastIndexOf('\r', end - 1) + 1, end)
}

/** The same while more may come. A carriage return at the end may be half of a line's end, so it stays. */
function unfinished(line: string): string {
  return line.endsWith('\r') ? `${lastState(line)}\r` : lastState(line)
}
