import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { itemsOf, recoverWorker, makeItems, SOURCE } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { assertRejected, RunApiTestContext } from '../../../testing/run-api-test-context.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'

const PAGE_1 = {
  page: 1,
  items: [
    { url: 'https://Shop.example/acme?utm_source=x', data: { name: 'Acme' } },
    { key: 'own-key', data: null },
  ],
  next: 'https://shop.example/?page=2',
  lastItemId: 'acme',
  cursor: { seen: [1, 'zwei', null] },
  skipped: 3,
  pageTarget: 12,
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`a run's own HTTP API, ${engine.name}`, { concurrency: 2 }, () => {
    test('describe, checkpoint, progress, finish: the contract', async () => {
      await using ctx = await RunApiTestContext.create(engine)
      const command = await ctx.begin()
      const { id } = command.handle
      const fresh = {
        run: id,
        source: SOURCE,
        resumed: false,
        page: 0,
        next: null,
        lastItemId: null,
        cursor: null,
        done: 0,
        total: 1,
        pageTarget: null,
      }
      assert.deepEqual((await command.get()).body, fresh)
      assert.deepEqual((await command.get('/')).body, fresh)

      assert.deepEqual((await command.post('/checkpoint', PAGE_1)).body, { seq: 1 })
      assert.deepEqual((await command.post('/progress', { done: 2, total: 40 })).body, {})
      const { items: _items, skipped: _skipped, ...cursor } = PAGE_1
      assert.deepEqual((await command.get()).body, { ...fresh, ...cursor, done: 2, total: 40 })
      assert.deepEqual((await command.post('/checkpoint', { page: 3 })).body, { seq: 2 })
      assert.deepEqual((await command.post('/finish', {})).body, {})

      const run = await ctx.run(id)
      assert.partialDeepStrictEqual(run, {
        status: 'succeeded',
        progress: { done: 2, total: 40 },
        counts: { pages: 2, itemsNew: 2, skipped: 3 },
      })
      const keys = (await itemsOf(ctx.store)).map((item) => item.key)
      assert.deepEqual(keys, ['https://shop.example/acme', 'own-key'])
      assert.deepEqual(command.ends, ['finish'])
      assert.equal(command.calls, 7)
    })

    test('P12 a page sent again after its answer got lost has the same number and is counted once', async () => {
      await using ctx = await RunApiTestContext.create(engine)
      const command = await ctx.begin()
      await command.post('/checkpoint', PAGE_1)

      const again = await Promise.all([1, 2, 3].map(() => command.post('/checkpoint', PAGE_1)))

      assert.deepEqual(
        again.map(({ status, body }) => [status, body]),
        Array(3).fill([200, { seq: 1 }]),
      )
      const { counts } = await ctx.run(command.handle.id)
      assert.deepEqual([counts.pages, counts.itemsNew, counts.skipped], [1, 2, 3])
      assert.deepEqual((await command.post('/checkpoint', { page: 2 })).body, { seq: 2 })
    })

    test('P12 a page that the process before had saved is recognised after the resume', async () => {
      await using ctx = await RunApiTestContext.create(engine)
      const before = await ctx.begin()
      await before.post('/checkpoint', { page: 1 })
      await before.post('/checkpoint', { ...PAGE_1, page: 2 })
      await before.handle.release()
      const after = await ctx.begin()

      assert.partialDeepStrictEqual((await after.get()).body, { resumed: true, page: 2 })
      assert.deepEqual((await after.post('/checkpoint', { ...PAGE_1, page: 2 })).body, { seq: 2 })
      assert.deepEqual((await after.post('/checkpoint', { page: 3 })).body, { seq: 3 })

      assert.equal(after.handle.id, before.handle.id)
      assert.equal((await ctx.run(after.handle.id)).counts.pages, 3)
    })

    test('P6 a lower page, or the saved one with other content, is refused and changes nothing', async () => {
      await using ctx = await RunApiTestContext.create(engine)
      const command = await ctx.begin()
      await command.post('/checkpoint', { page: 5, items: [{ key: 'a', data: 1 }] })

      const items = [{ key: 'a', data: 2 }]
      const lower = await command.post('/checkpoint', { page: 4, items })
      assertRejected(lower, 409, 'PAGE_BEHIND', /Page 4 .* stands at page 5.* continue from page 6/)
      const other = await command.post('/checkpoint', { page: 5, items })
      assertRejected(other, 409, 'PAGE_BEHIND', /saved before with other content.* from page 6/)

      assert.equal((await itemsOf(ctx.store))[0]?.data, 1)
      assert.partialDeepStrictEqual((await command.get()).body, { page: 5 })
      assert.equal((await ctx.run(command.handle.id)).counts.pages, 1)
    })

    test('P1 every call of a command that lost its run returns that it must stop', async () => {
      await using ctx = await RunApiTestContext.create(engine)
      const command = await ctx.begin()
      await command.post('/checkpoint', PAGE_1)
      await recoverWorker(ctx.store, (await ctx.run(command.handle.id)).owner!)
      const heir = await ctx.handle()

      const late = await command.post('/checkpoint', { page: 2, items: makeItems(0, 1) })
      assertRejected(late, 409, 'LEASE_LOST', /^Stop now: this process no longer has the claim/)
      for (const [path, body] of [
        ['/progress', { done: 1, total: 2 }],
        ['/finish', {}],
        ['/fail', { error: 'x' }],
        ['/checkpoint', { page: 2 }],
      ] as const) {
        assertRejected(await command.post(path, body), 409, 'LEASE_LOST')
      }
      assertRejected(await command.get(), 409, 'LEASE_LOST')
      assert.deepEqual((await command.post('/heartbeat')).body, { stop: true })
      assert.deepEqual(command.ends, [])
      assert.equal(heir.page, 1)
      assert.equal((await ctx.run(heir.id)).status, 'running')
    })

    test('finish and fail sent again are answered as the first time; anything else after an end is refused', async () => {
      await using ctx = await RunApiTestContext.create(engine)
      const done = await ctx.begin('done')
      for (let n = 0; n < 2; n++) assert.deepEqual((await done.post('/finish')).body, {})
      const failed = await ctx.begin('failed')
      for (const error of ['first', 'second']) {
        assert.deepEqual((await failed.post('/fail', { error })).body, {})
      }

      for (const [command, other] of [
        [done, '/fail'],
        [failed, '/finish'],
      ] as const) {
        const body = other === '/fail' ? { error: 'x' } : {}
        assertRejected(await command.post(other, body), 409, 'RUN_ENDED', /already ended here/)
        assertRejected(await command.post('/checkpoint', { page: 1 }), 409, 'RUN_ENDED')
        assertRejected(await command.post('/progress', { done: 1, total: 1 }), 409, 'RUN_ENDED')
        assert.equal((await command.get()).status, 200)
        assert.deepEqual((await command.post('/heartbeat')).body, { stop: false })
      }
      assert.deepEqual(done.ends, ['finish'])
      assert.deepEqual(failed.ends, [{ error: 'first', retry: false }])
      assert.equal((await ctx.run(done.handle.id)).status, 'succeeded')
      const { status, error } = await ctx.run(failed.handle.id)
      assert.deepEqual([status, error], ['failed', 'first'])
    })

    test('fail with retry requeues the run, from its last page', async () => {
      await using ctx = await RunApiTestContext.create(engine)
      const first = await ctx.begin()
      await first.post('/checkpoint', PAGE_1)
      await first.post('/progress', { done: 5, total: 9 })
      await first.post('/fail', { error: 'the site is closed for an hour', retry: true })
      assert.deepEqual(first.ends, [{ error: 'the site is closed for an hour', retry: true }])
      assert.equal((await ctx.run(first.handle.id)).status, 'interrupted')

      const second = await ctx.begin()

      assert.equal(second.handle.id, first.handle.id)
      assert.partialDeepStrictEqual((await second.get()).body, {
        resumed: true,
        page: 1,
        next: PAGE_1.next,
        cursor: PAGE_1.cursor,
        done: 5,
        total: 9,
      })
    })
  })
}

