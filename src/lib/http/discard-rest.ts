import type { IncomingMessage } from 'node:http'

/** An answer before the body is read to its end gets lost with many clients: so the rest is read, and thrown away. */
const DISCARD_BYTES_MAX = 64 * 1024 * 1024
const DISCARD_MS_MAX = 2_000

/** Reads and throws away what is left of a request that is refused. False when there is no end to it. */
export async function discardRest(request: IncomingMessage): Promise<boolean> {
  if (request.complete || request.destroyed) return request.complete
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, DISCARD_MS_MAX)
  let left = DISCARD_BYTES_MAX
  request.on('data', (chunk: Buffer) => {
    left -= chunk.length
    if (left < 0) resolve()
  })
  request.once('end', resolve).once('close', resolve).once('error', resolve)
  await promise
  clearTimeout(timer)
  return request.complete
}
