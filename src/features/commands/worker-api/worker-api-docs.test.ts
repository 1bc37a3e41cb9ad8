import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { inDocument, OpenApi } from '../../../testing/open-api.ts'
import { OwnProgram } from '../../../testing/own-program.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import {
  BODY_FIELDS,
  buildWorkerApiDocument,
  ERROR_CODES,
  WORKER_API_DOCUMENT,
} from '../../../testing/worker-api-document.ts'
import { WorkerApiTestContext } from '../../../testing/worker-api-test-context.ts'
import { WORKER_BODIES, WORKER_ROUTES } from './routes.ts'

const PAGE = join(import.meta.dirname, '../../../../docs/reference/worker-api.md')
const page = readFileSync(PAGE, 'utf8')
const document = new OpenApi(WORKER_API_DOCUMENT)
const calls = WORKER_ROUTES.map(({ method, path }) => `${method} ${path}`)
const allErrors = Object.entries(ERROR_CODES).flatMap(([status, codes]) =>
  Object.keys(codes).map((code) => `${status} ${code}`),
)

test('the OpenAPI document is up to date: `npm run openapi` writes it', () => {
  assert.deepEqual(
    JSON.parse(readFileSync(WORKER_API_DOCUMENT, 'utf8')),
    JSON.parse(JSON.stringify(buildWorkerApiDocument())),
  )
})

test('the OpenAPI document has every call, every field of every body, and every code of the code', () => {
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual(documented.sort(), calls.map(inDocument).sort())
  for (const [name, fields] of Object.entries(BODY_FIELDS)) {
    const schema = WORKER_BODIES[name as keyof typeof WORKER_BODIES]
    assert.deepEqual(Object.keys(fields).sort(), Object.keys(schema.entries).sort(), name)
  }
  const written = ['errors.ts', '../run-api/errors.ts'].flatMap((file) => {
    const code = readFileSync(join(import.meta.dirname, file), 'utf8')
    return [...code.matchAll(/new HttpError\(\s*(\d+),\s*'([A-Z_]+)'/g)].map(
      ([, status, code]) => `${status} ${code}`,
    )
  })
  assert.deepEqual(allErrors.sort(), [...new Set(written)].sort())
  const statuses = [200, ...Object.keys(ERROR_CODES).map(Number)]
  assert.deepEqual(document.statuses(), statuses)
})

test('the page has every call, every field of its body, and every error', () => {
  const rows = [...page.matchAll(/^\| `((?:GET|POST) \/[\w/:]*)` \| (.+) \|$/gm)]
  assert.deepEqual(rows.map(([, call]) => call).sort(), [...calls].sort())
  for (const [, call, text] of rows) {
    const { body } = WORKER_ROUTES.find(({ method, path }) => `${method} ${path}` === call)!
    const names = body ? Object.keys((body as typeof WORKER_BODIES.ClaimRequest).entries) : []
    const isPage = names.includes('items')
    for (const name of isPage ? ['page'] : names) assert.match(text!, new RegExp(`\\b${name}\\b`))
  }
  for (const name of ['Page', 'Item', 'NewTarget'] as const)
    for (const field of Object.keys(BODY_FIELDS[name]))
      assert.ok(
        page.includes(`\`${field}\``) || page.match(new RegExp(`\\b${field}\\??[,:]`)),
        field,
      )
  const errors = [...page.matchAll(/^\| (\d+) \| `([A-Z_]+)` \|/gm)].map(
    ([, status, code]) => `${status} ${code}`,
  )
  assert.deepEqual(errors.sort(), [...allErrors].sort())
})

test('every call is answered as the document says', async () => {
  await using ctx = await WorkerApiTestContext.create(postgresEngine)
  const command = await ctx.command(await ctx.run(0, false))
  const reached = new Set<string>()
  const call = async (name: string, body?: unknown, id = ''): Promise<any> => {
    const [method = '', path = ''] = name.split(' ')
    const content = body === undefined ? undefined : JSON.stringify(body)
    // The client holds each answer to the document.
    const answer = await command.call(method, path.replace(':id', id), content)
    assert.equal(answer.status, 200, JSON.stringify(answer.body))
    reached.add(name)
    return answer.body
  }
  const everything = {
    page: 1,
    items: [
      { key: 'a', data: null },
      { url: 'https://shop.example/b', data: [1] },
    ],
    lastItemId: 'b',
    cursor: { at: 1 },
    skipped: 2,
    pageTarget: 3,
  }

  await call('GET /')
  await call('POST /planning', {})
  const targets = ['a', 'b', 'c', 'd', 'e', 'f'].map((key) => {
    return { key, group: 'g', url: `https://shop.example/${key}`, data: { key } }
  })
  await call('POST /targets', { targets })
  await call('POST /targets/planned')
  const claimed = await call('POST /claim', { max: 6, waitMs: 10, single: false })
  const [a, b, c, d, e, f] = claimed.targets.map((target: { id: string }) => target.id)
  await call('POST /targets/:id/checkpoint', { ...everything, next: '?page=2' }, a)
  await call('POST /checkpoints', {
    pages: [
      { target: a, ...everything, page: 2, next: null },
      { target: b, ...everything, done: false },
      { target: 'unknown', page: 1, done: false },
    ],
  })
  const { statement, parameter } = await call(
    'POST /targets/:id/transaction',
    { ...everything, done: true },
    c,
  )
  await using program = await OwnProgram.connect(ctx.database.url)
  await program.query(statement, [parameter])
  await call('POST /targets/:id/transaction/end', {}, c)
  await call('POST /targets/:id/finish', {}, b)
  await call('POST /targets/:id/release', {}, d)
  await call('POST /targets/:id/fail', { error: 'no', retry: true, retryAfter: '30s' }, e)
  await call('POST /targets/:id/park', { error: 'needs a login' }, f)
  await call('POST /heartbeat')
  await call('POST /log', { message: 'x', level: 'warn', target: a, fields: { n: 1 } })

  assert.deepEqual([...reached].sort(), [...calls].sort())
})

test('the check of the document can fail', () => {
  const fits = {
    method: 'POST',
    path: '/targets/{id}/checkpoint',
    status: 200,
    body: { seq: 1, done: false },
    sent: { page: 1, next: null },
  }
  const headers = { 'content-type': 'application/json' }
  document.assertMatches({ ...fits, headers })
  const pages = [1, 1].map(() => ({ target: 'a', page: 1, done: true }))
  for (const wrong of [
    { status: 418 },
    { body: { seq: 1 } },
    { body: { seq: 1, done: false, more: 1 } },
    { sent: { page: 1 } },
    { sent: { page: 1, next: null, done: true } },
    { sent: undefined },
    { headers: { 'content-type': 'text/html' } },
    { path: '/checkpoints', body: { outcomes: [] }, sent: { pages } },
    { path: '/checkpoints', body: { outcomes: [{ target: 'a' }] }, sent: { pages: [] } },
    { status: 409, body: { error: { code: 'OTHER', message: 'x' } } },
  ]) {
    assert.throws(
      () => document.assertMatches({ ...fits, headers, ...wrong }),
      JSON.stringify(wrong),
    )
  }
})
