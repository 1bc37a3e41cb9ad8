import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  RunApiTestContext,
  type ApiResponse,
  type RunApiClient,
} from '../../../testing/run-api-test-context.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'

/** Headers that a client or a proxy acts on. */
const PINNED_HEADERS = ['www-authenticate', 'allow', 'retry-after'] as const
const JSON_TYPE = 'Content-Type: application/json'

/** A refused call as one line: status, code, headers, message. */
function summary({ status, headers, body }: ApiResponse): string {
  assert.deepEqual(Object.keys(body), ['error'])
  assert.deepEqual(Object.keys(body.error), ['code', 'message'])
  assert.equal(headers['content-type'], 'application/json')
  assert.equal(headers['cache-control'], 'no-store')
  assert.equal(headers['x-content-type-options'], 'nosniff')
  const pinned = PINNED_HEADERS.filter((name) => name in headers).map(
    (name) => ` ${name}=${headers[name]}`,
  )
  return `${status} ${body.error.code}${pinned.join('')}: ${body.error.message}`
}

async function sendRaw(command: RunApiClient, text: string): Promise<ApiResponse> {
  using connection = await command.connect()
  connection.write(text)
  return await connection.response()
}

test('every error has its status, code, headers and message', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const { host } = new URL(command.admission.url)
  const post = async (path: string, raw: string, headers: Record<string, string> = {}) =>
    summary(await command.post(path, undefined, { raw, headers }))

  const unauthorized =
    '401 UNAUTHORIZED www-authenticate=Bearer: This call needs the token of a command that is served here: send the header "Authorization: Bearer $UNSTUCK_TOKEN". ' +
    'UNSTUCK_URL and UNSTUCK_TOKEN belong together and are new each time the command is started.'
  assert.equal(summary(await command.get('', { token: null })), unauthorized)
  assert.equal(summary(await command.post('/../', {}, { token: null })), unauthorized)
  assert.equal(summary(await command.call('PUT', '/x', {}, { token: 'x' })), unauthorized)
  assert.equal(
    summary(await command.get('', { headers: { host: 'evil.example' } })),
    `421 MISDIRECTED: This API is only reached as ${host}, and the Host header must have this name. Use the address in UNSTUCK_URL as it is.`,
  )
  assert.equal(
    await post('/page', '{}'),
    '404 NOT_FOUND: There is no such path. Behind UNSTUCK_URL there are: GET /, POST /checkpoint, POST /progress, POST /heartbeat, POST /finish, POST /fail.',
  )
  for (const method of ['GET', 'PUT', 'PATCH', 'TRACE']) {
    const answer = await command.call(method, '/fail')
    assert.equal(summary(answer), '405 METHOD_NOT_ALLOWED allow=POST: Call /fail with POST.')
  }
  const asJson = 'Send the body as JSON in UTF-8, with the header "Content-Type: application/json".'
  assert.equal(
    await post('/fail', '{}', { 'content-type': 'text/plain' }),
    `415 NOT_JSON: The body is text/plain. ${asJson}`,
  )
  assert.equal(
    await post('/fail', '{}', { 'content-encoding': 'gzip' }),
    `415 NOT_JSON: The body is compressed (gzip). ${asJson}`,
  )
  const untyped = `${command.head('POST', '/fail', 'Content-Length: 2', 'Connection: close')}\r\n\r\n{}`
  assert.equal(
    summary(await sendRaw(command, untyped)),
    `415 NOT_JSON: The body has no type. ${asJson}`,
  )
  const advice =
    'Save fewer items at a time, on more pages, or keep large files outside and save their paths.'
  assert.equal(
    await post('/fail', 'x'.repeat(256 * 1_024 + 1)),
    `413 BODY_TOO_LARGE: The body is larger than 256 KB. ${advice}`,
  )
  assert.equal(
    await post('/checkpoint', 'x'.repeat(8 * 1_024 * 1_024 + 1)),
    `413 BODY_TOO_LARGE: The body is larger than 8 MB. ${advice}`,
  )
  assert.equal(
    await post('/fail', '{"error":'),
    '400 BAD_JSON: The body cannot be read as JSON: Unexpected end of JSON input.',
  )
  assert.equal(
    await post('/fail', '{"retry":1}'),
    '400 BAD_BODY: Nothing was done: error is missing: it must be text that says what went wrong; retry must be true or false, not 1.',
  )
  assert.equal(
    summary(await sendRaw(command, 'hello\r\n\r\n')),
    '400 BAD_REQUEST: This is not an HTTP/1.1 request.',
  )
  assert.equal(
    summary(
      await sendRaw(command, `${command.head('GET', '', `X: ${'x'.repeat(17_000)}`)}\r\n\r\n`),
    ),
    '431 HEADERS_TOO_LARGE: The headers are larger than 16 KB.',
  )
  await command.post('/checkpoint', { page: 2 })
  assert.match(
    await post('/checkpoint', '{"page":1}'),
    /^409 PAGE_BEHIND: Page 1 of target \w{8} is behind its cursor, which stands at page 2\. A cursor only moves forward; continue from page 3\.$/,
  )
  assert.match(
    await post('/checkpoint', JSON.stringify({ page: 3, cursor: 'x'.repeat(256 * 1_024) })),
    /^422 PAGE_REJECTED: The cursor of page 3 is larger than 256 KB/,
  )
  await command.post('/finish')
  assert.equal(
    await post('/fail', '{"error":"x"}'),
    '409 RUN_ENDED: This run has already ended here: it was finished, failed or released. Nothing was written; end the command.',
  )
  const lost = await ctx.begin('lost')
  lost.handle.loseLease()
  assert.match(
    summary(await lost.post('/progress', { done: 1, total: 2 })),
    /^409 LEASE_LOST: Stop now: this process no longer has the claim\. Target \w{8} is no longer ours/,
  )
  assert.deepEqual(ctx.log, [])
})

test('an error for too many calls, a stopped API, a slow sender and an internal failure', async () => {
  const limits = { headersMs: 200, bodyMs: 400 }
  await using ctx = await RunApiTestContext.create(sqliteEngine, { limits })
  ctx.callsMax = 1
  const command = await ctx.begin()
  using hanging = await command.connect()
  hanging.write(`${command.head('POST', '/finish', JSON_TYPE, 'Content-Length: 9')}\r\n\r\n{`)
  while (command.calls < 1) await sleep(5)
  assert.equal(
    summary(await command.post('/finish')),
    '429 TOO_MANY_CALLS retry-after=1: 1 calls of this command are under way already: wait for a response before the next call.',
  )
  assert.equal(
    summary(await hanging.response()),
    '408 TIMEOUT: The request did not arrive in time. Send it at once.',
  )
  while ((await command.get()).status === 429) await sleep(5)
  await ctx.database.raw('ALTER TABLE target RENAME TO target_away')
  assert.match(
    summary(await command.post('/checkpoint', { page: 1 })),
    /^500 UNEXPECTED: Something failed inside Unstuck\. Its log has the error under [\w-]{36}\. The call may be sent again\.$/,
  )
  assert.equal(ctx.log.length, 1)
  await ctx.database.raw('ALTER TABLE target_away RENAME TO target')
})
