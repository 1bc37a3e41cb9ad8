/** Characters, with the mark of the cut. */
const LENGTH_MAX = 300
/** Frames and other details that may follow the line with the error. */
const DETAIL_LINES_MAX = 50

/** Finds the line of a command's stderr that describes why it failed. */
export class ErrorLine {
  /** The last line that begins with the name of an error, and how many lines came after it. */
  #error: string | null = null
  #linesAfter = 0
  /** The last line that is no detail of another one, and the last of all. */
  #message: string | null = null
  #last: string | null = null

  /** Lines without control characters and secrets. */
  push(lines: readonly string[]): void {
    for (const line of lines) {
      const text = line.trim()
      if (text === '') continue
      this.#linesAfter++
      this.#last = text
      if (!DETAIL.test(line)) this.#message = text
      if (!NAMES_ERROR.test(line.slice(0, LENGTH_MAX))) continue
      this.#error = text
      this.#linesAfter = 0
    }
  }

  get text(): string | null {
    const isRecent = this.#linesAfter <= DETAIL_LINES_MAX
    const text = (isRecent ? this.#error : null) ?? this.#message ?? this.#last
    return text === null || text.length <= LENGTH_MAX ? text : cut(text)
  }
}

/** `ValueError: …`, `TypeError [CODE]: …`, `requests.exceptions.Timeout: …`, `Caused by: java.io.IOException`, `panic: …`. */
const NAMES_ERROR =
  /^(?:(?:Uncaught |Caused by: )?(?:(?:[\w$]+\.)*[\w$]*(?:Error|Exception|Interrupt)(?=:|$| \[)|(?:[\w$]+\.)+[A-Z][\w$]*:)|Exception in thread "|(?:panic|fatal|error|PANIC|FATAL|ERROR)(?: error| ERROR)?:)/
/** An indented line, a hint of Rust, and the last line of Node. */
const DETAIL = /^(?:\s|note: |Node\.js v\d)/

function cut(text: string): string {
  // The cut may go through a character.
  return `${text.slice(0, LENGTH_MAX - 1).replace(/[\ud800-\udbff]$/, '')}…`
}
