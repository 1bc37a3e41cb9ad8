import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { shortId, type RunId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import {
  beginOne,
  recoverWorker,
  claim,
  claimOne,
  registerWorker,
  savePage,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { unstuck, type CliResult } from '../../../testing/unstuck-cli.ts'

const HOSTILE_TEXT = 'Acme\x1b]52;c;aGk=\x07\u009b2J\u202Eevil\r\nline'
const source = 'directory'
const HOUR_MS = 3_600_000
const RUN_FIELDS =
  'id source status createdAt startedAt finishedAt lastActivityAt done total extracted unchanged skipped attempt error owner resumable retryOf acknowledged origin pages planned kind health severity because pace'
const WORKER_FIELDS = 'id source host pid label startedAt lastHeartbeatAt liveness because targets'

let database: TestDatabase
let store: Store
let run: RunId

/** A crawl at work with one failed and one parked target, a run that is done, one that waits, one that failed. */
before(async () => {
  database = await sqliteEngine.fresh()
  store = await database.open()
  const targets = Array.from({ length: 12 }, (_, n) => ({
    key: `city-${n}`,
    group: ['CA', 'TX', HOSTILE_TEXT][n % 3]!,
  }))
  run = await enqueueCrawl(store, targets, { source })
  const lost = await registerWorker(store, { source })
  await claim(store, lost, 1, { source })
  await recoverWorker(store, lost)
  await store.retireWorker(lost)
  // It sends no heartbeats: its lease outlasts the tests of this file on any machine.
  const worker = await registerWorker(store, { source, leaseMs: HOUR_MS })
  for (let n = 0; n < 8; n++) {
    const claimed = await claimOne(store, worker, { source, isIdle: true })
    const items = [
      { url: `https://x.example/${n}`, data: { name: HOSTILE_TEXT } },
      { key: `=cmd|${n}`, data: n },
    ]
    const saved = await savePage(store, claimed, { items, next: null })
    if (n === 2)
      await store.fail([{ ...saved, error: `HTTP 500\n${HOSTILE_TEXT}`, becomes: 'failed' }])
    else if (n === 3)
      await store.fail([{ ...saved, error: 'it took down 3 workers', becomes: 'parked' }])
    else if (n < 7) await store.finish([saved])
  }
  const portal = await beginOne(store, worker, { source: 'portal-a' })
  await store.reportProgress(portal, { done: 12, total: 12 })
  await store.finish([portal])
  const broken = await beginOne(store, worker, { source: 'broken' })
  await store.fail([{ ...broken, error: 'no such file', becomes: 'failed' }])
  await store.settle()
  await enqueueCrawl(store, 3, { source: 'waiting' })
})
after(() => database[Symbol.asyncDispose]())

function call(args: string[], columns = '80'): Promise<CliResult> {
  const cwd = dirname(database.url.slice('sqlite:'.length))
  return unstuck([...args, '--db', database.url], { cwd, env: { COLUMNS: columns } })
}

async function json(args: string[]): Promise<any> {
  return JSON.parse((await call([...args, '--json'])).stdout)
}

test('status prints one line, lists live runs, and exits with 3 while something needs attention', async () => {
  const { code, stdout } = await call(['status'])
  assert.equal(code, 3)
  const lines = stdout.split('\n')
  assert.match(
    stdout.slice(0, stdout.indexOf('\n\n')).replace('\n', ' '),
    /^Nothing is stuck: 1 run waiting for a worker, 1 run healthy\. 2 things need attention\.$/,
  )
  assert.match(stdout, new RegExp(`^${shortId(run)} +directory +running +5/12 +█`, 'm'))
  assert.match(stdout, /^Workers: 1 present$/m)
  assert.match(
    stdout,
    /^- broken: 1 target failed; no such file\. See `unstuck show [0-9a-f]{8}`\.$/m,
  )
  assert.ok(lines.every((line) => line.length <= 80))
})

test('status as JSON reports the same', async () => {
  const { runs, workers, attention, latest } = await json(['status'])
  assert.deepEqual(
    runs.map((one: any) => [one.source, one.health, one.done, one.total]),
    [
      ['waiting', 'waiting', 0, 3],
      ['directory', 'healthy', 5, 12],
    ],
  )
  assert.deepEqual(workers, { present: 1 })
  assert.deepEqual(
    attention.map(({ source, what }: any) => [source, what]),
    [
      ['directory', '1 target failed, 1 parked'],
      ['broken', '1 target failed'],
    ],
  )
  assert.equal(latest.source, 'waiting')
})

test('runs are listed newest first, page by page', async () => {
  const first = await json(['runs', '--limit', '3'])
  const rest = await json(['runs', '--limit', '3', '--after', first.next])
  assert.deepEqual(
    [...first.items, ...rest.items].map((one: any) => one.source),
    ['waiting', 'broken', 'portal-a', 'directory'],
  )
  assert.equal(rest.next, null)
  assert.equal(Object.keys(first.items[0]).join(' '), RUN_FIELDS)
  assert.equal((await json(['runs', '--status', 'failed'])).items[0].source, 'broken')
  assert.equal((await json(['runs', '--source', 'portal-a'])).items[0].done, 12)
})

test('show takes a short or a full id and prints all about the run', async () => {
  const { code, stdout } = await call(['show', shortId(run)])
  assert.equal(code, 0)
  for (const part of [
    /^Run \S+ of directory: running$/m,
    /^progress +\S+ 5\/12 targets, 42 %$/m,
    /^4 planned, 1 in progress, 5 done, 1 failed, 1 parked$/m,
    /^CA +2\/4/m,
    /failed +1 +1 +city-\d+ +HTTP 500$/m,
    /parked +1 +1 +city-\d+ +it took down 3 workers$/m,
    /resume city-0 \(in progress → planned\), by the tests: process 4242/,
  ]) {
    assert.match(stdout, part)
  }
  const shown = await json(['show', run.toUpperCase()])
  assert.equal(shown.run.id, run)
  assert.equal(shown.counts.total, 12)
  assert.equal(shown.needsAttention.length, 2)
  assert.equal(shown.audit[0].action, 'resume')
})

test('show refuses what is no run with 2 and a way on', async () => {
  const unknown = await call(['show', 'ffffffff'])
  assert.equal(unknown.code, 2)
  assert.match(unknown.stderr, /There is no run ffffffff\. `unstuck runs` lists them\./)
  assert.match((await call(['show', '%%%%%%%%'])).stderr, /There is no run or source %%%%%%%%\./)
})

async function rows(...args: string[]): Promise<any[]> {
  return (await json(['progress', source, ...args])).items[0].rows
}

test('progress counts by group, page and status, for all or some groups', async () => {
  assert.deepEqual(
    new Map((await rows()).map(({ group, total }) => [group, total])),
    new Map([
      ['CA', 4],
      ['TX', 4],
      [HOSTILE_TEXT, 4],
    ]),
  )
  assert.deepEqual(await rows('--by', 'page'), [
    { page: 0, targets: 4 },
    { page: 1, targets: 8 },
  ])
  assert.equal((await rows('--by', 'status')).find(({ status }) => status === 'done').targets, 5)
  const some = await rows('--group', 'CA', 'TX', '--by', 'page')
  assert.equal(
    some.reduce((sum, { targets }) => sum + targets, 0),
    8,
  )
  const wrong = await call(['progress', '--group', 'CB'])
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /There is no group CB\. Did you mean CA\?/)
})

test('progress without a run shows every live one', async () => {
  const { items } = await json(['progress'])
  assert.deepEqual(
    new Set(items.map(({ run }: any) => run.source)),
    new Set(['directory', 'waiting']),
  )
})

test('workers are shown with their liveness and the reason', async () => {
  const { items, next } = await json(['workers'])
  assert.equal(next, null)
  assert.equal(Object.keys(items[0]).join(' '), WORKER_FIELDS)
  assert.deepEqual([items[0].liveness, items[0].targets], ['present', 1])
  assert.match(items[0].because, /is alive: last heartbeat/)
  assert.deepEqual(await json(['workers', '--older', '1h']), { items: [], next: null })
})

test('items come out whole as JSON lines, JSON and CSV', async () => {
  const lines = (await call(['items', source])).stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line))
  assert.equal(lines.length, 16)
  assert.equal(lines.find(({ url }) => url === 'https://x.example/0').data.name, HOSTILE_TEXT)
  assert.deepEqual(await json(['items', source]), { items: lines, next: null })
  const csv = (await call(['items', source, '--format', 'csv'])).stdout
  assert.match(csv, /^key,url,run,group,firstSeenAt,changedAt,lastSeenAt,data,name\n/)
  assert.match(csv, /^'=cmd\|0,,/m)
  assert.doesNotMatch(csv, /^[=+@-]/m)
})

