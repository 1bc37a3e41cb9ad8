import assert from 'node:assert/strict'
import { request as httpRequest } from 'node:http'
import { test } from 'node:test'
import { LOGIN_RESULTS, REFUSED_CODES } from '../../src/interfaces/http/error-log.ts'
import { removeToken, tokensPath } from '../../src/interfaces/http/tokens.ts'
import { httpStage, type HttpStage } from '../../src/testing/http-context.ts'
import { parsePrometheus } from '../../src/testing/prometheus-text.ts'
import { ALL_ROUTES } from '../../src/interfaces/http/route-table.ts'
import { CHANGES, nameOf, pathOf } from './table-walk.ts'

const OWN = { 'sec-fetch-site': 'same-origin' }

async function counts(stage: HttpStage, name: string): Promise<Record<string, number>> {
  const { body } = await stage.call('GET', '/metrics', { as: 'viewer' })
  const samples = parsePrometheus(body).get(name)?.samples ?? []
  return Object.fromEntries(
    samples.map(({ labels, value }) => [Object.values(labels).join(), value]),
  )
}

function logIn(stage: HttpStage, token: string, headers: Record<string, string> = OWN) {
  return stage.call('POST', '/api/login', { headers, body: { token } })
}

test('S42 logins are counted by their result, and failed ones are logged without the token', async () => {
  await using stage = await httpStage()
  const none = await counts(stage, 'unstuck_http_logins_total')
  assert.deepEqual(none, Object.fromEntries(LOGIN_RESULTS.map((result) => [result, 0])))
  const { operator } = stage.tokens
  await logIn(stage, operator)
  assert.equal(stage.log.length, 0)
  await logIn(stage, 'canary-of-a-guess')
  removeToken(tokensPath(stage.folder), 'the-operator')
  await logIn(stage, operator)
  await logIn(stage, operator, { origin: 'http://evil.example' })
  const proxy = { ...OWN, via: '1.1 proxy' }
  for (let n = 0; n < 6; n++) await logIn(stage, 'canary-of-a-guess', proxy)

  assert.deepEqual(await counts(stage, 'unstuck_http_logins_total'), {
    ok: 1,
    wrong_token: 7,
    too_many: 1,
    other: 1,
  })
  const failed = stage.log.filter((line) => line.includes('POST /api/login'))
  assert.equal(failed.length, 9)
  assert.match(failed[0]!, /^Refused POST \/api\/login from 127\.0\.0\.1: 401 UNAUTHORIZED$/)
  assert.doesNotMatch(stage.log.join(), new RegExp(`canary|${operator}`))
})

test('S42 every refused call is counted by its code and logged with where it came from', async () => {
  await using stage = await httpStage({ gate: { readOnly: true } })
  const before = await counts(stage, 'unstuck_http_refused_total')
  const codes = REFUSED_CODES.map((code) => code.toLowerCase())
  assert.deepEqual(before, Object.fromEntries(codes.map((code) => [code, 0])))
  for (const route of ALL_ROUTES) {
    assert.equal((await stage.call(route.method, pathOf(route))).status, 401, nameOf(route))
  }
  for (const route of CHANGES.slice(0, 5)) {
    await stage.call(route.method, pathOf(route), { as: 'viewer' })
  }
  // What is only wrong, not refused to somebody, is no news.
  await stage.call('GET', '/api/nowhere', { as: 'viewer' })
  await stage.call('GET', '/api/runs?limit=x', { as: 'viewer' })
  const after = await counts(stage, 'unstuck_http_refused_total')
  assert.deepEqual(after, { ...before, unauthorized: ALL_ROUTES.length, read_only: 5 })
  const first = `Refused ${nameOf(ALL_ROUTES[0]!)} from 127.0.0.1: 401 UNAUTHORIZED`
  assert.equal(stage.log[0], first)
})

test('S42 a flood of refused calls fills no log: the rest of the minute is counted only', async () => {
  await using stage = await httpStage()
  const odd = `/api/runs/%1b%5d0;x%07${'x'.repeat(2_000)}?token=canary`
  for (let n = 0; n < 100; n++) await stage.call('GET', odd)
  const refused = stage.log.filter((line) => line.startsWith('Refused'))
  assert.equal(refused.length, 30)
  assert.equal(stage.log.length, 31)
  assert.match(
    stage.log.at(-1)!,
    /^More calls are refused than are logged.*unstuck_http_refused_total/,
  )
  for (const line of stage.log) {
    assert.ok(line.length < 400, `${line.length}`)
    assert.doesNotMatch(line, /canary|\p{Cc}/u)
  }
  assert.equal((await counts(stage, 'unstuck_http_refused_total'))['unauthorized'], 100)
  // Logins have lines of their own, so that a flood of other calls does not hide them.
  await logIn(stage, 'guess')
  assert.match(stage.log.at(-1)!, /^Refused POST \/api\/login /)
})

test('S42 a call under a wrong name, from another site or with a failing access function is among them', async () => {
  await using named = await httpStage()
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
  await using failing = await httpStage({ gate: { access } })
  await failing.call('GET', '/api/session')
  assert.match(failing.log[0]!, /503 ACCESS_FAILED: no session store at/)
  assert.doesNotMatch(failing.log[0]!, /canary/)
})
