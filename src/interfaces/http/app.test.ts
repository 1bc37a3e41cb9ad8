import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailableError } from '../../core/model/errors.ts'
import { TEST_ROUTES } from '../../testing/http-test-routes.ts'
import { createHttpTestContext, type HttpTestContext } from '../../testing/http-test-context.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { listOperations } from '../../testing/fixtures.ts'

const probes = { app: { routes: TEST_ROUTES } }

test('a call returns what its route returns, and every mistake is reported at once', async () => {
  await using ctx = await createHttpTestContext(probes)
  const look = (query: string) => ctx.call('GET', `/api/look/a${query}`, { as: 'viewer' })
  const { status, body } = await look('?limit=5&status=good')
  assert.deepEqual(
    [status, body.params, body.query],
    [200, { name: 'a' }, { limit: 5, status: 'good' }],
  )
  assert.equal(body.actor, 'the-viewer (viewer) via http from 127.0.0.1')
  const wrong = await look('?limt=5&status=ugly&limit=x&__proto__=1')
  assert.equal(wrong.status, 400)
  assert.equal(
    wrong.body.error.message,
    'Nothing was done: there is no "limt"; did you mean limit?; there is no "__proto__"; there are limit, status; ' +
      'limit is a whole number; status must be ("good" | "bad").',
  )
  assert.equal((await look('?limit=5&limit=6')).status, 400)

  const act = (sent: unknown) => ctx.call('POST', '/api/act', { as: 'operator', body: sent })
  assert.deepEqual((await act({ because: 'x' })).body.body, { because: 'x' })
  for (const sent of [
    { role: 'admin' },
    JSON.parse('{"__proto__": {"dryRun": true}}'),
    { constructor: {} },
    { count: 1.5 },
    { count: '1' },
    [],
    'x',
    null,
  ]) {
    assert.equal((await act(sent)).status, 400, JSON.stringify(sent))
  }
  assert.match((await act({ command: 'rm' })).body.error.message, /there is no "command"/)
})

test('a name that cannot be one is not there', async () => {
  await using ctx = await createHttpTestContext(probes)
  for (const name of [
    '..',
    '%2e%2e',
    '%2e%2e%2fetc%2fpasswd',
    'a%00',
    'A',
    '%ff',
    'a%2fb',
    'a'.repeat(9_000) + '1',
  ]) {
    const { status } = await ctx.call('GET', `/api/look/${name}`, { as: 'viewer' })
    assert.equal(status, 404, name)
  }
})

test('paths and methods that are not there are refused in JSON', async () => {
  await using ctx = await createHttpTestContext(probes)
  const as = 'viewer'
  const nowhere = await ctx.call('GET', '/api/nowhere', { as })
  assert.deepEqual([nowhere.status, nowhere.body.error.code], [404, 'NOT_FOUND'])
  const wrong = await ctx.call('GET', '/api/act', { as })
  assert.deepEqual([wrong.status, wrong.headers.get('allow')], [405, 'POST'])
  for (const method of ['PUT', 'PATCH', 'DELETE', 'OPTIONS']) {
    assert.equal((await ctx.call(method, '/api/look/a', { as })).status, 405, method)
  }
  assert.equal((await ctx.call('POST', '/', { as })).status, 405)
  const head = await ctx.call('HEAD', '/api/look/a', { as })
  assert.deepEqual([head.status, head.body], [200, ''])
  assert.ok(Number(head.headers.get('content-length')) > 0)
})

test('an error has advice; an internal one has its id and nothing else', async () => {
  await using ctx = await createHttpTestContext(probes)
  const fall = (how: string) => ctx.call('POST', `/api/fall/${how}`, { as: 'operator' })
  const codes: Record<string, [number, string]> = {
    missing: [404, 'NOT_FOUND'],
    wrong: [400, 'USAGE'],
    refused: [409, 'REFUSED'],
    running: [409, 'ALREADY_RUNNING'],
    away: [503, 'DB_UNREACHABLE'],
    changed: [409, 'PLAN_CHANGED'],
    otherwise: [500, 'UNEXPECTED'],
  }
  for (const [how, [status, code]] of Object.entries(codes)) {
    const heard = await fall(how)
    assert.deepEqual([heard.status, heard.body.error.code], [status, code])
  }
  assert.equal((await fall('away')).headers.get('retry-after'), '2')
  assert.deepEqual((await fall('changed')).body.preview, { plan: '0123456789abcdef' })
  const { body } = await fall('otherwise')
  assert.doesNotMatch(JSON.stringify(body), /secret|SELECT|canary|at /)
  const id = /under ([0-9a-f-]{36})/.exec(body.error.message)?.[1]
  assert.ok(id)
  const line = ctx.log.find((one) => one.includes(id))
  assert.match(line!, /SELECT 1/)
  assert.doesNotMatch(line!, /canary/)
})

