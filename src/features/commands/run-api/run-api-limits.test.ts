import assert from 'node:assert/strict'
import { once } from 'node:events'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  assertRejected,
  type RawConnection,
  RunApiTestContext,
  type RunApiClient,
  type CallOptions,
} from '../../../testing/run-api-test-context.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'

const KB = 1_024
const MB = 1_048_576
const MANY = 4_000
/** Longer than any test may take: nothing ends a connection by its own. */
const LONG_TIMEOUTS = { headersMs: 600_000, bodyMs: 600_000 }

/** A body of exactly this many bytes, which is a page. */
function pageOf(bytes: number, page = 1): string {
  const frame = JSON.stringify({ page, items: [{ key: 'a', data: '' }] })
  return JSON.stringify({ page, items: [{ key: 'a', data: 'x'.repeat(bytes - frame.length) }] })
}

test('S19 a body up to its limit is taken, one byte more is refused, announced or not', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()

  assert.equal((await command.post('/checkpoint', undefined, { raw: pageOf(8 * MB) })).status, 200)
  const raw = pageOf(8 * MB + 1, 2)
  const chunked = { 'transfer-encoding': 'chunked', 'content-length': [] }
  for (const headers of [{}, chunked]) {
    const answer = await command.post('/checkpoint', undefined, { raw, headers })
    assertRejected(answer, 413, 'BODY_TOO_LARGE', /larger than 8 MB.*on more pages/)
  }
  for (const path of ['/progress', '/heartbeat', '/finish', '/fail']) {
    const raw = JSON.stringify({ error: 'x'.repeat(256 * 1024) })
    const answer = await command.post(path, undefined, { raw })
    assertRejected(answer, 413, 'BODY_TOO_LARGE', /larger than 256 KB/)
  }
  assert.equal((await command.get()).body.page, 1)
})

test('an address, an item id and a cursor up to their limits are kept, longer ones are refused by name', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const kept = {
    next: 'x'.repeat(8 * KB),
    lastItemId: 'x'.repeat(KB),
    cursor: 'x'.repeat(256 * KB - 2),
  }
  assert.equal((await command.post('/checkpoint', { page: 1, ...kept })).status, 200)
  for (const name of ['next', 'lastItemId'] as const) {
    const answered = await command.post('/checkpoint', { page: 2, [name]: `${kept[name]}x` })
    assertRejected(
      answered,
      400,
      'BAD_BODY',
      new RegExp(`${name} must be of ${kept[name].length} bytes`),
    )
  }
  const answered = await command.post('/checkpoint', { page: 2, cursor: `${kept.cursor}x` })
  assertRejected(answered, 422, 'PAGE_REJECTED', /larger than 256 KB/)
})

test('S19 an endless body is answered and does not fill the memory', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const block = Buffer.alloc(MB, 'x')
  const chunk = Buffer.concat([Buffer.from(`${MB.toString(16)}\r\n`), block, Buffer.from('\r\n')])
  for (const token of [command.admission.token, 'wrong']) {
    using connection = await command.connect()
    const head = command.head('POST', '/checkpoint', 'Transfer-Encoding: chunked')
    const type = 'Content-Type: application/json'
    connection.write(`${head.replace(command.admission.token, token)}\r\n${type}\r\n\r\n`)
    const before = process.memoryUsage.rss()
    let sent = 0
    // A write after the server closed the connection would discard a response that was not read yet.
    const isSending = (): boolean => connection.received === '' && !connection.socket.destroyed
    for (; isSending() && sent < MANY; sent++) {
      if (connection.socket.write(chunk)) continue
      const drained = once(connection.socket, 'drain').catch(() => {})
      await Promise.race([drained, connection.closed()])
    }

    const { status } = await connection.response()

    assert.equal(status, token === 'wrong' ? 401 : 413)
    assert.ok(sent < MANY, 'it was read to the end')
    const grown = Math.round((process.memoryUsage.rss() - before) / MB)
    assert.ok(grown < 100, `${grown} MB more`)
  }
  assert.equal((await command.get()).status, 200)
})

test('a refused body does not spoil the connection for the next call', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  using connection = await command.connect()
  const body = 'x=1'

  connection.write(
    `${command.head('POST', '/progress', `Content-Length: ${body.length}`)}\r\n\r\n${body}` +
      `${command.head('GET', '', 'Connection: close')}\r\n\r\n`,
  )
  await connection.closed()

  const statuses = [...connection.received.matchAll(/HTTP\/1\.1 (\d+) /g)].map(([, code]) => code)
  assert.deepEqual(statuses, ['415', '200'])
})