test('a page that the database cannot store is refused, and the run goes on', async () => {
  await using ctx = await RunApiTestContext.create(postgresEngine)
  const command = await ctx.begin()

  const large = await command.post('/checkpoint', { page: 1, cursor: 'x'.repeat(256 * 1_024) })

  assertRejected(large, 422, 'PAGE_REJECTED', /The cursor of page 1 is larger than 256 KB/)
  const nul = { page: 1, items: [{ key: 'a', data: 'a\0b' }], cursor: '\0' }
  assert.deepEqual((await command.post('/checkpoint', nul)).body, { seq: 1 })
  assert.equal((await command.get('/')).body['cursor'], '\ufffd')
})

test('pages sent all at once are saved one after the other, in the order they came', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()

  const answers = await Promise.all(
    Array.from({ length: 12 }, async (_, n) => {
      // Each on a connection of its own: the server sees them in this order.
      await new Promise((resolve) => setTimeout(resolve, n * 5))
      return command.post('/checkpoint', { page: n + 1, items: makeItems(n, 1) })
    }),
  )

  assert.deepEqual(
    answers.map(({ body }) => body.seq),
    Array.from({ length: 12 }, (_, n) => n + 1),
  )
  assert.equal((await ctx.run(command.handle.id)).counts.itemsNew, 12)
})

