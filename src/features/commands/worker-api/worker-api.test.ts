import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LIMITS } from '../../../core/model/limits.ts'
import { itemsOf, listTargets, recoverWorker, registerWorker } from '../../../testing/fixtures.ts'
import { OwnProgram } from '../../../testing/own-program.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { WorkerApiTestContext } from '../../../testing/worker-api-test-context.ts'

const page = (n: number, last: boolean) => ({
  page: n,
  items: [{ key: `item-${n}`, data: { n } }],
  done: last,
})

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`the worker API, ${engine.name}`, { concurrency: 2 }, () => {
    test('plan, claim, save pages, end: the contract', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(0, false)
      const command = await ctx.command(run)
      const { body: before } = await command.get()
      assert.deepEqual(before, { run, source: 'shop', planned: false, input: null, stop: false })

      assert.deepEqual((await command.post('/planning')).body, { planner: true })
      const targets = [
        { key: 'a', group: 'CA', url: 'https://shop.example/a', data: { city: 'la' } },
        { url: 'https://Shop.example/b?utm_source=x' },
        { key: 'a' },
      ]
      assert.deepEqual((await command.post('/targets', { targets })).body, { planned: 2 })
      assert.deepEqual((await command.post('/targets', { targets })).body, { planned: 0 })
      assert.deepEqual((await command.post('/targets/planned')).body, {})
      assert.equal((await command.get()).body.planned, true)

      const [a, b] = (await command.post('/claim', { max: 5 })).body.targets
      const place = { page: 0, next: null, lastItemId: null, cursor: null, pageTarget: null }
      assert.deepEqual(a, { id: a.id, ...targets[0], ...place, attempt: 1 })
      assert.equal(b.key, 'https://shop.example/b')
      const first = {
        page: 1,
        items: [{ url: '/acme', data: { name: 'Acme' } }],
        next: '?page=2',
        pageTarget: 2,
        lastItemId: 'acme',
        cursor: [1],
        skipped: 3,
      }
      const saved = await command.post(`/targets/${a.id}/checkpoint`, first)
      assert.deepEqual(saved, { status: 200, body: { seq: 1, done: false } })
      const last = await command.post(`/targets/${a.id}/checkpoint`, { page: 2, next: null })
      assert.deepEqual(last.body, { seq: 2, done: true })
      assert.deepEqual((await command.post(`/targets/${b.id}/finish`)).body, {})

      assert.deepEqual((await command.post('/claim')).body, {
        targets: [],
        ended: true,
        stop: false,
      })
      assert.partialDeepStrictEqual(await ctx.store.run(run), {
        status: 'succeeded',
        counts: { pages: 2, itemsNew: 1, skipped: 3 },
      })
      assert.deepEqual(
        (await itemsOf(ctx.store)).map(({ key }) => key),
        ['https://shop.example/acme'],
      )
      const stored = (await listTargets(ctx.store, run)).find(({ key }) => key === 'a')
      assert.partialDeepStrictEqual(stored, { pageTarget: 2, lastItemId: 'acme', cursor: [1] })
      assert.deepEqual(command.eventTypes(), [
        'run_planned',
        'target_start',
        'target_start',
        'page_complete',
        'page_complete',
        'target_complete',
        'target_complete',
        'run_end',
      ])
    })

    test('P12 a page whose answer got lost can be sent again, also the last one, and counts once', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(1)
      const command = await ctx.command(run)
      const [{ id }] = await command.claim()
      for (const body of [page(1, false), page(2, true)]) {
        const answers = await Promise.all(
          [1, 2, 3].map(() => command.post(`/targets/${id}/checkpoint`, body)),
        )
        const expected = { status: 200, body: { seq: body.page, done: body.done } }
        assert.deepEqual(answers, [expected, expected, expected])
      }
      const { counts } = (await ctx.store.run(run))!
      assert.deepEqual([counts.pages, counts.itemsNew, counts.targets.done], [2, 2, 1])
      const behind = await command.post(`/targets/${id}/checkpoint`, {
        ...page(2, true),
        items: [],
      })
      assert.deepEqual([behind.status, behind.body.error.code], [409, 'LEASE_LOST'])
    })

    test('P1 a command that lost its claim changes nothing, and learns of it', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(1)
      const late = await ctx.command(run)
      const [{ id }] = await late.claim()
      await late.post(`/targets/${id}/checkpoint`, page(1, false))
      await recoverWorker(ctx.store, late.worker)
      const fresh = await ctx.command(run)
      const [again] = await fresh.claim()
      assert.deepEqual([again.id, again.page], [id, 1])

      const calls = [
        () => late.post(`/targets/${id}/checkpoint`, page(2, true)),
        () => late.post(`/targets/${id}/finish`),
        () => late.post(`/targets/${id}/fail`, { error: 'no' }),
        () => late.post(`/targets/${id}/release`),
        () => late.post(`/targets/${id}/park`, { error: 'no' }),
      ]
      for (const call of calls) {
        const { status, body } = await call()
        assert.deepEqual([status, body.error.code], [409, 'LEASE_LOST'])
        assert.match(body.error.message, /^Stop now: this process no longer has the claim/)
      }

      assert.deepEqual((await late.post('/heartbeat')).body, { stop: false, lost: [id] })
      assert.deepEqual((await late.post('/heartbeat')).body, { stop: false, lost: [] })
      const [target] = await listTargets(ctx.store, run)
      assert.partialDeepStrictEqual(target, {
        status: 'in_progress',
        page: 1,
        worker: fresh.worker,
      })
      assert.ok(late.eventTypes().includes('lease_lost'))
    })

    test('pages of many targets in one call have their own outcomes', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(3)
      const command = await ctx.command(run)
      const [a, b, c] = await command.claim(3)
      await command.post(`/targets/${b.id}/release`)
      await registerWorker(ctx.store)
      const pages = [
        { target: a.id, ...page(1, true) },
        { target: b.id, ...page(1, true) },
        { target: c.id, ...page(1, false), items: [{ url: 'no address', data: 1 }] },
        { target: 'unknown', ...page(1, false) },
      ]
      const { status, body } = await command.post('/checkpoints', { pages })
      assert.equal(status, 200)
      const codes = body.outcomes.map((one: any) => [one.target, one.seq ?? one.error.code])
      assert.deepEqual(codes, [
        [a.id, 1],
        [b.id, 'LEASE_LOST'],
        [c.id, 'PAGE_REJECTED'],
        ['unknown', 'LEASE_LOST'],
      ])
      const statuses = (await listTargets(ctx.store, run)).map((one) => [one.key, one.status])
      assert.deepEqual(Object.fromEntries(statuses), {
        t0: 'done',
        t1: 'planned',
        t2: 'in_progress',
      })
    })

    test('a page that failed is retried as the policy says; what ended once is not ended again', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(4)
      const command = await ctx.command(run, { retries: 1, backoffMs: 40, backoffMaxMs: 40 })
      const [a, b, c, d] = await command.claim(4)
      const fail = (id: string, more: object) =>
        command.post(`/targets/${id}/fail`, { error: 'the site is down', ...more })

      const retried = await fail(a.id, {})
      assert.equal(retried.body.status, 'planned')
      assert.ok(retried.body.retryInMs >= 20 && retried.body.retryInMs <= 40)
      assert.deepEqual((await fail(a.id, {})).body, retried.body)
      const after = await fail(b.id, { retryAfter: '120' })
      assert.deepEqual(after.body, { status: 'planned', retryInMs: 120_000 })
      const duration = await fail(c.id, { retryAfter: '30s' })
      assert.deepEqual(duration.body, { status: 'planned', retryInMs: 30_000 })
      assert.deepEqual((await fail(d.id, { retry: false })).body, {
        status: 'failed',
        retryInMs: null,
      })

      const { body } = await command.post('/claim', { waitMs: 20_000 })
      assert.deepEqual([body.targets[0].key, body.targets[0].attempt], ['t0', 2])
      const gaveUp = await fail(a.id, {})
      assert.deepEqual(gaveUp.body, { status: 'failed', retryInMs: null })
      const stored = (await listTargets(ctx.store, run)).find(({ key }) => key === 't0')
      assert.equal(stored?.lastError, 'the site is down')
    })

    test('a parked target needs an operator; a released one is claimable at once and counts nothing', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(2)
      const command = await ctx.command(run)
      const [a, b] = await command.claim(2)
      await command.post(`/targets/${a.id}/park`, { error: 'needs a login' })
      await command.post(`/targets/${b.id}/release`)
      await command.post(`/targets/${b.id}/release`)
      const [again] = await command.claim()
      assert.deepEqual([again.id, again.attempt], [b.id, 1])
      const targets = new Map((await listTargets(ctx.store, run)).map((one) => [one.id, one]))
      assert.partialDeepStrictEqual(targets.get(a.id), {
        status: 'parked',
        lastError: 'needs a login',
      })
      assert.partialDeepStrictEqual(targets.get(b.id), { attempts: 1, crashes: 0 })
    })

    test('one command at a time plans; when its worker has ended, another one does', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(0, false)
      const [one, other] = [await ctx.command(run), await ctx.command(run)]
      const planner = async (command: typeof one) =>
        (await command.post('/planning')).body.planner as boolean
      assert.deepEqual([await planner(one), await planner(other)], [true, false])
      const refused = await other.post('/targets/planned')
      assert.deepEqual([refused.status, refused.body.error.code], [409, 'NOT_PLANNER'])
      // Any command may add targets, and work on them before all are known.
      await other.post('/targets', { targets: [{ key: 'early' }] })
      assert.equal((await other.claim())[0].key, 'early')
      assert.equal((await other.post('/claim')).body.ended, false)

      await ctx.store.retireWorker(one.worker)
      assert.equal(await planner(other), true)
      assert.equal((await other.post('/targets/planned')).status, 200)
      assert.equal((await other.post('/targets/planned')).status, 200)
    })

    test('P11 a target that crashed its worker is claimed alone until it saves a page', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(3)
      const dead = await ctx.command(run)
      const [poison] = await dead.claim()
      await recoverWorker(ctx.store, dead.worker)
      const command = await ctx.command(run)
      // The idle command gets it first, and nothing beside it.
      const [alone] = (await command.post('/claim', { max: 3 })).body.targets
      assert.equal(alone.id, poison.id)
      assert.deepEqual((await command.post('/claim', { max: 2 })).body.targets, [])
      const waiting = command.post('/claim', { max: 2, waitMs: 20_000 })
      await command.post(`/targets/${alone.id}/checkpoint`, page(1, false))
      assert.equal((await waiting).body.targets.length, 2)
    })

    test('a claim waits for work, and ends when the command is to stop', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(1)
      const [one, other] = [await ctx.command(run), await ctx.command(run)]
      const [{ id }] = await one.claim()
      const waiting = other.post('/claim', { waitMs: 20_000 })
      await one.post(`/targets/${id}/release`)
      assert.equal((await waiting).body.targets[0].id, id)

      const second = one.post('/claim', { waitMs: 20_000 })
      one.stopping.abort()
      assert.deepEqual((await second).body, { targets: [], ended: false, stop: true })
      assert.equal((await one.post('/heartbeat')).body.stop, true)
      assert.equal((await one.get()).body.stop, true)
    })

    test('a claim whose caller hung up is released', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(1)
      const [one, gone] = [await ctx.command(run), await ctx.command(run)]
      const [{ id }] = await one.claim()
      const hangUp = new AbortController()
      const waiting = gone.call('POST', '/claim', '{"waitMs":20000}', { signal: hangUp.signal })
      hangUp.abort()
      await assert.rejects(waiting)
      await one.post(`/targets/${id}/release`)
      const { body } = await one.post('/claim', { waitMs: 20_000 })
      assert.equal(body.targets[0].id, id)
    })

    test('a command whose run has ended gets nothing of the next run of its source', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const command = await ctx.command(await ctx.run(1))
      const [{ id }] = await command.claim()
      await command.post(`/targets/${id}/finish`)
      assert.equal((await command.post('/claim')).body.ended, true)
      const late = await command.post('/targets', { targets: [{ key: 'late' }] })
      assert.deepEqual([late.status, late.body.error.code], [409, 'RUN_ENDED'])

      const next = await ctx.run(1)
      assert.deepEqual((await command.post('/claim')).body, {
        targets: [],
        ended: true,
        stop: false,
      })
      const [target] = await listTargets(ctx.store, next)
      assert.partialDeepStrictEqual(target, { status: 'planned', attempts: 0 })
    })
  })
}