test('a body needs the content type JSON: the message names the header', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const raw = '{"done":1,"total":2}'
  const types: NonNullable<CallOptions['headers']>[] = [
    { 'content-type': 'application/x-www-form-urlencoded' },
    { 'content-type': 'text/plain' },
    { 'content-type': 'application/json; charset=latin1' },
    { 'content-type': 'application/jsonp' },
    { 'content-type': [] },
    { 'content-encoding': 'gzip' },
  ]
  for (const headers of types) {
    const answer = await command.post('/progress', undefined, { raw, headers })
    assertRejected(answer, 415, 'NOT_JSON', /"Content-Type: application\/json"/)
  }
  const headers = { 'content-type': 'Application/JSON;charset=UTF-8' }
  assert.equal((await command.post('/progress', undefined, { raw, headers })).status, 200)
  // As clients do that have nothing to send.
  const empty = { raw: '', headers: { 'content-type': 'application/x-www-form-urlencoded' } }
  assert.equal((await command.post('/heartbeat', undefined, empty)).status, 200)
  assert.equal((await command.post('/finish', undefined, empty)).status, 200)
})

test('S19 invalid JSON, or JSON nested deeper than 32 levels, is rejected with the reason', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const nested = (levels: number): string =>
    `{"page":1,"cursor":${'['.repeat(levels - 1)}${']'.repeat(levels - 1)}}`
  const wrong: [string | Buffer, RegExp][] = [
    ['{"page":1', /cannot be read as JSON/],
    ['{"page":NaN}', /NaN/],
    [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), /not UTF-8/],
    [nested(33), /nested deeper than 32 levels/],
    ['['.repeat(MB), /nested deeper than 32 levels/],
    [`{"a\\"":${'['.repeat(40)}`, /nested deeper/],
  ]
  for (const [raw, told] of wrong) {
    assertRejected(await command.post('/checkpoint', undefined, { raw }), 400, 'BAD_JSON', told)
  }
  assert.equal((await command.post('/checkpoint', undefined, { raw: nested(32) })).status, 200)
  const text = {
    page: 2,
    cursor: `\\"${'['.repeat(99)}`,
    items: Array(99).fill({ key: 'a', data: [] }),
  }
  assert.equal((await command.post('/checkpoint', text)).status, 200)
})

test('S4 only the loopback name of this very port is answered', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const { host, port } = new URL(command.admission.url)
  for (const wrong of [
    'evil.example',
    `evil.example:${port}`,
    `127.0.0.1.evil.example:${port}`,
    '127.0.0.1',
    '127.0.0.1:1',
    `[::1]:${port}`,
    `0.0.0.0:${port}`,
  ]) {
    const answer = await command.get('', { headers: { host: wrong } })
    assertRejected(answer, 421, 'MISDIRECTED', /UNSTUCK_URL/)
  }
  assert.equal((await command.get('', { headers: { host: `localhost:${port}` } })).status, 200)
  for (const lines of [[], ['Host: '], [`Host: ${host}`, 'Host: evil.example']]) {
    using connection = await command.connect()
    const head = command.head('GET', '', 'Connection: close').replace(/Host: .*\r\n/, '')
    connection.write(`${[head, ...lines].join('\r\n')}\r\n\r\n`)
    assertRejected(await connection.response(), 421, 'MISDIRECTED')
  }
  assert.equal(command.calls, 1)
})

test('an invalid HTTP request gets a JSON error and is disconnected', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const both = ['Content-Length: 4', 'Transfer-Encoding: chunked']
  const requests: [string, number, string][] = [
    ['hello\r\n\r\n', 400, 'BAD_REQUEST'],
    ['\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 400, 'BAD_REQUEST'],
    [`${command.head('POST', '/finish', ...both)}\r\n\r\n`, 400, 'BAD_REQUEST'],
    [`${command.head('GET', '', 'Bad Header: x')}\r\n\r\n`, 400, 'BAD_REQUEST'],
    [`${command.head('GET', '', `X: ${'x'.repeat(17_000)}`)}\r\n\r\n`, 431, 'HEADERS_TOO_LARGE'],
  ]
  for (const [text, status, code] of requests) {
    using connection = await command.connect()
    connection.write(Buffer.from(text, 'latin1'))
    assertRejected(await connection.response(), status, code)
  }
  assert.equal((await ctx.run(command.handle.id)).status, 'running')
})