test('a heartbeat returns when to stop: the owner stops, or the run was cancelled', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  assert.deepEqual((await command.post('/heartbeat', {})).body, { stop: false })
  command.isStopping = true
  assert.deepEqual((await command.post('/heartbeat')).body, { stop: true })
  command.isStopping = false

  command.handle.stop('the run was cancelled')

  assert.deepEqual((await command.post('/heartbeat')).body, { stop: true })
  // What is in hand may still be saved.
  assert.deepEqual((await command.post('/checkpoint', { page: 1 })).body, { seq: 1 })
})

test('the response of GET can be sent back: null keeps pageTarget and lastItemId', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  await command.post('/checkpoint', { ...PAGE_1, items: [] })

  await command.post('/checkpoint', {
    page: 2,
    next: null,
    lastItemId: null,
    pageTarget: null,
    cursor: null,
  })

  assert.partialDeepStrictEqual((await command.get()).body, {
    page: 2,
    next: null,
    lastItemId: 'acme',
    pageTarget: 12,
    cursor: null,
  })
})

test('many runs at once: each has its own address and token, and no token opens another run', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const [a, b] = [await ctx.begin('a'), await ctx.begin('b')]
  assert.notEqual(a.admission.token, b.admission.token)
  assert.equal(Buffer.from(a.admission.token, 'base64url').length, 32)
  assert.match(a.admission.url, new RegExp(`^http://127\\.0\\.0\\.1:\\d+/${a.handle.id}$`))

  await Promise.all([a.post('/checkpoint', { page: 7 }), b.post('/checkpoint', { page: 2 })])

  assert.deepEqual([(await a.get()).body.page, (await b.get()).body.page], [7, 2])
  assertRejected(await a.get('', { token: b.admission.token }), 401, 'UNAUTHORIZED')
})

test('S2 without the right token everything is refused in the same words, also for a run that is not there', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const [command, gone] = [await ctx.begin('a'), await ctx.begin('b')]
  const { token } = command.admission
  gone.admission.close()

  const answers = [
    await command.get('', { token: null }),
    await command.post('/checkpoint', { page: 1 }, { token: null }),
    await command.post('/no-such-path', {}, { token: 'x' }),
    await command.get('', { token: `${token}x` }),
    await command.get('', { token: token.slice(0, -1) }),
    await command.get('', { token: null, headers: { authorization: `Basic ${token}` } }),
    await command.get(`?token=${token}`, { token: null }),
    await gone.get(),
  ]

  for (const answer of answers) {
    assertRejected(answer, 401, 'UNAUTHORIZED', /Authorization: Bearer \$UNSTUCK_TOKEN/)
    assert.deepEqual(answer.body, answers[0]!.body)
  }
  assert.equal(command.calls, 0)
  assert.equal((await command.get()).status, 200)
})

test('a run that is admitted again has a new token; the old one, and its dismissal, no longer count', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const first = await ctx.begin()
  await first.handle.release()
  const second = await ctx.begin()
  assert.equal(second.admission.url, first.admission.url)

  assertRejected(await first.get(), 401, 'UNAUTHORIZED')
  first.admission.close()

  assert.equal((await second.get()).status, 200)
})

test('an unknown path is answered with the paths there are, another method with the one that is right', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()

  for (const path of ['/checkpoints', '/checkpoint/', '//', '/constructor', '/..%2f']) {
    const answer = await command.post(path, {})
    assertRejected(answer, 404, 'NOT_FOUND', /GET \/, POST \/checkpoint, .*POST \/fail/)
  }
  const wrong = await command.get('/checkpoint')
  assertRejected(wrong, 405, 'METHOD_NOT_ALLOWED', /Call \/checkpoint with POST/)
  assert.equal(wrong.headers.allow, 'POST')
  for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS']) {
    const answer = await command.call(method, '')
    assertRejected(answer, 405, 'METHOD_NOT_ALLOWED')
    assert.equal(answer.headers.allow, 'GET')
    const cors = Object.keys(answer.headers).filter((name) => name.startsWith('access-control'))
    assert.deepEqual(cors, [])
  }
})

