import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import {
  LeaseLostError,
  PageBehindError,
  PageRejectedError,
  UsageError,
} from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { OpenApi } from '../../../testing/open-api.ts'
import {
  RUN_API_DOCUMENT,
  RunApiTestContext,
  type RunApiClient,
} from '../../../testing/run-api-test-context.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import * as errors from './errors.ts'
import { BODY_SCHEMAS, ROUTES } from './routes.ts'

const page = readFileSync(
  join(import.meta.dirname, '../../../../docs/reference/run-api.md'),
  'utf8',
)
const document = new OpenApi(RUN_API_DOCUMENT)
const run = promisify(execFile)

const CLAIM = { target: newId(), epoch: 1, claimId: newId(), worker: newId() }

/** Every error that the API returns. */
const ALL_ERRORS = [
  errors.unauthorized(),
  errors.misdirected(''),
  errors.notFound([]),
  errors.methodNotAllowed('/', 'GET'),
  errors.BODY_ERRORS.notJson(''),
  errors.BODY_ERRORS.tooLarge(1),
  errors.BODY_ERRORS.badJson(''),
  errors.CALL_ERRORS.badBody([]),
  errors.tooManyCalls(1),
  errors.stopping(),
  errors.internalError(''),
  errors.malformedRequest('HPE_HEADER_OVERFLOW'),
  errors.malformedRequest('ERR_HTTP_REQUEST_TIMEOUT'),
  errors.malformedRequest(undefined),
  ...[
    new LeaseLostError(CLAIM, ''),
    new PageBehindError(CLAIM.target, 1, 2),
    new PageRejectedError(''),
    new UsageError(''),
  ].map((error) => errors.toHttpError(error)!),
].map(({ status, code }) => `${status} ${code}`)

test('the list above has every error of the code', () => {
  const code = readFileSync(join(import.meta.dirname, 'errors.ts'), 'utf8')
  const written = [...code.matchAll(/new HttpError\(\s*(\d+),\s*'([A-Z_]+)'/g)].map(
    ([, status, code]) => `${status} ${code}`,
  )
  assert.deepEqual([...ALL_ERRORS].sort(), written.sort())
})

test('the OpenAPI document has every call, and no other', () => {
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual(
    documented,
    ROUTES.map(({ method, path }) => `${method} ${path}`),
  )
})

test('the OpenAPI document has every field of every body, and no other', () => {
  for (const [name, schema] of Object.entries(BODY_SCHEMAS)) {
    const { properties, required = [] } = document.schemas[name]!
    assert.deepEqual(Object.keys(properties as object), Object.keys(schema.entries))
    const needed = Object.entries(schema.entries).filter(([, entry]) => entry.type !== 'optional')
    assert.deepEqual(
      required,
      needed.map(([field]) => field),
    )
  }
  assert.deepEqual(document.schemas['Nothing']!['properties'], {})
})

test('the OpenAPI document has every status and code, and no other', () => {
  const statuses = new Set([200, ...ALL_ERRORS.map((one) => Number(one.split(' ')[0]))])
  assert.deepEqual(
    document.statuses(),
    [...statuses].sort((a, b) => a - b),
  )
  const { error } = document.schemas['Error']!['properties'] as any
  assert.deepEqual(error.properties.code.enum, ALL_ERRORS.map((one) => one.split(' ')[1]).sort())
})

test('the page has every call and every error, and no other', () => {
  const calls = [...page.matchAll(/^\| `((?:GET|POST) \/\w*)` \|/gm)].map(([, call]) => call)
  assert.deepEqual(
    calls,
    ROUTES.map(({ method, path }) => `${method} ${path}`),
  )
  const errors = [...page.matchAll(/^\| (\d+) \| `([A-Z_]+)` \|/gm)].map(
    ([, status, code]) => `${status} ${code}`,
  )
  assert.deepEqual(errors.sort(), [...ALL_ERRORS].sort())
})

test('the check of the document can fail', () => {
  const fits = {
    method: 'POST',
    path: '/progress',
    status: 200,
    body: {},
    sent: { done: 1, total: 2 },
  }
  const headers = { 'content-type': 'application/json' }
  document.assertMatches({ ...fits, headers })
  for (const wrong of [
    { status: 418 },
    { body: { more: 1 } },
    { sent: { done: 1 } },
    { sent: { done: 1, total: 2, more: 3 } },
    { sent: undefined },
    { headers: { 'content-type': 'text/html' } },
    { path: '/', method: 'GET', body: { run: 'x' } },
    { status: 400, body: { error: { code: 'BAD_BODY', message: 'x' } } },
    { status: 400, body: { error: { code: 'OTHER', message: 'x' } } },
  ]) {
    assert.throws(
      () => document.assertMatches({ ...fits, headers, ...wrong }),
      JSON.stringify(wrong),
    )
  }
})

/** The samples of a language, in order. */
function samples(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, code]) => code!,
  )
}

