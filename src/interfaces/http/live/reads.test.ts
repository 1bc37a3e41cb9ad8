import assert from 'node:assert/strict'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId, shortId } from '../../../core/model/id.ts'
import { createRunFolder, runFolder } from '../../../lib/files/data-folder.ts'
import { LogFile } from '../../../features/commands/log-file.ts'
import {
  recoverWorker,
  claimOne,
  registerWorker,
  enqueueSingle,
  savePage,
  makeItems,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { createHttpTestContext, type HttpTestContext } from '../../../testing/http-test-context.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { assertDocumented } from '../../../testing/open-api.ts'
import { ALERT_STORE } from '../../../features/alerts/store/store.ts'
import { COMMAND_STORE } from '../../../features/commands/store/store.ts'

async function get(ctx: HttpTestContext, path: string, status = 200) {
  const answer = await ctx.call('GET', path, { as: 'viewer' })
  assert.equal(answer.status, status, `${path}: ${JSON.stringify(answer.body)}`)
  return answer.body
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: a series has what was done in each minute, of all or of some`, async () => {
    await using ctx = await createHttpTestContext({ engine })
    const { store, database } = ctx
    const me = await registerWorker(store, { leaseMs: 3_600_000 })
    const run = await enqueueCrawl(store, 3)
    let claimed = await claimOne(store, me)
    for (let minute = 1; minute <= 3; minute++) {
      for (let n = 0; n < minute; n++) {
        claimed = await savePage(store, claimed, { items: makeItems(10 * minute + 2 * n, 2) })
      }
      await store.takeSample()
      await database.advanceClock(60_000)
    }
    await recoverWorker(store, me)
    await database.advanceClock(60_000)
    const answer = await get(ctx, '/api/series')
    assertDocumented('Series', answer)
    assert.equal(answer.stepSeconds, 60)
    assert.equal(answer.points.length, 60)
    type Point = { pages: number | null; items: number | null }
    const known = (answer.points as Point[]).filter(({ pages }) => pages !== null)
    assert.ok(known.length >= 2 && known.length <= 4)
    const added = (read: (point: Point) => number | null): number =>
      known.reduce((sum, point) => sum + read(point)!, 0)
    assert.deepEqual([added(({ pages }) => pages), added(({ items }) => items)], [6, 12])
    const recoveries = (points: { recoveries: number }[]): number =>
      points.reduce((sum, point) => sum + point.recoveries, 0)
    assert.equal(recoveries(answer.points), 1)
    const same = await get(ctx, `/api/series?run=${shortId(run)}&since=30m`)
    assert.equal(same.points.length, 30)
    assert.equal(recoveries(same.points), 1)
    const other = await get(ctx, '/api/series?source=another')
    assert.equal(recoveries(other.points), 0)
    assert.ok(other.points.every(({ pages }: { pages: number | null }) => pages === null))
    const week = await get(ctx, '/api/series?since=7d')
    assert.deepEqual([week.stepSeconds, week.points.length], [3_600, 168])
    for (const since of ['8d', '1e9', '-1h', 'x']) await get(ctx, `/api/series?since=${since}`, 400)
  })
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: the series of a run without a sample is that of its life, not of an hour`, async () => {
    await using ctx = await createHttpTestContext({ engine })
    const { store, database } = ctx
    const me = await registerWorker(store, { leaseMs: 3_600_000 })
    const run = await enqueueCrawl(store, 1)
    let claimed = await claimOne(store, me)
    for (let n = 0; n < 10; n++) {
      await database.advanceClock(2_000)
      claimed = await savePage(store, claimed, { items: makeItems(3 * n, 3) })
    }
    const answer = await get(ctx, `/api/series?run=${shortId(run)}`)
    assertDocumented('Series', answer)
    assert.ok(answer.stepSeconds >= 1 && answer.stepSeconds < 3, `${answer.stepSeconds} s`)
    type Point = { pages: number; items: number }
    const added = (read: (point: Point) => number): number =>
      (answer.points as Point[]).reduce((sum, point) => sum + read(point), 0)
    assert.deepEqual([added(({ pages }) => pages), added(({ items }) => items)], [10, 30])
    await database.advanceClock(20 * 60_000)
    assert.equal((await get(ctx, `/api/series?run=${run}`)).stepSeconds, 60)
  })
}

test('the log of a command is read page by page, from its newest lines on', async () => {
  await using ctx = await createHttpTestContext()
  const run = await enqueueSingle(ctx.store)
  const log = new LogFile(createRunFolder(ctx.folder, run).logPath)
  log.write('out', ['one', 'two', '\u202etxt.exe', 'token=postgres://me:hunter2@db/x'])
  log.note('it went on')
  const path = `/api/runs/${run}/log`
  const first = await get(ctx, `${path}?limit=4`)
  assertDocumented('LogPage', first)
  assert.deepEqual(
    first.lines.map(({ stream, text }: { stream: string; text: string }) => `${stream} ${text}`),
    ['out two', 'out \\u202etxt.exe', 'out token=***', 'event it went on'],
  )
  const after = encodeURIComponent(first.next)
  assert.deepEqual((await get(ctx, `${path}?after=${after}`)).lines, [])
  log.write('err', ['three'])
  const next = await get(ctx, `/api/runs/${shortId(run)}/log?after=${after}`)
  assert.deepEqual(
    next.lines.map(({ text }: { text: string }) => text),
    ['three'],
  )
  assert.equal(next.anew, false)
})

