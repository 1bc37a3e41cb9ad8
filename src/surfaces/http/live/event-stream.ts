/** What a reader may leave unread before it is taken for gone. */
const UNREAD_MAX = 1024 * 1024
/** How long a browser waits before it comes again. */
const RETRY_MS = 2_000

const encoder = new TextEncoder()

/** An event as it goes over the line; made once, however many get it. `json` has no line feeds in it. */
export function eventFrame(event: string, json: string, id?: number): Uint8Array {
  const named = id === undefined ? `event: ${event}` : `id: ${id}\nevent: ${event}`
  return encoder.encode(`${named}\ndata: ${json}\n\n`)
}

export const BEAT = encoder.encode(': beat\n\n')

/** One reader's stream of events. */
export class EventStream {
  readonly response: Response
  /** Fires when it has ended, whoever ended it. */
  readonly ended: AbortSignal
  readonly #end = new AbortController()
  #controller!: ReadableStreamDefaultController<Uint8Array>

  constructor() {
    this.ended = this.#end.signal
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller
          controller.enqueue(encoder.encode(`retry: ${RETRY_MS}\n\n`))
        },
        cancel: () => this.#end.abort(),
      },
      new ByteLengthQueuingStrategy({ highWaterMark: UNREAD_MAX }),
    )
    this.response = new Response(body, {
      headers: {
        'content-type': 'text/event-stream; charset=utf-8',
        'cache-control': 'no-store',
        // Proxies that gather an answer before they pass it on would gather this one for ever.
        'x-accel-buffering': 'no',
      },
    })
  }

  /** Who does not read what came before is dropped: a browser comes again and begins afresh. */
  send(frame: Uint8Array): void {
    if (this.ended.aborted) return
    if ((this.#controller.desiredSize ?? 0) > 0) this.#controller.enqueue(frame)
    else this.close()
  }

  close(): void {
    if (this.ended.aborted) return
    this.#end.abort()
    this.#controller.close()
  }
}
