import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'

export type ReceivedEvent = {
  readonly event: string
  readonly id: string | null
  readonly data: any
}

/** On a busy machine everything takes its time: a limit only ends a test that would never end. */
const TIMEOUT_MS = 150_000

/** A reader of server-sent events: a tab without a browser. */
export class EventReader implements AsyncDisposable {
  readonly response: Response
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #events: ReceivedEvent[] = []
  readonly #decoder = new TextDecoder()
  #buffer = ''
  /** Everything that came over the line. */
  text = ''

  private constructor(response: Response) {
    this.response = response
    this.#reader = response.body!.getReader()
  }

  static async open(url: string, headers: Record<string, string> = {}): Promise<EventReader> {
    const response = await fetch(url, { headers })
    assert.equal(response.status, 200, `${url} answered ${response.status}`)
    assert.match(response.headers.get('content-type') ?? '', /^text\/event-stream/)
    return new EventReader(response)
  }

  /** The next event of this kind that fits; others in between are passed over. */
  async next(event: string, matches: (data: any) => boolean = () => true): Promise<ReceivedEvent> {
    for (;;) {
      const one = this.#events.shift() ?? (await this.#read())
      assert.ok(one, `the stream ended before ${event} came`)
      if (one.event === event && matches(one.data)) return one
    }
  }

  /** Reads until the server has ended it, which it does within this time. */
  async end(withinMs: number): Promise<void> {
    const ended = (async () => {
      while (await this.#read());
      return true
    })().catch(() => false)
    assert.ok(await Promise.race([ended, sleep(withinMs, false)]), 'it has not ended in time')
  }

  async #read(): Promise<ReceivedEvent | null> {
    for (;;) {
      const at = this.#buffer.indexOf('\n\n')
      if (at === -1) {
        const { value, done } = await this.#withTimeout(this.#reader.read())
        if (done) return null
        const chunk = this.#decoder.decode(value, { stream: true })
        this.text += chunk
        this.#buffer += chunk
        continue
      }
      const event = parse(this.#buffer.slice(0, at))
      this.#buffer = this.#buffer.slice(at + 2)
      if (event) return event
    }
  }

  async #withTimeout<T>(read: Promise<T>): Promise<T> {
    const { promise, reject } = Promise.withResolvers<never>()
    const late = () => reject(new Error(`nothing came for ${TIMEOUT_MS / 1_000} s`))
    const timer = setTimeout(late, TIMEOUT_MS)
    return Promise.race([read, promise]).finally(() => clearTimeout(timer))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader.cancel().catch(() => {})
  }
}

function parse(block: string): ReceivedEvent | null {
  const fields = Object.fromEntries(
    block.split('\n').map((line) => {
      const [, name = '', value = ''] = /^([a-z]*): ?(.*)$/.exec(line) ?? []
      return [name, value]
    }),
  )
  if (fields['event'] === undefined) return null
  const data: unknown = JSON.parse(fields['data'] ?? 'null')
  return { event: fields['event'], id: fields['id'] ?? null, data }
}
