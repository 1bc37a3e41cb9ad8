import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { LOGIN_RESULTS, COUNTED_CODES } from '../../src/interfaces/http/error-log.ts'
import { removeToken, tokensPath } from '../../src/app/tokens.ts'
import { createHttpTestContext, type HttpTestContext } from '../../src/testing/http-test-context.ts'
import { parsePrometheus } from '../../src/testing/prometheus-text.ts'
import { ALL_ROUTES } from '../../src/testing/all-routes.ts'
import { MUTATION_ROUTES, nameOf, pathOf } from './route-walk.ts'

const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }

async function counts(ctx: HttpTestContext, name: string): Promise<Record<string, number>> {
  const { body } = await ctx.call('GET', '/metrics', { as: 'viewer' })
  const samples = parsePrometheus(body).get(name)?.samples ?? []
  return Object.fromEntries(
    samples.map(({ labels, value }) => [Object.values(labels).join(), value]),
  )
}

function logIn(ctx: HttpTestContext, token: string, headers: Record<string, string> = SAME_ORIGIN) {
  return ctx.call('POST', '/api/login', { headers, body: { token } })
}

test('S42 logins are counted by their result, and failed ones are logged without the token', async () => {
  await using ctx = await createHttpTestContext()
  const none = await counts(ctx, 'unstuck_http_logins_total')
  assert.deepEqual(none, Object.fromEntries(LOGIN_RESULTS.map((result) => [result, 0])))
  const { operator } = ctx.tokens
  await logIn(ctx, operator)
  assert.equal(ctx.log.length, 0)
  await logIn(ctx, 'canary-of-a-guess')
  removeToken(tokensPath(ctx.folder), 'the-operator')
  await logIn(ctx, operator)
  await logIn(ctx, operator, { origin: 'http://evil.example' })
  const proxy = { ...SAME_ORIGIN, via: '1.1 proxy' }
  for (let n = 0; n < 6; n++) await logIn(ctx, 'canary-of-a-guess', proxy)

  assert.deepEqual(await counts(ctx, 'unstuck_http_logins_total'), {
    ok: 1,
    wrong_token: 7,
    too_many: 1,
    other: 1,
  })
  const failed = ctx.log.filter((line) => line.includes('POST /api/login'))
  assert.equal(failed.length, 9)
  assert.match(failed[0]!, /^Refused POST \/api\/login from 127\.0\.0\.1: 401 UNAUTHORIZED$/)
  assert.doesNotMatch(ctx.log.join(), new RegExp(`canary|${operator}`))
})

test('S42 every refused call is counted by its code and logged with where it came from', async () => {
  await using ctx = await createHttpTestContext({ auth: { readOnly: true } })
  const before = await counts(ctx, 'unstuck_http_refused_total')
  const codes = COUNTED_CODES.map((code) => code.toLowerCase())
  assert.deepEqual(before, Object.fromEntries(codes.map((code) => [code, 0])))
  for (const route of ALL_ROUTES) {
    assert.equal((await ctx.call(route.method, pathOf(route))).status, 401, nameOf(route))
  }
  for (const route of MUTATION_ROUTES.slice(0, 5)) {
    await ctx.call(route.method, pathOf(route), { as: 'viewer' })
  }
  // An invalid request is not a refusal, so it is not counted.
  await ctx.call('GET', '/api/nowhere', { as: 'viewer' })
  await ctx.call('GET', '/api/runs?limit=x', { as: 'viewer' })
  const after = await counts(ctx, 'unstuck_http_refused_total')
  assert.deepEqual(after, { ...before, unauthorized: ALL_ROUTES.length, read_only: 5 })
  const first = `Refused ${nameOf(ALL_ROUTES[0]!)} from 127.0.0.1: 401 UNAUTHORIZED`
  assert.equal(ctx.log[0], first)
})

test('S42 a flood of refused calls fills no log: the rest of the minute is counted only', async () => {
  await using ctx = await createHttpTestContext()
  const odd = `/api/runs/%1b%5d0;x%07${'x'.repeat(2_000)}?token=canary`
  for (let n = 0; n < 100; n++) await ctx.call('GET', odd)
  const refused = ctx.log.filter((line) => line.startsWith('Refused'))
  assert.equal(refused.length, 30)
  assert.equal(ctx.log.length, 31)
  assert.match(
    ctx.log.at(-1)!,
    /^More refused calls are not logged for \d+ s; unstuck_http_refused_total/,
  )
  for (const line of ctx.log) {
    assert.ok(line.length < 400, `${line.length}`)
    assert.doesNotMatch(line, /canary|\p{Cc}/u)
  }
  assert.equal((await counts(ctx, 'unstuck_http_refused_total'))['unauthorized'], 100)
  // Logins have lines of their own, so that a flood of other calls does not hide them.
  await logIn(ctx, 'guess')
  assert.match(ctx.log.at(-1)!, /^Refused POST \/api\/login /)
})

test('S42 a call under a wrong name, from another site or with a failing access function is among them', async () => {
  await using named = await createHttpTestContext()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  httpRequest(`${named.url}/api/session`, { headers: { host: 'evil.example' }, agent: false })
    .once('response', (response) =>
      response.resume().once('end', () => resolve(response.statusCode!)),
    )
    .once('error', reject)
    .end()
  assert.equal(await promise, 421)
  await logIn(named, named.tokens.viewer, { origin: 'http://evil.example' })
  const { misdirected, wrong_origin } = await counts(named, 'unstuck_http_refused_total')
  assert.deepEqual([misdirected, wrong_origin], [1, 1])

  const access = () => {
    throw new Error('no session store at postgres://me:canary@db/x')
  }
  await using failing = await createHttpTestContext({ auth: { access } })
  await failing.call('GET', '/api/session')
  assert.match(failing.log[0]!, /503 ACCESS_FAILED: no session store at/)
  assert.doesNotMatch(failing.log[0]!, /canary/)
})
