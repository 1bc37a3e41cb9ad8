import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import type { Store } from '../../src/core/store/store.ts'
import { removeToken, tokensPath } from '../../src/app/tokens.ts'
import { ALL_ROUTES } from '../../src/testing/all-routes.ts'
import {
  claimOne,
  registerWorker,
  enqueueCrawl,
  listOperations,
} from '../../src/testing/fixtures.ts'
import { EventReader } from '../../src/testing/event-reader.ts'
import { createHttpTestContext, type HttpTestContext } from '../../src/testing/http-test-context.ts'
import { MUTATION_ROUTES, READ_ROUTES, nameOf, pathOf } from './route-walk.ts'
import { ACCESS_STORE } from '../../src/features/access/store/store.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

/** Headers as they are, which fetch would not send, and a body as it is. */
async function send(
  ctx: HttpTestContext,
  [method, path]: readonly [string, string],
  headers: Record<string, string> = {},
  body = '',
): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const isChange = method !== 'GET' && method !== 'HEAD'
  const sent = httpRequest(`${ctx.url}${path}`, {
    method,
    headers: { ...headers, ...(isChange && { 'content-length': body.length }) },
    setHost: !('host' in headers),
    agent: false,
  })
  sent.once('response', (response) => {
    resolve(response.statusCode!)
    response.destroy()
  })
  sent.once('error', reject).end(isChange ? body : '')
  return promise
}

async function sessionOf(ctx: HttpTestContext): Promise<string> {
  const { headers } = await ctx.call('POST', '/api/login', {
    headers: { origin: ctx.url },
    body: { token: ctx.tokens.admin },
  })
  return headers.getSetCookie()[0]!.split(';')[0]!
}

test('S3 S7 no call is open without a token: none at all, a wrong one, one in the address', async () => {
  await using ctx = await createHttpTestContext()
  const { admin } = ctx.tokens
  const wrong: Record<string, string>[] = [
    {},
    { authorization: `Bearer ${admin}x` },
    { authorization: `Bearer ${admin.slice(1)}` },
    { cookie: `unstuck-${new URL(ctx.url).port}=${admin}` },
    { 'x-forwarded-for': '127.0.0.1', 'x-forwarded-host': 'localhost' },
  ]
  for (const route of ALL_ROUTES) {
    const path = pathOf(route)
    for (const headers of wrong) {
      const got = await send(ctx, [route.method, path], { ...JSON_TYPE, ...headers }, '{}')
      assert.equal(got, 401, `${nameOf(route)} ${Object.keys(headers).join()}`)
    }
    const inAddress = `${path}?token=${admin}`
    assert.equal(await send(ctx, [route.method, inAddress], JSON_TYPE, '{}'), 401, nameOf(route))
  }
  for (const open of ['/healthz', '/readyz', '/', '/login', '/runs']) {
    assert.equal((await ctx.call('GET', open)).status, 200, open)
  }
  assert.deepEqual((await ctx.call('GET', '/healthz')).body, { ok: true })
})

test('S4 no call is answered under a name that is not the server’s, with a session or a token', async () => {
  await using ctx = await createHttpTestContext()
  const cookie = await sessionOf(ctx)
  const authorization = `Bearer ${ctx.tokens.admin}`
  const hosts = ['evil.example', '127.0.0.1.evil.example', '[::ffff:127.0.0.1]', '2130706433', '']
  for (const [n, route] of ALL_ROUTES.entries()) {
    const host = hosts[n % hosts.length]!
    for (const [name, value] of Object.entries({ cookie, authorization })) {
      const headers = { host, [name]: value, ...JSON_TYPE, 'sec-fetch-site': 'same-origin' }
      const got = await send(ctx, [route.method, pathOf(route)], headers, '{}')
      assert.equal(got, 421, `${nameOf(route)} as ${host}`)
    }
  }
})

test('S5 no change is made by a form, a script of another site, or a link', async () => {
  await using ctx = await createHttpTestContext()
  const cookie = await sessionOf(ctx)
  const own = { cookie, 'sec-fetch-site': 'same-origin' }
  for (const route of MUTATION_ROUTES) {
    const call = [route.method, pathOf(route)] as const
    const foreign = { cookie, 'sec-fetch-site': 'cross-site', ...JSON_TYPE }
    assert.equal(await send(ctx, call, foreign, '{}'), 403, nameOf(route))
    assert.equal(await send(ctx, call, { cookie, ...JSON_TYPE }, '{}'), 403, nameOf(route))
    const form = { ...own, 'content-type': 'text/plain' }
    assert.equal(await send(ctx, call, form, '{}'), 415, nameOf(route))
    if (READ_ROUTES.some(({ path }) => path === route.path)) continue
    const link = await send(ctx, ['GET', call[1]], own)
    // A GET of `/api/targets/park` is one of the target `park`, which is no id of one.
    assert.ok([400, 404, 405].includes(link), `GET ${route.path}: ${link}`)
  }
})

test('S7 a stream ends within five seconds of its token, also for a session', async () => {
  await using ctx = await createHttpTestContext()
  const cookie = await sessionOf(ctx)
  const url = `${ctx.url}/api/events?topics=overview`
  await using tab = await EventReader.open(url, { cookie, 'sec-fetch-site': 'same-origin' })
  await tab.next('overview')
  removeToken(tokensPath(ctx.folder), 'the-admin')
  await tab.end(5_000)
})