test('a page in a transaction of the command, with rows of its own', async () => {
  await using ctx = await WorkerApiTestContext.create(postgresEngine)
  await ctx.database.raw('CREATE TABLE price (page integer)')
  const run = await ctx.run(1)
  const command = await ctx.command(run)
  const [{ id }] = await command.claim()
  await using program = await OwnProgram.connect(ctx.database.url)
  const save = async (n: number, last: boolean, end: 'COMMIT' | 'ROLLBACK') => {
    const { body } = await command.post(`/targets/${id}/transaction`, page(n, last))
    await program.query('BEGIN')
    await program.query(body.statement, [body.parameter])
    await program.query('INSERT INTO price VALUES ($1)', [n])
    const other = await command.post(`/targets/${id}/release`)
    assert.deepEqual([other.status, other.body.error?.code], [409, 'TRANSACTION_OPEN'])
    await program.query(end)
    return (await command.post(`/targets/${id}/transaction/end`)).body
  }
  assert.deepEqual(await save(1, false, 'ROLLBACK'), { saved: false, seq: 1, done: false })
  assert.deepEqual(await save(1, false, 'COMMIT'), { saved: true, seq: 1, done: false })
  assert.deepEqual(await save(2, true, 'COMMIT'), { saved: true, seq: 2, done: true })
  const again = await command.post(`/targets/${id}/transaction/end`)
  assert.deepEqual(again.body, { saved: true, seq: 2, done: true })
  const late = await command.post(`/targets/${id}/transaction`, page(3, true))
  assert.deepEqual([late.status, late.body.error.code], [409, 'LEASE_LOST'])
  assert.deepEqual(await program.query('SELECT page FROM price ORDER BY page'), [
    { page: 1 },
    { page: 2 },
  ])
  assert.equal((await command.post('/claim')).body.ended, true)
  assert.deepEqual(
    command.eventTypes().filter((type) => type === 'page_complete'),
    ['page_complete', 'page_complete'],
  )

  await using other = await WorkerApiTestContext.create(sqliteEngine)
  const small = await other.command(await other.run(1))
  const [target] = await small.claim()
  const refused = await small.post(`/targets/${target.id}/transaction`, page(1, true))
  assert.deepEqual([refused.status, refused.body.error.code], [501, 'NEEDS_POSTGRES'])
  const none = await small.post(`/targets/${target.id}/transaction/end`)
  assert.deepEqual([none.status, none.body.error.code], [409, 'NO_TRANSACTION'])
})

