import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { TEST_ROUTES } from '../../testing/http-test-routes.ts'
import { createHttpTestContext, type HttpTestContext } from '../../testing/http-test-context.ts'
import { makeHostCheck, isLoopback } from '../../lib/http/host-check.ts'
import { RateLimit } from '../../lib/http/limits.ts'
import { addToken, removeToken, tokensPath } from '../../app/tokens.ts'

const routes = { app: { routes: TEST_ROUTES } }

/** Sends headers as they are, which fetch would not. */
async function raw(
  ctx: HttpTestContext,
  method: string,
  path: string,
  headers: Record<string, string>,
  body = '',
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const setHost = 'host' in headers
  const sent = httpRequest(`${ctx.url}${path}`, { method, headers, setHost: !setHost })
  sent.once('response', (response) => {
    response.resume().once('end', () => resolve(response.statusCode!))
  })
  sent.once('error', reject).end(body)
  return promise
}

test('a server knows itself by its own names, and by no other', () => {
  const isKnown = makeHostCheck('127.0.0.1', ['Ops.Example.com'])
  for (const host of [
    '127.0.0.1',
    '127.0.0.1:4600',
    'LOCALHOST:80',
    '[::1]:4600',
    'ops.example.com',
  ])
    assert.ok(isKnown(host), host)
  const strangers = [
    '',
    'evil.example',
    '127.0.0.1.evil.example',
    'localhost.',
    'localhost.evil.example:4600',
    'evil.example@127.0.0.1',
    '127.0.0.1:4600@evil.example',
    '127.0.0.1:4600, evil.example',
    '127.0.0.1 evil.example',
    '127.1',
    '0.0.0.0',
    '2130706433',
    '0x7f.0.0.1',
    '::1',
    '[::ffff:127.0.0.1]',
    '[::1].evil.example',
    '192.168.1.5',
    'localhost:port',
    'localhost:123456',
  ]
  for (const host of strangers) assert.ok(!isKnown(host), host)
  const everywhere = makeHostCheck('0.0.0.0', [])
  assert.ok(everywhere('192.168.1.5:4600') && everywhere('[fe80::1]:4600'))
  assert.ok(!everywhere('evil.example') && !everywhere('192.168.1.5.evil.example'))
  assert.ok(makeHostCheck('::1', [])('[::1]:1') && makeHostCheck('fe80::2', [])('[fe80::2]'))
  assert.deepEqual(['127.0.0.1', '127.8.9.1', '::1', 'localhost'].filter(isLoopback).length, 4)
  assert.ok(!isLoopback('0.0.0.0') && !isLoopback('127.0.0.1.evil.example'))
})

test('a call by another name is misdirected, also with a right token or session', async () => {
  await using ctx = await createHttpTestContext(routes)
  const login = await ctx.call('POST', '/api/login', {
    body: { token: ctx.tokens.admin },
    headers: { origin: ctx.url },
  })
  const cookie = login.headers.getSetCookie()[0]!.split(';')[0]!
  const authorization = `Bearer ${ctx.tokens.admin}`
  for (const host of ['evil.example', '127.0.0.1.evil.example', '']) {
    assert.equal(await raw(ctx, 'GET', '/api/look/a', { host, cookie }), 421)
    assert.equal(await raw(ctx, 'GET', '/api/look/a', { host, authorization }), 421)
    assert.equal(await raw(ctx, 'GET', '/', { host }), 421)
  }
  const host = `localhost:${new URL(ctx.url).port}`
  assert.equal(await raw(ctx, 'GET', '/api/look/a', { host, cookie }), 200)
  // A probe calls by address and learns only that it is there.
  assert.equal(await raw(ctx, 'GET', '/healthz', { host: '10.0.0.1' }), 200)
})

test('without a token only health, login and the page itself are reachable', async () => {
  await using ctx = await createHttpTestContext(routes)
  for (const path of [
    '/api/look/a',
    '/api/nothing',
    '/api/',
    '/api/login',
    '/api/look/a?token=x',
  ]) {
    assert.equal((await ctx.call('GET', path)).status, 401, path)
  }
  const { status, headers, body } = await ctx.call('POST', '/api/act')
  assert.equal(status, 401)
  assert.equal(headers.get('www-authenticate'), 'Bearer')
  assert.equal(body.error.code, 'UNAUTHORIZED')
  for (const authorization of ['Bearer', 'Bearer x', `Basic ${ctx.tokens.admin}`, ctx.tokens.admin])
    assert.equal((await ctx.call('GET', '/api/look/a', { headers: { authorization } })).status, 401)
  assert.equal((await ctx.call('GET', '/healthz')).status, 200)
  assert.equal((await ctx.call('GET', '/')).status, 200)
})