test('S23 names that mean something to JavaScript, and roles, are mistakes in every call', async () => {
  const bodies = ['{"__proto__":{"role":"admin"}}', '{"constructor":{}}', '{"role":"admin"}']
  for (const body of bodies) {
    // A server each: the calls of a minute are limited.
    await using ctx = await createHttpTestContext()
    const headers = { authorization: `Bearer ${ctx.tokens.admin}`, ...JSON_TYPE }
    for (const route of MUTATION_ROUTES) {
      const got = await send(ctx, [route.method, pathOf(route)], headers, body)
      assert.equal(got, 400, `${nameOf(route)} ${body}`)
    }
  }
  await using ctx = await createHttpTestContext()
  const headers = { authorization: `Bearer ${ctx.tokens.admin}`, ...JSON_TYPE }
  for (const route of READ_ROUTES) {
    for (const name of ['__proto__', 'constructor', 'role', 'toString']) {
      const got = await send(ctx, ['GET', `${pathOf(route)}?${name}=x`], headers)
      assert.equal(got, 400, `${nameOf(route)} ?${name}`)
    }
  }
  assert.equal(({} as { role?: string }).role, undefined)
})

/** What makes sense to ask, so that as many as can be are done. */
function bodyOf(path: string, about: { target: string }): object {
  if (path === '/api/runs') return { source: 'other' }
  if (path === '/api/targets/park') return { targets: [about.target] }
  if (path.endsWith('/rewind')) return { to: 0 }
  if (path === '/api/dead-letters/replan') return { count: 0 }
  return {}
}

test('S24 every mutation records one row with user, address, call and result', async () => {
  await using ctx = await createHttpTestContext()
  const { store } = ctx
  const run = await enqueueCrawl(store, 3)
  const { target } = await claimOne(store, await registerWorker(store))
  const seen: number[] = []
  for (const route of MUTATION_ROUTES) {
    const path = pathOf(route, { run, target })
    const before = (await listOperations(store, 500)).items.length
    const body = bodyOf(route.path, { target })
    const { status } = await ctx.call(route.method, path, { as: 'admin', body })
    seen.push(status)
    const { items } = await listOperations(store, 500)
    assert.equal(items.length, before + 1, nameOf(route))
    // The newest comes first.
    const [row] = items
    assert.deepEqual(
      [row!.actor, row!.address, row!.call, row!.status],
      ['the-admin (admin) via http from 127.0.0.1', '127.0.0.1', `${route.method} ${path}`, status],
    )
    assert.deepEqual(row!.selection, body)
    assert.ok(row!.result.length > 0)
  }
  assert.ok(seen.filter((status) => status < 300).length >= 8, seen.join())

  const after = (await listOperations(store, 500)).items.length
  for (const route of MUTATION_ROUTES) {
    await ctx.call(route.method, pathOf(route, { run, target }))
    const refused = await ctx.call(route.method, pathOf(route), { as: 'viewer' })
    assert.equal(refused.status, 403)
  }
  const { items } = await listOperations(store, 500)
  assert.equal(items.length, after + MUTATION_ROUTES.length)
})

test('S26 read-only rejects every mutation for every role, and records the attempt', async () => {
  await using ctx = await createHttpTestContext({ auth: { readOnly: true } })
  const { store, database } = ctx
  const run = await enqueueCrawl(store, 1)
  const { target } = await claimOne(store, await registerWorker(store))
  const dump = () => database.raw('SELECT run.status, target.status FROM run, target')
  const before = await dump()
  for (const route of MUTATION_ROUTES) {
    const asked = { as: 'admin', body: bodyOf(route.path, { target }) } as const
    const { status, body } = await ctx.call(route.method, pathOf(route, { run, target }), asked)
    assert.deepEqual([status, body.error.code], [403, 'READ_ONLY'], nameOf(route))
  }
  assert.deepEqual(await dump(), before)
  assert.equal((await ctx.call('GET', '/api/session', { as: 'viewer' })).body.readOnly, true)
  assert.equal((await listOperations(store, 500)).items.length, MUTATION_ROUTES.length)
})

test('S33 for an internal error of any call the caller gets an id and nothing else', async () => {
  const inside = "/home/me/app.ts: SELECT * FROM run WHERE x = 'postgres://me:canary@db/x'"
  await using real = await createHttpTestContext()
  const broken = new Proxy(real.store, {
    get(store, name: keyof Store) {
      const verb = store[name]
      if (typeof verb !== 'function') return verb
      return (first: unknown) =>
        // Operations are still recorded.
        first === ACCESS_STORE ? store.extend(ACCESS_STORE) : Promise.reject(new Error(inside))
    },
  })
  await using ctx = await createHttpTestContext({ app: { open: async () => broken } })
  const failed: string[] = []
  for (const route of ALL_ROUTES) {
    const body = bodyOf(route.path, { target: '0'.repeat(8) })
    const path = route.path === '/api/events' ? '/api/events?topics=x' : pathOf(route)
    const { status, body: said } = await ctx.call(route.method, path, { as: 'admin', body })
    assert.doesNotMatch(JSON.stringify(said), /home|SELECT|canary/, path)
    if (status !== 500) continue
    failed.push(path)
    assert.deepEqual(Object.keys(said), ['error'])
    const { code, message } = said.error
    assert.equal(code, 'UNEXPECTED')
    const id = /([0-9a-f-]{36})\.$/.exec(message)?.[1]
    assert.match(message, /^Something failed inside Unstuck\. Its log has the error under /)
    assert.ok(ctx.log.some((line) => id && line.includes(id)))
  }
  assert.ok(failed.length >= 25, failed.join())
  assert.doesNotMatch(ctx.log.join('\n'), /canary/)
})
