import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { addToken, tokensPath } from '../../src/app/tokens.ts'
import { TEST_ROUTES } from '../../src/testing/http-test-routes.ts'
import { createHttpTestContext, type HttpTestContext } from '../../src/testing/http-test-context.ts'

const probes = { app: { routes: TEST_ROUTES } }

/** Sends headers unchanged, which fetch does not. */
async function post(ctx: HttpTestContext, path: string, headers: Record<string, string>) {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const sent = httpRequest(`${ctx.url}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    setHost: !('host' in headers),
    agent: false,
  })
  sent.once('response', (response) => {
    response.resume().once('end', () => resolve(response.statusCode!))
  })
  sent.once('error', reject).end('{}')
  return promise
}

test('S38 a forwarded request is not local: without a token it is refused, with the command that creates one', async () => {
  await using ctx = await createHttpTestContext({ ...probes, tokens: false })
  assert.equal((await ctx.call('GET', '/api/look/a')).status, 200)
  for (const name of [
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Forwarded-Anything',
    'X-Forwarded',
    'Forwarded',
    'Via',
    'X-Real-IP',
    'CF-Connecting-IP',
    'True-Client-IP',
    'Fly-Client-IP',
  ]) {
    for (const value of ['127.0.0.1', '']) {
      const headers = { [name]: value, origin: ctx.url }
      const look = await ctx.call('GET', '/api/look/a', { headers })
      assert.equal(look.status, 401, name)
      assert.match(look.body.error.message, /proxy.*unstuck tokens add/)
      assert.equal((await ctx.call('POST', '/api/act', { headers })).status, 401, name)
    }
  }
  addToken(tokensPath(ctx.folder), 'maria', 'viewer')
  const later = await ctx.call('GET', '/api/look/a', { headers: { via: '1.1 proxy' } })
  assert.equal(later.status, 401)
})

test('S38 a forwarded login counts towards the limit, although the proxy is on this machine', async () => {
  await using ctx = await createHttpTestContext(probes)
  const guess = (headers: Record<string, string>) =>
    ctx.call('POST', '/api/login', {
      headers: { 'sec-fetch-site': 'same-origin', ...headers },
      body: { token: 'guess' },
    })
  const codes: number[] = []
  for (let n = 0; n < 6; n++) codes.push((await guess({ via: '1.1 proxy' })).status)
  assert.deepEqual(codes, [401, 401, 401, 401, 401, 429])
  for (let n = 0; n < 10; n++) assert.equal((await guess({})).status, 401)
})

test('S38 scheme and port of the origin count', async () => {
  await using ctx = await createHttpTestContext({ ...probes, tokens: false })
  const { host, port } = new URL(ctx.url)
  const act = (origin: string, more: Record<string, string> = {}) =>
    post(ctx, '/api/act', { origin, ...more })
  assert.equal(await act(`http://${host}`), 200)
  assert.equal(await act(`HTTP://${host.toUpperCase()}`), 200)
  assert.equal(await act('http://localhost', { host: 'localhost:80' }), 200)
  for (const origin of [
    `https://${host}`,
    `http://127.0.0.1:${Number(port) + 1}`,
    'http://127.0.0.1',
    `http://localhost:${port}`,
    `ftp://${host}`,
    `http://${host}@evil.example`,
    'null',
    '',
  ]) {
    assert.equal(await act(origin), 403, origin)
    assert.equal(await act(origin, { 'sec-fetch-site': 'same-origin' }), 403, origin)
  }
})

test('S38 behind a trusted TLS proxy the origin is https, and only then', async () => {
  await using trusting = await createHttpTestContext({ ...probes, auth: { trustProxy: true } })
  await using direct = await createHttpTestContext(probes)
  const login = async (ctx: HttpTestContext, scheme: string, more: Record<string, string>) => {
    const origin = `${scheme}://${new URL(ctx.url).host}`
    const headers = { origin, ...more }
    const body = { token: ctx.tokens.viewer }
    return (await ctx.call('POST', '/api/login', { headers, body })).status
  }
  const proto = { 'x-forwarded-proto': 'https' }
  assert.equal(await login(trusting, 'https', proto), 200)
  assert.equal(await login(trusting, 'http', proto), 403)
  assert.equal(await login(trusting, 'http', {}), 200)
  // A header that any caller can send is not believed without --trust-proxy.
  assert.equal(await login(direct, 'https', proto), 403)
  assert.equal(await login(direct, 'http', proto), 200)
})