test('a token in the address is refused, right or wrong', async () => {
  await using ctx = await createHttpTestContext(routes)
  const inAddress = await ctx.call('GET', `/api/look/a?token=${ctx.tokens.admin}`)
  assert.equal(inAddress.status, 401)
  const both = await ctx.call('GET', `/api/look/a?token=${ctx.tokens.admin}`, { as: 'admin' })
  assert.equal(both.status, 401)
  assert.ok(!JSON.stringify([inAddress.body, both.body]).includes(ctx.tokens.admin))
})

test('a session lasts as long as its token, and carries its user name', async () => {
  await using ctx = await createHttpTestContext(routes)
  const headers = { 'sec-fetch-site': 'same-origin' }
  const login = await ctx.call('POST', '/api/login', {
    headers,
    body: { token: ctx.tokens.operator },
  })
  assert.equal(login.status, 200)
  assert.deepEqual(
    [login.body.name, login.body.role, login.body.loggedIn],
    ['the-operator', 'operator', true],
  )
  const [set] = login.headers.getSetCookie()
  const cookie = set!.split(';')[0]!
  const ask = (more: string) =>
    ctx.call('GET', '/api/look/a', { headers: { ...headers, cookie: more } })
  const { body } = await ask(`other=1; ${cookie}`)
  assert.equal(body.actor, 'the-operator (operator) via http from 127.0.0.1')
  assert.equal(body.caller.by, 'cookie')
  removeToken(tokensPath(ctx.folder), 'the-operator')
  assert.equal((await ask(cookie)).status, 401)
})

test('behind a proxy that is trusted the cookie is for https alone, and the address is the caller’s', async () => {
  await using ctx = await createHttpTestContext({
    ...routes,
    auth: { trustProxy: true, path: '/unstuck' },
  })
  const headers = {
    'sec-fetch-site': 'same-origin',
    'x-forwarded-proto': 'https',
    'x-forwarded-for': '6.6.6.6, 203.0.113.9',
  }
  const { headers: got } = await ctx.call('POST', '/api/login', {
    headers,
    body: { token: ctx.tokens.viewer },
  })
  assert.match(got.getSetCookie()[0]!, /; Path=\/unstuck; .*; Secure$/)
  const { body } = await ctx.call('GET', '/api/look/a', { as: 'viewer', headers })
  assert.equal(body.caller.address, '203.0.113.9')
})

test('a change comes from the dashboard itself or with a token, never from another site', async () => {
  await using ctx = await createHttpTestContext(routes)
  const { host } = new URL(ctx.url)
  const login = await ctx.call('POST', '/api/login', {
    headers: { origin: ctx.url },
    body: { token: ctx.tokens.operator },
  })
  const cookie = login.headers.getSetCookie()[0]!.split(';')[0]!
  const json = { 'content-type': 'application/json' }
  const post = (headers: Record<string, string>, body = '{}') =>
    raw(ctx, 'POST', '/api/act', headers, body)
  assert.equal(await post({ ...json, cookie, 'sec-fetch-site': 'same-origin' }), 200)
  assert.equal(await post({ ...json, cookie, 'sec-fetch-site': 'none' }), 200)
  assert.equal(await post({ ...json, cookie, origin: `http://${host}` }), 200)
  assert.equal(await post({ ...json, authorization: `Bearer ${ctx.tokens.operator}` }), 200)
  const wrong: Record<string, string>[] = [
    {},
    { 'sec-fetch-site': 'cross-site' },
    { 'sec-fetch-site': 'same-site' },
    { 'sec-fetch-site': 'cross-site', origin: `http://${host}` },
    { 'sec-fetch-site': 'same-origin', origin: 'http://evil.example' },
    { origin: 'http://evil.example' },
    { origin: `https://${host}` },
    { origin: 'null' },
    { origin: `http://${host}.evil.example` },
    { origin: 'http://127.0.0.1:1' },
    { authorization: 'Bearer wrong' },
  ]
  for (const headers of wrong) {
    assert.equal(await post({ ...json, cookie, ...headers }), 403, JSON.stringify(headers))
  }
  const own = { cookie, 'sec-fetch-site': 'same-origin' }
  const forms = [
    'text/plain',
    'application/x-www-form-urlencoded',
    'multipart/form-data',
    'text/json',
  ]
  for (const type of forms) assert.equal(await post({ ...own, 'content-type': type }), 415, type)
  assert.equal(await post(own, ''), 415)
  assert.equal(await raw(ctx, 'GET', '/api/act', own), 405)
  // A picture or a stream on another site's page.
  const foreign = { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'no-cors' }
  assert.equal(await raw(ctx, 'GET', '/api/look/a', foreign), 403)
  const link = { cookie, 'sec-fetch-site': 'cross-site', 'sec-fetch-mode': 'navigate' }
  assert.equal(await raw(ctx, 'GET', '/api/look/a', link), 200)
})