test('items of an unknown source are a mistake, and of a source without any an empty answer', async () => {
  assert.match((await call(['items', 'direcory'])).stderr, /Did you mean directory\?/)
  assert.deepEqual(await json(['items', 'waiting']), { items: [], next: null })
})

test('no command lets scraped text act on the terminal', async () => {
  for (const args of [
    ['status'],
    ['runs'],
    ['show', run],
    ['progress'],
    ['workers'],
    ['items', source],
  ]) {
    for (const columns of ['80', '40', '']) {
      const { stdout } = await call(args, columns)
      assert.doesNotMatch(stdout, /(?!\n)\p{Cc}|\u202e/u)
    }
  }
})

test('--watch looks again until Ctrl-C, as blocks or JSON lines, and ends with 0', async () => {
  const cwd = dirname(database.url.slice('sqlite:'.length))
  const stopAfter = /\n\{.*\n/
  const args = ['runs', '--watch', '--json', '--db', database.url]
  const { code, stdout } = await unstuck(args, { cwd, stopAfter })
  assert.equal(code, 0)
  assert.ok(
    stdout
      .trim()
      .split('\n')
      .every((line) => JSON.parse(line).items.length === 4),
  )
  const block = await unstuck(['status', '--watch', '--db', database.url], {
    cwd,
    stopAfter: /Workers/,
  })
  assert.equal(block.code, 0)
  assert.equal(block.stdout.includes('\x1b'), false)
})

test('a reader that leaves early is a good end', async () => {
  const bin = fileURLToPath(new URL('../../../../bin/unstuck.js', import.meta.url))
  const child = spawn(process.execPath, [bin, 'items', source, '--db', database.url])
  child.stdout.destroy()
  let stderr = ''
  child.stderr.on('data', (text) => (stderr += text))
  const [code] = await once(child, 'close')
  assert.deepEqual({ code, stderr }, { code: 0, stderr: '' })
})

test('a run whose workers are all lost is stuck; one that was never claimed still waits', async () => {
  await database.advanceClock(25 * HOUR_MS)
  const { code, stdout } = await call(['status'])
  assert.equal(code, 3)
  assert.match(stdout, /^Something is stuck: 1 run stuck for 25 h, 1 run waiting for a worker/)
  const { attention } = await json(['status'])
  assert.deepEqual([attention[0].source, attention[0].what], ['directory', 'orphaned'])
  assert.ok(!attention.some(({ source }: any) => source === 'waiting'))
  const { items } = await json(['workers', '--older', '1h'])
  assert.equal(items[0].liveness, 'silent')
})

test('abandoned runs are shown with their outcome', async () => {
  await database.raw(`UPDATE run SET status = 'abandoned' WHERE source = 'waiting'`)
  assert.match((await call(['runs'])).stdout, /waiting +Timeout – auto-cleaned/)
  assert.equal((await json(['runs', '--source', 'waiting'])).items[0].status, 'abandoned')
})

test('docs/reference/json-output.md names every field that comes out', async () => {
  const failing = (await store.targets(run, { statuses: ['failed'], limit: 1 })).items[0]!.id
  const docs = readFileSync(
    new URL('../../../../docs/reference/json-output.md', import.meta.url),
    'utf8',
  )
  const answers: unknown[] = []
  for (const args of [
    ['status'],
    ['runs'],
    ['show', run],
    ['progress', '--by', 'group'],
    ['workers'],
    ['items', source],
    ['check', source],
    ['summary'],
    ['recover', '--dry-run'],
    ['clean', '--yes'],
    ['clean', '--delete', '--dry-run'],
    ['explain', run],
    ['reset-failed', run, '--dry-run'],
    ['cancel', run],
    ['revert', run],
    ['resume', run],
    ['unpark', '--run', run],
    ['park', failing],
    ['rewind', failing, '--to', '0'],
    ['retry', run, '--dry-run'],
    ['history'],
    ['config', 'show'],
  ]) {
    answers.push(await json(args))
  }
  const fields = new Set<string>()
  const collect = (value: unknown): void => {
    if (Array.isArray(value)) value.forEach(collect)
    else if (typeof value === 'object' && value !== null) {
      for (const [name, inner] of Object.entries(value)) {
        fields.add(name)
        if (!['data', 'cursor', 'facts', 'before', 'after'].includes(name)) collect(inner)
      }
    }
  }
  answers.forEach(collect)
  for (const field of fields) assert.ok(docs.includes(`\`${field}\``), `${field} is not documented`)
})