test('an Expect header is no obstacle', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  for (const expect of ['100-continue', 'miracles']) {
    assert.equal((await command.post('/heartbeat', {}, { headers: { expect } })).status, 200)
  }
})

test('S20 a slow sender gets an error and is disconnected', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine, {
    limits: { headersMs: 200, bodyMs: 400 },
  })
  const command = await ctx.begin()
  const type = 'Content-Type: application/json'
  for (const text of [
    command.head('POST', '/finish'),
    `${command.head('POST', '/finish', type, 'Content-Length: 9')}\r\n\r\n{`,
    `${command.head('POST', '/finish', type, 'Transfer-Encoding: chunked')}\r\n\r\n1\r\n{\r\n`,
  ]) {
    using connection = await command.connect()
    connection.write(text)
    assertRejected(await connection.response(), 408, 'TIMEOUT')
  }
  assert.deepEqual(ctx.log, [])
})

test('S20 500 slow connections do not keep a command from its API', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine, { limits: LONG_TIMEOUTS })
  const command = await ctx.begin()
  const slow: RawConnection[] = []
  for (let n = 0; n < 500; n++) slow.push(await command.connect())
  for (const connection of slow) connection.write('POST / HTTP/1.1\r\nX: ')

  for (let n = 0; n < 40; n++) assert.equal((await command.post('/heartbeat')).status, 200)

  for (const connection of slow) connection[Symbol.dispose]()
})

test('S20 a rejected caller is disconnected, and an unauthenticated one makes room: a valid call gets through at once', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine, {
    limits: { ...LONG_TIMEOUTS, connections: 3 },
  })
  const command = await ctx.begin()
  const { url } = command.admission
  const head = command.head('GET', '')
  const [path, host] = [new URL(url).pathname, new URL(url).host]
  const bad: [string, number][] = [
    [`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer guess\r\n\r\n`, 401],
    [`${head.replace(`Host: ${host}`, 'Host: evil.example')}\r\n\r\n`, 421],
  ]
  for (const [text, status] of bad) {
    using connection = await command.connect()
    connection.write(text)
    const answer = await connection.response()
    assert.deepEqual([answer.status, answer.headers['connection']], [status, 'close'])
  }
  // Some say nothing, some half a request, some send a body that does not end.
  const post = bad[0]![0]
    .replace('GET', 'POST')
    .replace('\r\n\r\n', '\r\nContent-Length: 9\r\n\r\n{')
  const strangers: RawConnection[] = []
  for (const text of ['', 'POST / HTTP/1.1\r\nX: ', post, '', post]) {
    const stranger = await command.connect()
    stranger.write(text)
    strangers.push(stranger)
  }

  assert.equal((await command.get()).status, 200)

  for (const stranger of strangers) stranger[Symbol.dispose]()
})

test('S20 connections are counted: those of a command are kept, and one too many is closed', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine, {
    commands: 2,
    limits: { connections: 1 },
  })
  const command = await ctx.begin()
  const known = [await command.connect(), await command.connect()]
  const call = `${command.head('GET', '')}\r\n\r\n`
  for (const connection of known) {
    connection.write(call)
    while (!connection.received.endsWith('}')) await sleep(5)
  }

  await assert.rejects(command.get(), /ECONNRESET|socket hang up/)

  for (const connection of known) {
    connection.received = ''
    connection.write(call)
    while (!connection.received.endsWith('}')) await sleep(5)
    assert.match(connection.received, /^HTTP\/1\.1 200 /)
  }
  known[0]![Symbol.dispose]()
  // The server notices it a moment later.
  const status = async (): Promise<number> => (await command.get().catch(() => null))?.status ?? 0
  while ((await status()) !== 200) await sleep(5)
  known[1]![Symbol.dispose]()
})

/** No other writer can write meanwhile. */
function lock(ctx: RunApiTestContext): Disposable {
  const db = new DatabaseSync(ctx.database.url.slice('sqlite:'.length))
  db.exec('BEGIN IMMEDIATE')
  return { [Symbol.dispose]: () => db.isOpen && db.close() }
}

/** Sends a page and hangs up before there is an answer. */
async function sendAndHangUp(command: RunApiClient, page: unknown): Promise<void> {
  using connection = await command.connect()
  const body = JSON.stringify(page)
  const type = 'Content-Type: application/json'
  const head = command.head('POST', '/checkpoint', type, `Content-Length: ${body.length}`)
  const calls = command.calls
  connection.write(`${head}\r\n\r\n${body}`)
  while (command.calls === calls) await sleep(5)
  await sleep(50)
}

