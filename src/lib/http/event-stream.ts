/** Who has more than this unread is behind. A first picture may well be larger: that alone is no reason to end. */
const BEHIND_BYTES = 1024 * 1024
/** How long one may be behind without ever catching up. */
const BEHIND_MAX_MS = 20_000
/** What is kept for one reader at most, however short it has been behind. */
const UNREAD_MAX = 16 * BEHIND_BYTES
/** How long a browser waits before it comes again. */
const RETRY_MS = 2_000

const encoder = new TextEncoder()

/** An event as it goes over the line; made once, however many get it. `json` has no line feeds in it. */
export function eventFrame(event: string, json: string, id?: number): Uint8Array {
  const named = id === undefined ? `event: ${event}` : `id: ${id}\nevent: ${event}`
  return encoder.encode(`${named}\ndata: ${json}\n\n`)
}

export const KEEPALIVE = encoder.encode(': beat\n\n')

/** One reader's stream of events. */
export class EventStream {
  readonly response: Response
  /** Fires when it has ended, whoever ended it. */
  readonly ended: AbortSignal
  readonly #end = new AbortController()
  #controller!: ReadableStreamDefaultController<Uint8Array>
  /** Since when it is behind; null while it is not. */
  #behindSince: number | null = null

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
      new ByteLengthQueuingStrategy({ highWaterMark: BEHIND_BYTES }),
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

  /** Who goes on not reading what came before is dropped: a browser comes again and begins afresh. */
  send(frame: Uint8Array, now = performance.now()): void {
    if (this.ended.aborted) return
    const unread = BEHIND_BYTES - (this.#controller.desiredSize ?? 0)
    this.#behindSince = unread > BEHIND_BYTES ? (this.#behindSince ?? now) : null
    const isWithinTime = now - (this.#behindSince ?? now) <= BEHIND_MAX_MS
    // The first picture is sent whatever its size, else who comes again would never get it.
    const hasRoom = unread <= BEHIND_BYTES || unread + frame.length <= UNREAD_MAX
    if (isWithinTime && hasRoom) this.#controller.enqueue(frame)
    else this.close()
  }

  close(): void {
    if (this.ended.aborted) return
    this.#end.abort()
    this.#controller.close()
  }
}