test('a log that is not on this host is reported with its location', async () => {
  await using ctx = await createHttpTestContext()
  const { store } = ctx
  const queued = await enqueueSingle(store, 'queued')
  assert.match((await get(ctx, `/api/runs/${queued}/log`)).because, /has not started yet/)
  const elsewhere = await enqueueSingle(store, 'elsewhere')
  const execution = {
    id: newId(),
    run: elsewhere,
    worker: await registerWorker(store),
    host: 'far-away',
    command: ['x'],
    outputDir: '/etc',
    log: '/etc/passwd',
    startedAt: 0,
    end: null,
  }
  await (await store.extend(COMMAND_STORE)).startExecution(execution)
  const { because, lines } = await get(ctx, `/api/runs/${elsewhere}/log`)
  assert.match(because, new RegExp(`far-away: call .unstuck logs ${shortId(elsewhere)}. there`))
  assert.deepEqual(lines, [])
  await (
    await store.extend(COMMAND_STORE)
  ).startExecution({ ...execution, id: newId(), host: hostname(), startedAt: 1 })
  const here = await get(ctx, `/api/runs/${elsewhere}/log`)
  assert.match(here.because, /where it was started/)
  assert.doesNotMatch(JSON.stringify(here), /etc|root:/)
})

test('nothing outside the data folder is read, however it is asked for', async () => {
  await using ctx = await createHttpTestContext()
  const { store, folder } = ctx
  using outside = temporaryFolder()
  const secret = '2026-11-16T10:00:00.000Z out the secret\n'
  writeFileSync(join(outside.path, 'output.log'), secret)
  mkdirSync(join(folder, 'runs'))
  // The whole folder of a run leads away, then only its log, then that of the journals.
  const [one, two, three] = [newId(), newId(), await enqueueCrawl(store, 1)]
  for (const id of [one, two]) {
    const kind = { kind: 'single', policy: (await store.run(three))!.policy } as const
    await store.enqueue({ id, source: `s-${id}`, ...kind })
  }
  symlinkSync(outside.path, runFolder(folder, one).folder)
  symlinkSync(join(outside.path, 'output.log'), createRunFolder(folder, two).logPath)
  const worker = newId()
  const event = { time: new Date(), worker, type: 'target_error', run: three, error: 'the secret' }
  writeFileSync(join(outside.path, `${worker}.jsonl`), `${JSON.stringify(event)}\n`)
  symlinkSync(outside.path, join(folder, 'journal'))
  for (const run of [one, two, three]) {
    const answer = await get(ctx, `/api/runs/${run}/log`)
    assert.deepEqual(answer.lines, [], run)
    assert.equal(typeof answer.because, 'string')
  }
  for (const odd of ['..', '%2e%2e%2f%2e%2e', '%2fetc%2fpasswd', 'x%00y', `${one}%2f..`]) {
    const { status, body } = await ctx.call('GET', `/api/runs/${odd}/log`, { as: 'viewer' })
    assert.ok(status === 404 || status === 400, `${odd}: ${status}`)
    assert.doesNotMatch(JSON.stringify(body), /secret|root:/)
  }
  for (const after of ['../../etc/passwd', '1:1', '9'.repeat(200)]) {
    assert.deepEqual((await get(ctx, `/api/runs/${one}/log?after=${after}`)).lines, [])
  }
  const nul = await ctx.call('GET', `/api/runs/${one}/log?after=%00`, { as: 'viewer' })
  assert.equal(nul.status, 400)
})

test('open and resolved alerts are listed separately', async () => {
  await using ctx = await createHttpTestContext()
  const { store } = ctx
  const run = await enqueueCrawl(store, 1)
  const held = await claimOne(store, await registerWorker(store))
  await store.fail([{ ...held, error: 'broken page', becomes: 'parked' }])
  const alerts = await store.extend(ALERT_STORE)
  const alert = { owner: 'o', source: 'shop', because: 'x', command: 'unstuck clean' }
  await alerts.raiseAlert({ ...alert, rule: 'dead', cause: 'dead one', run: null })
  await alerts.raiseAlert({ ...alert, rule: 'parked', cause: `parked ${run}`, run })
  const [dead] = await alerts.listAlerts({ open: true })
  await alerts.resolveAlert(dead!)
  const answer = await get(ctx, '/api/alerts')
  for (const alert of [...answer.open, ...answer.recent]) assertDocumented('Alert', alert)
  const causes = (alerts: { cause: string }[]) => alerts.map(({ cause }) => cause)
  assert.deepEqual([causes(answer.open), causes(answer.recent)], [[`parked ${run}`], ['dead one']])
})
