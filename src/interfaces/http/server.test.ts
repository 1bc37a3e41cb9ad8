import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { TEST_ROUTES } from '../../testing/http-test-routes.ts'
import { createHttpTestContext, type HttpTestContext } from '../../testing/http-test-context.ts'
import { HttpServer } from './server.ts'
import type { Route } from '../../contracts/route.ts'

const probes = { app: { routes: TEST_ROUTES } }

function connectRaw({ url }: HttpTestContext): Socket {
  const { hostname, port } = new URL(url)
  return connect(Number(port), hostname).on('error', () => {})
}

/** Sends bytes as they are; answers all that came back until the other end hung up. */
async function exchange(ctx: HttpTestContext, bytes: string): Promise<string> {
  const socket = connectRaw(ctx)
  socket.write(bytes)
  return text(socket)
}

const post = (ctx: HttpTestContext, length: number | string): string =>
  `POST /api/act HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${ctx.tokens.operator}\r\n` +
  `content-type: application/json\r\n${typeof length === 'number' ? `content-length: ${length}` : length}\r\n\r\n`

test('too much is refused: headers, bodies, depth', async () => {
  await using ctx = await createHttpTestContext(probes)
  const long = await exchange(
    ctx,
    `GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx: ${'x'.repeat(17_000)}\r\n\r\n`,
  )
  assert.match(long, /^HTTP\/1\.1 431 /)
  const as = 'operator'
  const big = await ctx.call('POST', '/api/act', { as, body: { because: 'x'.repeat(300_000) } })
  assert.deepEqual([big.status, big.body.error.code], [413, 'BODY_TOO_LARGE'])
  const fits = await ctx.call('POST', '/api/act', { as, body: { because: 'x'.repeat(250_000) } })
  assert.equal(fits.status, 200)
  const deep = await fetch(`${ctx.url}/api/act`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${ctx.tokens.operator}`,
      'content-type': 'application/json',
    },
    body: '['.repeat(100_000),
  })
  assert.equal(deep.status, 400)
  assert.match(await deep.text(), /nested deeper than 32/)
})

test('a body without an end is refused on the way, and stays out of memory', async () => {
  await using ctx = await createHttpTestContext(probes)
  const socket = connectRaw(ctx)
  socket.write(post(ctx, 'transfer-encoding: chunked'))
  const chunk = `10000\r\n${'x'.repeat(65_536)}\r\n`
  const before = process.memoryUsage().rss
  let sent = 0
  socket.on('drain', () => {
    while (!socket.destroyed && socket.write(chunk)) sent += 65_536
  })
  socket.write(chunk)
  // It is cut off in the middle of what it sends: the answer has come by then.
  let answer = ''
  socket.on('data', (bytes) => (answer += bytes))
  await new Promise((resolve) => socket.once('close', resolve))
  assert.match(answer, /^HTTP\/1\.1 413 /)
  assert.ok(sent > 1_000_000, `${sent}`)
  assert.ok(process.memoryUsage().rss - before < 256 * 2 ** 20)
})

test('an invalid request gets a JSON error', async () => {
  await using ctx = await createHttpTestContext(probes)
  const noise = await exchange(ctx, 'hello\r\n\r\n')
  assert.match(noise, /^HTTP\/1\.1 400 [^]*\{"error":\{"code":"BAD_REQUEST"/)
  const twice = await exchange(
    ctx,
    'GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nhost: evil.example\r\n\r\n',
  )
  assert.match(twice, /^HTTP\/1\.1 400 /)
  const none = await exchange(ctx, 'GET / HTTP/1.1\r\nconnection: close\r\n\r\n')
  assert.match(none, /^HTTP\/1\.1 421 /)
  const trace = await exchange(
    ctx,
    'TRACE / HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n',
  )
  assert.match(trace, /^HTTP\/1\.1 405 /)
  const proxied =
    'GET http://evil.example/api/look/a HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n'
  assert.match(await exchange(ctx, proxied), /^HTTP\/1\.1 421 /)
})

test('a slow sender is disconnected, for headers and body', async () => {
  await using strict = await createHttpTestContext({ ...probes, limits: { headersMs: 150 } })
  assert.match(await exchange(strict, 'GET / HTTP/1.1\r\nhost: 127'), /^HTTP\/1\.1 408 /)
  await using ctx = await createHttpTestContext({
    ...probes,
    limits: { headersMs: 150, bodyMs: 400 },
  })
  const slow = await exchange(ctx, `${post(ctx, 100)}{"because": "`)
  assert.doesNotMatch(slow, / 200 /)
})

test('five hundred slow clients block no other client', async () => {
  // What they held up would never be answered.
  const limits = { connections: 100, headersMs: 600_000, bodyMs: 600_000 }
  await using ctx = await createHttpTestContext({ ...probes, limits })
  const slow = Array.from({ length: 500 }, () => connectRaw(ctx))
  await Promise.all(slow.map((socket) => once(socket, 'connect')))
  for (const socket of slow) socket.write('GET / HTTP/1.1\r\nhost: 127.0.0.1\r\nx-slow: ')
  for (let n = 0; n < 40; n++) {
    assert.equal((await ctx.call('GET', '/api/look/a', { as: 'viewer' })).status, 200)
  }
  assert.ok(slow.filter((socket) => socket.destroyed || socket.readableEnded).length >= 300)
  for (const socket of slow) socket.destroy()
})

test('stop ends streams, finishes calls under way, and closes the rest', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<void>()
  const slow = {
    ...TEST_ROUTES[0]!,
    path: '/api/slow',
    params: undefined,
    handle: async () => {
      asked.resolve()
      await answer.promise
      return { ok: true }
    },
  } as Route<any, any, any, any>
  const stream = {
    ...TEST_ROUTES[0]!,
    path: '/api/stream',
    params: undefined,
    response: null,
    handle: async ({ server }: any) => {
      const { closing } = server as { closing: AbortSignal }
      const body = new ReadableStream({
        start(controller) {
          controller.enqueue(new TextEncoder().encode('first\n'))
          closing.addEventListener('abort', () => controller.close())
        },
      })
      return new Response(body)
    },
  } as Route<any, any, any, any>
  // Nothing but the stop ends a connection.
  const limits = { headersMs: 600_000, bodyMs: 600_000 }
  await using ctx = await createHttpTestContext({ app: { routes: [slow, stream] }, limits })
  const headers = { authorization: `Bearer ${ctx.tokens.viewer}` }
  const streamed = await fetch(`${ctx.url}/api/stream`, { headers })
  const underWay = fetch(`${ctx.url}/api/slow`, { headers })
  const idle = connectRaw(ctx)
  await asked.promise
  const stopped = ctx.server.stop()
  assert.equal(await streamed.text(), 'first\n')
  await assert.rejects(fetch(ctx.url))
  answer.resolve()
  assert.deepEqual(await (await underWay).json(), { ok: true })
  await stopped
  if (!idle.closed) await once(idle, 'close')
})

test('a client that disconnects is noticed, and a broken stream reveals nothing', async () => {
  const left = Promise.withResolvers<void>()
  const broken = {
    ...TEST_ROUTES[0]!,
    path: '/api/broken',
    params: undefined,
    response: null,
    handle: async () =>
      new Response(
        new ReadableStream({
          pull(controller) {
            controller.enqueue(new TextEncoder().encode('x'))
            controller.error(new Error('/secret/path'))
          },
        }),
      ),
  } as Route<any, any, any, any>
  const waiting = {
    ...TEST_ROUTES[0]!,
    path: '/api/waiting',
    params: undefined,
    handle: async ({ signal }: any) => {
      ;(signal as AbortSignal).addEventListener('abort', () => left.resolve())
      await left.promise
      return {}
    },
  } as Route<any, any, any, any>
  await using ctx = await createHttpTestContext({ app: { routes: [broken, waiting] } })
  const authorization = `authorization: Bearer ${ctx.tokens.viewer}`
  const got = await exchange(
    ctx,
    `GET /api/broken HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}\r\n\r\n`,
  )
  assert.doesNotMatch(got, /secret/)
  const caller = connectRaw(ctx)
  caller.write(`GET /api/waiting HTTP/1.1\r\nhost: 127.0.0.1\r\n${authorization}\r\n\r\n`)
  setTimeout(() => caller.destroy(), 50)
  await left.promise
})

test('a port that is taken is a clear refusal', async () => {
  await using ctx = await createHttpTestContext(probes)
  const port = Number(new URL(ctx.url).port)
  const app = { fetch: async () => new Response(), close: () => {} }
  const second = new HttpServer(app, { host: '127.0.0.1', port })
  await assert.rejects(second.start(), { code: 'E_USAGE', message: /is taken.*--port/ })
  await second.stop()
  const nowhere = new HttpServer(app, { host: '203.0.113.1', port: 0 })
  await assert.rejects(nowhere.start(), {
    code: 'E_USAGE',
    message: /not an address of this machine/,
  })
})
