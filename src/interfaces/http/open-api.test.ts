import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import {
  claim,
  registerWorker,
  savePage,
  makeItems,
  SOURCE,
  enqueueCrawl,
} from '../../testing/fixtures.ts'
import { buildOpenApiDocument } from '../../testing/http-api-document.ts'
import { createHttpTestContext } from '../../testing/http-test-context.ts'
import { HTTP_API_DOCUMENT, inDocument, OpenApi, type Schema } from '../../testing/open-api.ts'
import { ALL_ROUTES } from '../../testing/all-routes.ts'

test('the OpenAPI document is what the routes say', () => {
  assert.deepEqual(
    JSON.parse(readFileSync(HTTP_API_DOCUMENT, 'utf8')),
    JSON.parse(JSON.stringify(buildOpenApiDocument())),
    'write it anew: node src/testing/http-api-document.ts',
  )
})

test('every call is in the document, under a name of its own, with its role', () => {
  const { paths } = new OpenApi(HTTP_API_DOCUMENT)
  const names = Object.values(paths).flatMap((methods) =>
    Object.values(methods).map((one) => (one as unknown as Schema)['operationId']),
  )
  assert.deepEqual(names, [...new Set(names)])
  for (const { method, path, role } of ALL_ROUTES) {
    const found = paths[inDocument(path)]?.[method.toLowerCase()] as Schema | undefined
    assert.equal(found?.['x-unstuck-role'], role, `${method} ${path}`)
  }
})

test('responses match the document, with every field', async () => {
  await using ctx = await createHttpTestContext()
  const run = await enqueueCrawl(ctx.store, 4)
  const worker = await registerWorker(ctx.store, { leaseMs: 600_000 })
  const [one, another] = await claim(ctx.store, worker, 2)
  await savePage(ctx.store, one!, { items: makeItems(0, 3) })
  await ctx.store.fail([{ ...another!, error: 'no answer', becomes: 'failed' }])
  await ctx.call('POST', `/api/targets/${one!.target}/park`, { as: 'operator' })
  const document = new OpenApi(HTTP_API_DOCUMENT)
  const names: Record<string, string> = { run, source: SOURCE, target: one!.target }
  const looks = ALL_ROUTES.filter(
    ({ method, path, response }) => method === 'GET' && response && !/openapi|:finger/.test(path),
  )
  assert.ok(looks.length > 10)
  for (const { path } of looks) {
    const at = path.replace(/:(\w+)/g, (_, name: string) => names[name]!)
    const { status, body } = await ctx.call('GET', at, { as: 'viewer' })
    assert.equal(status, 200, `${at}: ${JSON.stringify(body)}`)
    const responses = document.paths[inDocument(path)]!['get']!.responses as any
    const { schema } = responses['200'].content['application/json']
    assert.deepEqual(document.validationErrors(body, schema, { strict: true }), [], at)
  }
  const refused = await ctx.call('GET', '/api/runs/none', { as: 'viewer' })
  assert.deepEqual(document.validationErrors(refused.body, document.schemas['Error']!), [])
})