/** Runs a sample as the command of a run, with a proxy in its environment that leads nowhere. */
async function runSample(
  command: RunApiClient,
  name: string,
  code: string,
  program: string,
): Promise<string> {
  using folder = temporaryFolder()
  const file = join(folder.path, name)
  writeFileSync(file, code)
  const env = {
    PATH: process.env['PATH'],
    HTTP_PROXY: 'http://127.0.0.1:9',
    UNSTUCK_URL: command.admission.url,
    UNSTUCK_TOKEN: command.admission.token,
  }
  return (await run(program, [file], { env })).stdout
}

const missing = (program: string): string | false =>
  spawnSync(program, ['--version']).status === 0 ? false : `there is no ${program}`

test('the samples for a shell work', { skip: missing('curl') }, async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const [whole, later] = samples('sh')
  const first = await ctx.begin('a')
  const said = await runSample(first, 'a.sh', `set -e\n${whole}`, 'sh')
  assert.match(said, /"page":0.*\{"seq":1\}\{\}\{\}$/)
  assert.partialDeepStrictEqual(await ctx.run(first.handle.id), {
    status: 'succeeded',
    progress: { done: 1, total: 1 },
    counts: { itemsNew: 1 },
  })

  const second = await ctx.begin('b')
  await runSample(second, 'b.sh', later!, 'sh')
  assert.equal((await ctx.run(second.handle.id)).status, 'interrupted')
})

test(
  'the sample for Python works, resumes, stops, and shows a refusal',
  { skip: missing('python3') },
  async () => {
    await using ctx = await RunApiTestContext.create(sqliteEngine)
    const [code] = samples('python')
    const first = await ctx.begin('a')
    first.isStopping = true
    await assert.rejects(
      runSample(first, 'a.py', code!, 'python3'),
      /stopped; the next start goes on/,
    )
    await first.handle.release()
    const second = await ctx.begin('a')
    await runSample(second, 'a.py', code!, 'python3')
    assert.partialDeepStrictEqual(await ctx.run(second.handle.id), {
      status: 'succeeded',
      progress: { done: 3, total: 3 },
      counts: { pages: 3, itemsNew: 3 },
    })

    const large = await ctx.begin('b')
    const huge = code!.replace('{"page": page}', '"x" * 9_000_000')
    assert.notEqual(huge, code)
    await assert.rejects(
      runSample(large, 'b.py', huge, 'python3'),
      /BODY_TOO_LARGE.*larger than 8 MB/,
    )
  },
)

test('the sample for Node works', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const [code] = samples('js')
  const command = await ctx.begin()
  await runSample(command, 'a.mjs', code!, process.execPath)
  assert.partialDeepStrictEqual(await ctx.run(command.handle.id), {
    status: 'succeeded',
    counts: { pages: 3, itemsNew: 3 },
  })
})
