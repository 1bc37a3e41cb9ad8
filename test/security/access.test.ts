import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TEST_ROUTES } from '../../src/testing/http-test-routes.ts'
import { EventReader } from '../../src/testing/event-reader.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import type { Access } from '../../src/interfaces/http/auth.ts'
import { listOperations } from '../../src/testing/fixtures.ts'

const NEVER = new Promise<never>(() => {})

test('S3 an access function that never returns, or throws, is 503 and denies access', async () => {
  const wrong: Record<string, Access> = {
    ACCESS_TIMED_OUT: () => NEVER,
    ACCESS_FAILED: () => Promise.reject(new Error('no session store')),
    ACCESS_FAILED_AT_ONCE: () => {
      throw new Error('no session store')
    },
  }
  for (const [code, access] of Object.entries(wrong)) {
    const gate = { access, accessTimeoutMs: 50, tokens: null }
    await using ctx = await createHttpTestContext({ app: { routes: TEST_ROUTES }, auth: gate })
    for (const [method, path] of [
      ['GET', '/api/look/a'],
      ['POST', '/api/act'],
      ['GET', '/api/nowhere'],
    ] as const) {
      const { status, body, headers } = await ctx.call(method, path)
      assert.deepEqual([status, headers.get('retry-after')], [503, '2'])
      assert.equal(body.error.code, code.replace('_AT_ONCE', ''))
      assert.match(
        body.error.message,
        /access function of the server (did not return within 0\.05 s|failed)/,
      )
      assert.doesNotMatch(body.error.message, /session store/)
    }
    assert.equal((await listOperations(ctx.store, 5)).items.length, 0)
    assert.equal((await ctx.call('GET', '/healthz')).status, 200)
  }
})

test('S7 a stream ends within five seconds when its access function no longer returns', async () => {
  let isHanging = false
  const viewer = { name: 'maria', role: 'viewer' } as const
  const access: Access = ({ headers }) =>
    isHanging && headers.get('x-user') === 'maria' ? NEVER : viewer
  await using ctx = await createHttpTestContext({ auth: { access, tokens: null } })
  const url = `${ctx.url}/api/events?topics=overview`
  await using tab = await EventReader.open(url, { 'x-user': 'maria' })
  await using other = await EventReader.open(url, { 'x-user': 'ben' })
  await tab.next('overview')
  await other.next('overview')
  isHanging = true
  await tab.end(5_000)
  assert.equal(
    (await ctx.call('GET', '/api/session', { headers: { 'x-user': 'ben' } })).status,
    200,
  )
})