test('P12 a page whose sender hung up is saved all the same, and sent again it is counted once', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  using locked = lock(ctx)
  await sendAndHangUp(command, { page: 1, skipped: 1 })
  const again = command.post('/checkpoint', { page: 1, skipped: 1 })
  const next = command.post('/checkpoint', { page: 2 })
  await sleep(50)
  locked[Symbol.dispose]()

  assert.deepEqual([(await again).body, (await next).body], [{ seq: 1 }, { seq: 2 }])

  using lockedAgain = lock(ctx)
  await sendAndHangUp(command, { page: 3 })
  const forgotten = command.post('/checkpoint', { page: 4 })
  await sleep(50)
  lockedAgain[Symbol.dispose]()
  assert.deepEqual((await forgotten).body, { seq: 4 })
  assert.equal((await ctx.run(command.handle.id)).counts.pages, 4)
  assert.deepEqual(ctx.log, [])
})

test('a client that disconnects while queued loses its place, and its page is not saved', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  using locked = lock(ctx)
  const first = command.post('/checkpoint', { page: 1 })
  while (command.calls < 1) await sleep(5)
  await sendAndHangUp(command, { page: 2 })
  const third = command.post('/checkpoint', { page: 3 })
  while (command.calls < 3) await sleep(5)
  locked[Symbol.dispose]()

  assert.deepEqual([(await first).body, (await third).body], [{ seq: 1 }, { seq: 2 }])
  assert.equal((await ctx.run(command.handle.id)).counts.pages, 2)
  assert.deepEqual(ctx.log, [])
})

test('calls under way are limited, and a heartbeat gets through all the same', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  ctx.callsMax = 2
  const command = await ctx.begin()
  using locked = lock(ctx)
  const waiting = [1, 2].map((page) => command.post('/checkpoint', { page }))
  while (command.calls < 2) await sleep(5)

  const third = await command.post('/progress', { done: 1, total: 2 })
  assertRejected(third, 429, 'TOO_MANY_CALLS', /wait for a response/)
  assert.deepEqual((await command.post('/heartbeat')).body, { stop: false })
  locked[Symbol.dispose]()

  for (const answer of await Promise.all(waiting)) assert.equal(answer.status, 200)
  assert.equal((await command.post('/progress', { done: 1, total: 2 })).status, 200)
})

test('a dismissed run accepts no calls; queued calls are rejected as no longer served', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  using _locked = lock(ctx)
  const waiting = [1, 2].map((page) => command.post('/checkpoint', { page }))
  while (command.calls < 2) await sleep(5)

  command.admission.close()

  for (const answer of await Promise.all(waiting)) assertRejected(answer, 503, 'STOPPING')
  assertRejected(await command.get(), 401, 'UNAUTHORIZED')
})

test('stop ends what is under way promptly, twice as well as once', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine, { limits: LONG_TIMEOUTS })
  const command = await ctx.begin()
  using _locked = lock(ctx)
  using idle = await command.connect()
  using slow = await command.connect()
  slow.write(`${command.head('POST', '/fail', 'Content-Length: 9')}\r\n`)
  const waiting = command.post('/checkpoint', { page: 1 })
  while (command.calls < 1) await sleep(5)

  await Promise.all([ctx.api.stop(), ctx.api.stop()])

  assertRejected(await waiting, 503, 'STOPPING')
  await Promise.all([idle.closed(), slow.closed()])
  await assert.rejects(command.get(), /ECONNREFUSED/)
  assert.throws(
    () => ctx.api.open(command.handle.id, {} as never),
    /after start\(\) and before stop/,
  )
})

test('S33 an internal error returns only an id; the log has the reason under it', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  await ctx.database.raw('ALTER TABLE target RENAME TO target_away')

  const answer = await command.post('/checkpoint', { page: 1 })

  await ctx.database.raw('ALTER TABLE target_away RENAME TO target')
  assertRejected(answer, 500, 'UNEXPECTED')
  const { message } = answer.body.error
  assert.doesNotMatch(message, /target|table|sql|\/|at .*:\d/i)
  const [, id] = /under ([\w-]{36})\./.exec(message)!
  assert.equal(ctx.log.length, 1)
  assert.match(ctx.log[0]!, new RegExp(`POST /.*/checkpoint \\(${id}\\): .*no such table`))
  assert.doesNotMatch(ctx.log[0]!, /\n/)
  assert.ok(!ctx.log[0]!.includes(command.admission.token))
  assert.deepEqual((await command.post('/checkpoint', { page: 1 })).body, { seq: 1 })
})
