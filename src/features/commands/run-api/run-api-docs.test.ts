import assert from 'node:assert/strict'
import { execFile, spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { LeaseLost, PageBehind, PageRejected, UsageError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { OpenApi } from '../../../testing/open-api.ts'
import { RUN_API_DOCUMENT, RunApiStage, type Caller } from '../../../testing/run-api-caller.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { FIELDS } from './bodies.ts'
import { CALLS } from './calls.ts'
import * as refusals from './http-error.ts'

const page = readFileSync(join(import.meta.dirname, '../../../../docs/run-api.md'), 'utf8')
const document = new OpenApi(RUN_API_DOCUMENT)
const run = promisify(execFile)

const CLAIM = { target: newId(), epoch: 1, claimId: newId(), worker: newId() }

/** Every refusal there is, by its code. */
const EVERY_REFUSAL = [
  refusals.unauthorized(),
  refusals.misdirected(''),
  refusals.unknownPath([]),
  refusals.wrongMethod('/', 'GET'),
  refusals.notJson(''),
  refusals.tooLarge(1),
  refusals.badJson(''),
  refusals.badBody([]),
  refusals.tooManyCalls(1),
  refusals.stopping(),
  refusals.unexpected(''),
  refusals.malformed('HPE_HEADER_OVERFLOW'),
  refusals.malformed('ERR_HTTP_REQUEST_TIMEOUT'),
  refusals.malformed(undefined),
  ...[
    new LeaseLost(CLAIM, ''),
    new PageBehind(CLAIM.target, 1, 2),
    new PageRejected(''),
    new UsageError(''),
  ].map((error) => refusals.refusalFor(error)!),
].map(({ status, code }) => `${status} ${code}`)

test('every refusal that the code can make is known here', () => {
  const code = readFileSync(join(import.meta.dirname, 'http-error.ts'), 'utf8')
  const written = [...code.matchAll(/new Refusal\(\s*(\d+),\s*'([A-Z_]+)'/g)].map(
    ([, status, code]) => `${status} ${code}`,
  )
  assert.deepEqual([...EVERY_REFUSAL].sort(), written.sort())
})

test('the OpenAPI document has every call, and no other', () => {
  const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  assert.deepEqual(
    documented,
    [...CALLS].map(([path, { method }]) => `${method} ${path}`),
  )
})

test('the OpenAPI document has every field of every body, and no other', () => {
  const names: Record<keyof typeof FIELDS, string> = {
    checkpoint: 'Checkpoint',
    item: 'Item',
    progress: 'Progress',
    heartbeat: 'Nothing',
    finish: 'Nothing',
    fail: 'Failure',
  }
  for (const [body, name] of Object.entries(names)) {
    const shape: Record<string, { rule: string; isOptional?: true }> =
      FIELDS[body as keyof typeof FIELDS]
    const fields = Object.entries(shape)
    const { properties, required = [] } = document.schemas[name]!
    assert.deepEqual(
      Object.keys(properties as object),
      fields.map(([field]) => field),
    )
    assert.deepEqual(
      required,
      fields.filter(([, field]) => !field.isOptional).map(([field]) => field),
    )
  }
})

test('the OpenAPI document has every status and code, and no other', () => {
  const statuses = new Set([200, ...EVERY_REFUSAL.map((one) => Number(one.split(' ')[0]))])
  assert.deepEqual(
    document.statuses(),
    [...statuses].sort((a, b) => a - b),
  )
  const { error } = document.schemas['Error']!['properties'] as any
  assert.deepEqual(error.properties.code.enum, EVERY_REFUSAL.map((one) => one.split(' ')[1]).sort())
})

test('the page has every call and every error, and no other', () => {
  const calls = [...page.matchAll(/^\| `((?:GET|POST) \/\w*)` \|/gm)].map(([, call]) => call)
  assert.deepEqual(
    calls,
    [...CALLS].map(([path, { method }]) => `${method} ${path}`),
  )
  const errors = [...page.matchAll(/^\| (\d+) \| `([A-Z_]+)` \|/gm)].map(
    ([, status, code]) => `${status} ${code}`,
  )
  assert.deepEqual(errors.sort(), [...EVERY_REFUSAL].sort())
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
  document.assertFits({ ...fits, headers })
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
    assert.throws(() => document.assertFits({ ...fits, headers, ...wrong }), JSON.stringify(wrong))
  }
})

/** The samples of a language, in order. */
function samples(language: string): string[] {
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\n([^]*?)^\`\`\`$`, 'gm'))].map(
    ([, code]) => code!,
  )
}

/** Runs a sample as the command of a run, with a proxy in its environment that leads nowhere. */
async function play(command: Caller, name: string, code: string, program: string): Promise<string> {
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
  await using stage = await RunApiStage.set(sqliteEngine)
  const [whole, later] = samples('sh')
  const first = await stage.begin('a')
  const said = await play(first, 'a.sh', `set -e\n${whole}`, 'sh')
  assert.match(said, /"page":0.*\{"seq":1\}\{\}\{\}$/)
  assert.partialDeepStrictEqual(await stage.run(first.handle.id), {
    status: 'succeeded',
    progress: { done: 1, total: 1 },
    counts: { itemsNew: 1 },
  })

  const second = await stage.begin('b')
  await play(second, 'b.sh', later!, 'sh')
  assert.equal((await stage.run(second.handle.id)).status, 'interrupted')
})

test(
  'the sample for Python works, resumes, stops, and shows a refusal',
  { skip: missing('python3') },
  async () => {
    await using stage = await RunApiStage.set(sqliteEngine)
    const [code] = samples('python')
    const first = await stage.begin('a')
    first.isStopping = true
    await assert.rejects(play(first, 'a.py', code!, 'python3'), /stopped; the next start goes on/)
    await first.handle.release()
    const second = await stage.begin('a')
    await play(second, 'a.py', code!, 'python3')
    assert.partialDeepStrictEqual(await stage.run(second.handle.id), {
      status: 'succeeded',
      progress: { done: 3, total: 3 },
      counts: { pages: 3, itemsNew: 3 },
    })

    const large = await stage.begin('b')
    const huge = code!.replace('{"page": page}', '"x" * 9_000_000')
    assert.notEqual(huge, code)
    await assert.rejects(play(large, 'b.py', huge, 'python3'), /BODY_TOO_LARGE.*larger than 8 MB/)
  },
)

test('the sample for Node works', async () => {
  await using stage = await RunApiStage.set(sqliteEngine)
  const [code] = samples('js')
  const command = await stage.begin()
  await play(command, 'a.mjs', code!, process.execPath)
  assert.partialDeepStrictEqual(await stage.run(command.handle.id), {
    status: 'succeeded',
    counts: { pages: 3, itemsNew: 3 },
  })
})