test('every answer is closed to other sites, other types and every cache', async () => {
  await using ctx = await createHttpTestContext(probes)
  const answers = [
    await ctx.call('GET', '/api/look/a', { as: 'viewer' }),
    await ctx.call('GET', '/api/look/a'),
    await ctx.call('GET', '/api/nowhere', { as: 'viewer' }),
    await ctx.call('GET', '/healthz'),
    await ctx.call('GET', '/'),
    await ctx.call('GET', '/assets/none.js'),
  ]
  for (const { headers } of answers) {
    assert.equal(
      headers.get('content-security-policy'),
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; font-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    )
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('referrer-policy'), 'no-referrer')
    assert.equal(headers.get('cross-origin-opener-policy'), 'same-origin')
    assert.equal(headers.get('cross-origin-resource-policy'), 'same-origin')
  }
  for (const { headers } of answers.slice(0, 4))
    assert.equal(headers.get('cache-control'), 'no-store')
})

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`every mutation is recorded, applied or rejected; a dry run is not (${engine.name})`, async () => {
    await using ctx = await createHttpTestContext({ ...probes, engine })
    const ask = (path: string, as: 'viewer' | 'operator', body: object) =>
      ctx.call('POST', path, { as, body })
    await ask('/api/act', 'operator', { because: 'one', plan: '0123456789abcdef' })
    await ask('/api/act', 'operator', { dryRun: true })
    await ask('/api/act', 'viewer', { because: 'two' })
    await ask('/api/fall/refused', 'operator', {})
    await ask('/api/act', 'operator', { nonsense: 1 })
    await ctx.call('POST', '/api/act')
    await ctx.call('POST', '/api/login', {
      headers: { 'sec-fetch-site': 'same-origin' },
      body: { token: ctx.tokens.admin },
    })
    const { items } = await listOperations(ctx.store, 10)
    const seen = items.toReversed().map(({ actor, call, selection, plan, status, result }) => ({
      actor: actor.split(' ')[0],
      call,
      selection,
      plan,
      status,
      result: result.slice(0, 24),
    }))
    const [operator, call, plan] = ['the-operator', 'POST /api/act', null]
    assert.deepEqual(seen, [
      {
        actor: operator,
        call,
        selection: { because: 'one', plan: '0123456789abcdef' },
        plan: '0123456789abcdef',
        status: 200,
        result: 'It was done.',
      },
      {
        actor: 'the-viewer',
        call,
        selection: null,
        plan,
        status: 403,
        result: 'This needs the role oper',
      },
      {
        actor: operator,
        call: 'POST /api/fall/refused',
        selection: {},
        plan,
        status: 409,
        result: 'It has ended.',
      },
      {
        actor: operator,
        call,
        selection: { nonsense: 1 },
        plan,
        status: 400,
        result: 'Nothing was done: there ',
      },
    ])
    assert.equal(items[0]!.address, '127.0.0.1')
  })
}

test('a burst of changes leaves the row of its beginning, not a row each', async () => {
  await using ctx = await createHttpTestContext({ ...probes, auth: { readOnly: true } })
  await Promise.all(
    Array.from({ length: 80 }, () => ctx.call('POST', '/api/act', { as: 'operator' })),
  )
  const { items } = await listOperations(ctx.store, 100)
  const count = (status: number) => items.filter((one) => one.status === status).length
  assert.deepEqual([count(403), count(429)], [60, 1])
})

test('while the database is unreachable it returns an error, and recovers when it is back', async () => {
  let isAway = true
  let stage: HttpTestContext | undefined
  await using there = await createHttpTestContext({
    app: {
      routes: TEST_ROUTES,
      open: async () => {
        if (isAway) throw new StoreUnavailableError('The database does not answer.')
        return stage!.store
      },
    },
  })
  stage = there
  const look = () => there.call('GET', '/api/look/a', { as: 'viewer' })
  const away = await look()
  assert.deepEqual([away.status, away.headers.get('retry-after')], [503, '2'])
  assert.equal((await there.call('GET', '/api/look/a')).status, 401)
  const ready = await there.call('GET', '/readyz')
  assert.deepEqual([ready.status, ready.body], [503, { ok: false }])
  assert.deepEqual((await there.call('GET', '/healthz')).body, { ok: true })
  isAway = false
  assert.equal((await look()).status, 200)
  assert.equal((await there.call('GET', '/readyz')).status, 200)
})

test('a mistake in the config is the server’s own: the caller gets an id, the log the reason', async () => {
  const settings = () => Promise.reject(new Error('unstuck.config.ts is invalid'))
  await using ctx = await createHttpTestContext({ app: { routes: TEST_ROUTES, settings } })
  const { status, body } = await ctx.call('GET', '/api/look/a', { as: 'viewer' })
  assert.equal(status, 500)
  assert.doesNotMatch(body.error.message, /is invalid/)
  assert.match(ctx.log[0]!, /is invalid/)
})

test('with a base path nothing outside it is served', async () => {
  await using ctx = await createHttpTestContext({
    app: { routes: TEST_ROUTES, basePath: '/ops/unstuck' },
  })
  const look = (path: string) => ctx.call('GET', path, { as: 'viewer' })
  assert.equal((await look('/ops/unstuck/api/look/a')).status, 200)
  assert.equal((await look('/api/look/a')).status, 404)
  assert.equal((await ctx.call('GET', '/ops/unstuck')).status, 200)
  assert.equal((await ctx.call('GET', '/ops/unstuck/runs/1')).status, 200)
})
