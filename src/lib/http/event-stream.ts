/** A client with more unread bytes is behind. A snapshot may be larger: that alone does not end the stream. */
const BEHIND_BYTES = 1024 * 1024
/** How long a client may stay behind. */
const BEHIND_MAX_MS = 20_000
/** The most that is buffered for one client. */
const UNREAD_MAX = 16 * BEHIND_BYTES
/** How long a browser waits before it reconnects. */
const RETRY_MS = 2_000

const encoder = new TextEncoder()

/** Encodes an event, once for all clients. `json` must not contain line feeds. */
export function eventFrame(event: string, json: string, id?: number): Uint8Array {
  const named = id === undefined ? `event: ${event}` : `id: ${id}\nevent: ${event}`
  return encoder.encode(`${named}\ndata: ${json}\n\n`)
}

export const KEEPALIVE = encoder.encode(': beat\n\n')

/** The event stream of one client. */
export class EventStream {
  readonly response: Response
  /** Fires when the stream has ended, from either side. */
  readonly ended: AbortSignal
  readonly #end = new AbortController()
  #controller!: ReadableStreamDefaultController<Uint8Array>
  /** When the client fell behind; null if it is not behind. */
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
        // Stops proxies from buffering the response.
        'x-accel-buffering': 'no',
      },
    })
  }

  /** Sends a frame, or ends the stream of a client that stays behind: the browser reconnects and gets a new snapshot. */
  send(frame: Uint8Array, now = performance.now()): void {
    if (this.ended.aborted) return
    const unread = BEHIND_BYTES - (this.#controller.desiredSize ?? 0)
    this.#behindSince = unread > BEHIND_BYTES ? (this.#behindSince ?? now) : null
    const isWithinTime = now - (this.#behindSince ?? now) <= BEHIND_MAX_MS
    // A snapshot is sent whatever its size, else a reconnecting client would never get it.
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