test('bad calls are refused with what is wrong, and change nothing', async () => {
  await using ctx = await WorkerApiTestContext.create(sqliteEngine)
  const run = await ctx.run(1)
  const command = await ctx.command(run)
  const [{ id }] = await command.claim()
  const refusal = async (path: string, body: unknown): Promise<string> => {
    const { status, body: answer } = await command.post(path, body)
    return `${status} ${answer.error.code}: ${answer.error.message}`
  }
  const checkpoint = (body: unknown) => refusal(`/targets/${id}/checkpoint`, body)
  assert.match(await checkpoint({ page: 1 }), /^400 BAD_BODY: .*needs either next .* or done/)
  assert.match(await checkpoint({ page: 1, next: null, done: true }), /^400 BAD_BODY: .*not both/)
  assert.match(await checkpoint({ page: 0, done: true }), /page must be a whole number from 1/)
  assert.match(await checkpoint({ page: 1, done: true, itmes: [] }), /did you mean items\?/)
  const tooLong = { page: 1, next: 'x'.repeat(8_193), lastItemId: 'x'.repeat(1_025) }
  assert.match(
    await checkpoint(tooLong),
    /^400 BAD_BODY: .*next must be of 8192 bytes at most.*lastItemId must be of 1024 bytes at most/,
  )
  assert.match(
    await refusal(`/targets/${id}/fail`, { error: 'x', retryAfter: 'später\n' }),
    /^400 BAD_BODY: .*retryAfter must be a duration such as 30s/,
  )
  const rejected = { page: 1, done: true, items: [{ data: 1 }] }
  assert.match(
    await checkpoint(rejected),
    /^422 PAGE_REJECTED: .*neither an http\(s\) url nor a key/,
  )
  const twice = { pages: [1, 2].map((n) => ({ target: id, page: n, done: false })) }
  assert.match(await refusal('/checkpoints', twice), /at most one page of each target/)
  assert.match(await refusal('/claim', { max: 0 }), /max must be a whole number from 1 to 1000/)
  const many = { targets: Array.from({ length: 10_001 }, (_, n) => ({ key: `${n}` })) }
  assert.match(await refusal('/targets', many), /at most 10000 targets/)
  assert.match(
    await refusal('/targets', { targets: [{ group: 'x' }] }),
    /^400 BAD_BODY: .*needs a key/,
  )
  assert.match(
    await refusal('/targets/x/y', {}),
    /^404 NOT_FOUND: .*POST \/targets\/:id\/checkpoint/,
  )
  const { status, body } = await command.call('GET', '/claim')
  assert.deepEqual([status, body.error.code], [405, 'METHOD_NOT_ALLOWED'])
  const wrong = await command.call('POST', '/claim', '{}', { token: 'x'.repeat(43) })
  assert.deepEqual([wrong.status, wrong.body.error.code], [401, 'UNAUTHORIZED'])
  const large = `{"targets":[{"key":"a","data":"${'x'.repeat(9 * 1_048_576)}"}]}`
  const tooLarge = await command.call('POST', '/targets', large)
  assert.deepEqual([tooLarge.status, tooLarge.body.error.code], [413, 'BODY_TOO_LARGE'])
  assert.match(tooLarge.body.error.message, /8 MB/)
  assert.deepEqual((await listTargets(ctx.store, run)).length, 1)
})