test('no response allows other sites to read it', async () => {
  await using ctx = await createHttpTestContext(routes)
  const origin = 'http://evil.example'
  const preflight = await ctx.call('OPTIONS', '/api/act', {
    headers: { origin, 'access-control-request-method': 'POST' },
  })
  const answers = [
    preflight,
    await ctx.call('GET', '/api/look/a', { as: 'viewer', headers: { origin } }),
    await ctx.call('GET', '/', { headers: { origin } }),
  ]
  for (const { headers } of answers) {
    assert.deepEqual(
      [...headers.keys()].filter((name) => name.startsWith('access-control')),
      [],
    )
  }
})

test('without any token every caller on this machine is the local user, until one is created', async () => {
  await using ctx = await createHttpTestContext({ ...routes, tokens: false })
  const { body } = await ctx.call('GET', '/api/look/a')
  assert.equal(body.actor, 'local (admin) via http from 127.0.0.1')
  assert.equal((await ctx.call('POST', '/api/act')).status, 403)
  const act = await ctx.call('POST', '/api/act', { headers: { origin: ctx.url } })
  assert.equal(act.status, 200)
  addToken(tokensPath(ctx.folder), 'maria', 'viewer')
  assert.equal((await ctx.call('GET', '/api/look/a')).status, 401)
})

test('an unreadable token file denies access', async () => {
  await using ctx = await createHttpTestContext({ ...routes, tokens: false })
  writeFileSync(tokensPath(ctx.folder), '{"tokens": [', { mode: 0o600 })
  assert.equal((await ctx.call('GET', '/api/look/a')).status, 401)
  assert.equal(ctx.log.length, 2)
  assert.match(ctx.log[0]!, /is not a list of tokens/)
  assert.match(ctx.log[1]!, /^Refused GET \/api\/look\/a/)
})

test('a non-loopback server has no local user', async () => {
  await using ctx = await createHttpTestContext({
    ...routes,
    tokens: false,
    auth: { isPrivate: false },
  })
  assert.equal((await ctx.call('GET', '/api/look/a')).status, 401)
})

test('read-only shows everything and changes nothing', async () => {
  await using ctx = await createHttpTestContext({ ...routes, auth: { readOnly: true } })
  assert.equal((await ctx.call('GET', '/api/look/a', { as: 'viewer' })).status, 200)
  const { status, body } = await ctx.call('POST', '/api/act', { as: 'admin' })
  assert.deepEqual([status, body.error.code], [403, 'READ_ONLY'])
})

test('so many changes a minute by one caller, and so many attempts to log in from one address', async () => {
  await using ctx = await createHttpTestContext({ ...routes, auth: { trustProxy: true } })
  const codes = async (
    times: number,
    ask: () => Promise<{ status: number }>,
  ): Promise<number[]> => {
    const found: number[] = []
    for (let n = 0; n < times; n++) found.push((await ask()).status)
    return found
  }
  const changes = await codes(61, () => ctx.call('POST', '/api/act', { as: 'operator' }))
  assert.deepEqual([changes.indexOf(429), new Set(changes.slice(0, 60))], [60, new Set([200])])
  const over = await ctx.call('POST', '/api/act', { as: 'operator' })
  assert.equal(over.body.error.code, 'TOO_MANY_REQUESTS')
  assert.match(over.headers.get('retry-after')!, /^([1-9]|[1-5]\d|60)$/)
  // Other callers are not affected, and reads go on.
  assert.equal((await ctx.call('POST', '/api/act', { as: 'admin' })).status, 200)
  assert.equal((await ctx.call('GET', '/api/look/a', { as: 'operator' })).status, 200)

  const guess = (from: string | null) => () =>
    ctx.call('POST', '/api/login', {
      headers: { 'sec-fetch-site': 'same-origin', ...(from && { 'x-forwarded-for': from }) },
      body: { token: 'guess' },
    })
  assert.deepEqual(await codes(7, guess('203.0.113.9')), [401, 401, 401, 401, 401, 429, 429])
  assert.deepEqual(await codes(1, guess('203.0.113.10')), [401])
  assert.deepEqual(new Set(await codes(10, guess(null))), new Set([401]))
})

test('a limit forgets after its time, and remembers no more than so many', () => {
  let now = 0
  const limit = new RateLimit(2, 1_000, () => now)
  assert.deepEqual([limit.take('a'), limit.take('a')], [null, null])
  assert.deepEqual(limit.take('a'), { afterSeconds: 1, isFirst: true })
  assert.deepEqual(limit.take('a'), { afterSeconds: 1, isFirst: false })
  assert.equal(limit.take('b'), null)
  now = 1_000
  assert.equal(limit.take('a'), null)
  for (let n = 0; n < 20_000; n++) limit.take(`stranger ${n}`)
  assert.equal(limit.take('a'), null)
})