test('S23 every mistake in a body is named at once, unknown fields too, and nothing is done', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const many = await command.post('/checkpoint', {
    pages: 3,
    items: [{ url: 'not an address', data: 1 }, { data: 1 }, 'x', { key: '', data: 1, price: 3 }],
    next: 7,
    skipped: -1,
  })
  assertRejected(many, 400, 'BAD_BODY')
  for (const told of [
    /there is no "pages"; did you mean page\?/,
    /page is missing: it must be a whole number from 1/,
    /next must be an address, or null, not 7/,
    /skipped must be a whole number from 0 to 2147483647, not -1/,
    /items\[0\] needs an http\(s\) url or a key of your own, but has the url "not an address"/,
    /items\[1\] needs an http\(s\) url or a key of your own, but has neither/,
    /items\[2\] must be an object with url, key, data, but is "x"/,
    /items\[3\] has no price; there are url, key, data/,
    /items\[3\]\.key must be text that is not empty, not ""/,
  ]) {
    assert.match(many.body.error.message, told)
  }

  const wrong: [string, unknown, RegExp][] = [
    ['/checkpoint', undefined, /the body must be an object with page, items, .* but is missing/],
    ['/checkpoint', [], /must be an object with page, .* but is a list/],
    ['/checkpoint', null, /but is null/],
    ['/checkpoint', { page: 1.5 }, /page must be a whole number/],
    ['/checkpoint', { page: 2 ** 31 }, /page must be a whole number from 1 to 2147483647/],
    ['/checkpoint', { page: '1' }, /page must be a whole number .*, not "1"/],
    ['/checkpoint', { page: 1, items: {} }, /items must be a list of items, not an object/],
    ['/checkpoint', { page: 1, items: [{ key: 'a' }] }, /items\[0\]\.data is missing/],
    ['/checkpoint', { page: 1, next: '' }, /next must be an address, or null, not ""/],
    ['/checkpoint', { page: 1, items: Array(99).fill(1) }, /items\[19\].*; 79 more\.$/],
    [
      '/progress',
      { done: -1 },
      /done must be a whole number from 0 to 9007199254740991, not -1; total is missing/,
    ],
    [
      '/progress',
      { done: 0.5, total: 2 },
      /done must be a whole number from 0 to 9007199254740991, not 0.5/,
    ],
    ['/progress', { done: 1, total: 2, of: 3 }, /there is no "of"/],
    ['/heartbeat', { at: 1 }, /there is no "at"/],
    ['/finish', { error: 'x' }, /there is no "error"/],
    ['/finish', 1, /but is 1/],
    ['/fail', {}, /error is missing: it must be text/],
    ['/fail', { error: 'x', retry: 'yes' }, /retry must be true or false, not "yes"/],
  ]
  for (const [path, body, told] of wrong) {
    assertRejected(await command.post(path, body), 400, 'BAD_BODY', told)
  }
  for (const key of ['__proto__', 'constructor', 'role']) {
    const raw = `{"page":1,"${key}":{"x":1}}`
    assertRejected(
      await command.post('/checkpoint', undefined, { raw }),
      400,
      'BAD_BODY',
      /there is/,
    )
  }
  const huge = await command.post('/progress', undefined, { raw: '{"done":1e999,"total":1}' })
  assertRejected(huge, 400, 'BAD_BODY', /done must be a whole number/)
  const run = await ctx.run(command.handle.id)
  assert.deepEqual([run.counts.pages, run.status, run.progress], [0, 'running', null])
})

test('free JSON is kept as it came, whatever its keys', async () => {
  await using ctx = await RunApiTestContext.create(sqliteEngine)
  const command = await ctx.begin()
  const raw =
    '{"page":1,"items":[{"key":"a","data":{"__proto__":{"x":1}}}],"cursor":{"__proto__":1}}'

  assert.deepEqual((await command.post('/checkpoint', undefined, { raw })).status, 200)

  const [item] = await itemsOf(ctx.store)
  assert.equal(JSON.stringify(item?.data), '{"__proto__":{"x":1}}')
  assert.equal(JSON.stringify((await command.get()).body.cursor), '{"__proto__":1}')
  assert.equal(({} as { x?: number }).x, undefined)
})