test('a line for the journal', async () => {
  await using ctx = await WorkerApiTestContext.create(sqliteEngine)
  const command = await ctx.command(await ctx.run(1))
  const line = { message: 'robots.txt forbids it', level: 'warn', fields: { path: '/x' } }
  assert.deepEqual((await command.post('/log', line)).body, {})
  assert.partialDeepStrictEqual(command.events, [{ type: 'log', target: null, ...line }])
  const { url, token } = command.endpoint
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  // Not held to the document, which has no words for a size in bytes.
  for (const large of [{ target: 'x'.repeat(65) }, { fields: { x: 'x'.repeat(20_000) } }]) {
    const body = JSON.stringify({ message: 'x', ...large })
    assert.equal((await fetch(`${url}/log`, { method: 'POST', headers, body })).status, 400)
  }
})

test('S37 an error is shortened before it is stored, logged and written into the journal', async () => {
  await using ctx = await WorkerApiTestContext.create(sqliteEngine)
  const run = await ctx.run(1)
  const command = await ctx.command(run)
  const [{ id }] = await command.claim()
  await command.post(`/targets/${id}/fail`, { error: 'x'.repeat(100_000) })
  const [target] = await listTargets(ctx.store, run)
  const event = command.events.find((one) => one.type === 'target_error')
  assert.ok(event!.error.length <= LIMITS.message)
  assert.ok(target!.lastError!.length <= LIMITS.message)
})
