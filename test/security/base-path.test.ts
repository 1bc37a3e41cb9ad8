import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, request as httpRequest } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createHandler, toNodeHandler } from '../../src/http.ts'
import { TEST_ROUTES } from '../../src/testing/http-test-routes.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { listOperations } from '../../src/testing/fixtures.ts'

const BASE = '/ops/unstuck'

/** Paths outside the base path, as they go over the wire; each would be a call, a page or a file inside. */
const OUTSIDE = [
  '/',
  '/healthz',
  '/readyz',
  '/metrics',
  '/api/look/a',
  '/api/login',
  '/ops',
  '/ops/',
  '/ops/unstuckfoo',
  '/ops/unstuckfoo/api/look/a',
  '/ops/unstuck-/api/look/a',
  '/ops/unstuck.json',
  '/OPS/UNSTUCK/api/look/a',
  '//ops/unstuck/api/look/a',
  '/ops//unstuck/api/look/a',
  '/ops/unstuck%2fapi/look/a',
  '/ops/unstuck%5capi/look/a',
  '/ops%2funstuck/api/look/a',
  '/ops/%75nstuck/api/look/a',
  '/ops/unstuck/../api/look/a',
  '/ops/unstuck/%2e%2e/api/look/a',
  '/ops/unstuck/.%2E/../healthz',
  '/ops/unstuck/..%2f..%2fhealthz',
  '/other/../ops/unstuck/api/look/a',
  '/other/%2e%2e/ops/unstuck/api/look/a',
  '/ops/./unstuck/api/look/a',
  '/ops/unstuck/api/../api/look/a',
  '/ops\\unstuck\\api/look/a',
  '/ops/unstuck\\..\\healthz',
]

/** Sends the path unchanged, which fetch does not. */
async function get(origin: string, path: string, authorization: string): Promise<number> {
  const { hostname, port } = new URL(origin)
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const headers = { authorization, 'x-role': 'admin' }
  const sent = httpRequest({ hostname, port, path, headers, agent: false })
  sent.once('response', (response) => {
    response.resume().once('end', () => resolve(response.statusCode!))
  })
  sent.once('error', reject).end()
  return promise
}

test('S3 nothing outside the base path is reached, however the path is written', async () => {
  await using ctx = await createHttpTestContext({ app: { routes: TEST_ROUTES, basePath: BASE } })
  const admin = `Bearer ${ctx.tokens.admin}`
  for (const path of OUTSIDE) assert.equal(await get(ctx.url, path, admin), 404, path)
  for (const path of ['', '/', '/healthz', '/readyz', '/api/look/a', '/runs/1']) {
    assert.equal(await get(ctx.url, `${BASE}${path}`, admin), 200, path)
  }
  assert.equal(await get(ctx.url, `${BASE}?x=/../`, admin), 200)
  const outside = await ctx.call('POST', '/api/act', { as: 'operator' })
  assert.deepEqual([outside.status, outside.body.error.code], [404, 'NOT_FOUND'])
  assert.equal((await listOperations(ctx.store, 5)).items.length, 0)
})

test('S3 nor does a handler in a server of Node answer outside its base path', async () => {
  await using database = await sqliteEngine.fresh()
  const access = () => ({ name: 'maria', role: 'admin' }) as const
  const handler = createHandler({ db: database.url, basePath: BASE, access, log: () => {} })
  const answer = toNodeHandler(handler)
  const server = createServer((...call) => void answer(...call)).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    for (const path of OUTSIDE) assert.equal(await get(origin, path, ''), 404, path)
    assert.equal(await get(origin, `${BASE}/api/session`, ''), 200)
    const route = async (path: string) =>
      (await handler.routes.GET(new Request(`${origin}${path}`))).status
    assert.equal(await route(`${BASE}/api/session`), 200)
    assert.equal(await route('/api/session'), 404)
    assert.equal(await route(`${BASE}foo/api/session`), 404)
  } finally {
    await handler.close()
    server.closeAllConnections()
    server.close()
  }
})
