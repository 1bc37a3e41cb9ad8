import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as v from 'valibot'
import { itemsOf } from '../../testing/fixtures.ts'
import { NonRetryableError } from '../model/page-errors.ts'
import { NO_OVERRIDES } from '../model/policy-of.ts'
import type { SavedItem } from '../../features/items/store/store.ts'
import type { Target } from '../model/target.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import type { CrawlDefinition } from './crawl.ts'
import { defineCrawl, type Crawl } from '../../contracts/define-crawl.ts'
import { CrawlWorker } from './worker.ts'

type Result = { readonly items: SavedItem[]; readonly targets: Target[]; readonly log: string[] }

/** Runs a crawl to its end in this process. */
async function crawlToEnd(
  crawl: Crawl<unknown, never, never>,
  engine: typeof sqliteEngine = sqliteEngine,
): Promise<Result> {
  await using database = await engine.fresh()
  const log: string[] = []
  const worker = new CrawlWorker(crawl as CrawlDefinition, {
    db: database.url,
    overrides: NO_OVERRIDES,
    start: true,
    drain: true,
    emit: () => {},
    log: (line) => log.push(line),
  })
  const { error } = await worker.run()
  assert.equal(error, null)
  const store = await database.open()
  const [run] = (await store.runs({ limit: 1 })).items
  const { items: targets } = await store.targets(run!.id, { limit: 100 })
  const items = await itemsOf(store, crawl.source)
  return { items, targets, log }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a crawl by offset gets its target's data, its cursor and its resources, ${engine.name}`, async () => {
    const released: string[] = []
    const crawl = defineCrawl({
      source: 'offers',
      initialCursor: { offset: 0 },
      schema: { cursor: v.object({ offset: v.number() }), target: v.object({ city: v.string() }) },
      *targets() {
        for (const city of ['austin', 'miami']) yield { key: city, data: { city } }
      },
      setup: () => ({ [Symbol.dispose]: () => void released.push('disposed'), name: 'browser' }),
      async page({ target, cursor, resources, page, attempt }) {
        assert.deepEqual([resources.name, attempt, cursor.offset], ['browser', 1, (page - 1) * 2])
        const key = `${target.data.city}/${cursor.offset}`
        const items = [{ key, data: { city: target.data.city } }]
        return { items, cursor: { offset: cursor.offset + 2 }, done: page === 3 }
      },
      teardown: () => released.push('torn down'),
    })
    const { items, targets } = await crawlToEnd(crawl as never, engine)
    assert.deepEqual(
      items.map(({ key }) => key).toSorted(),
      ['austin', 'miami'].flatMap((city) => [0, 2, 4].map((offset) => `${city}/${offset}`)),
    )
    assert.deepEqual(
      [targets.map(({ page }) => page), released],
      [
        [3, 3],
        ['torn down', 'disposed'],
      ],
    )
  })
}

test('a list of addresses is a list of targets, and relative addresses are resolved', async () => {
  const seen: string[] = []
  const crawl = defineCrawl({
    source: 'pages',
    targets: ['https://shop.example/a/', new URL('https://shop.example/b?utm_source=x')],
    page: ({ url }) => {
      seen.push(url)
      const isLast = url.endsWith('/2') || url.includes('/b')
      return { items: [{ url: '/item', data: { url } }], next: isLast ? null : '2' }
    },
  })
  const { items, targets } = await crawlToEnd(crawl as never)
  assert.deepEqual(targets.map(({ key }) => key).toSorted(), [
    'https://shop.example/a',
    'https://shop.example/b',
  ])
  assert.deepEqual(
    items.map(({ key }) => key),
    ['https://shop.example/item'],
  )
  assert.deepEqual(seen.toSorted(), [
    'https://shop.example/a/',
    'https://shop.example/a/2',
    'https://shop.example/b?utm_source=x',
  ])
})

test('data is saved as the schema converts it; a page that does not fit is retried', async () => {
  let calls = 0
  const crawl = defineCrawl({
    source: 'shop',
    schema: { item: v.object({ price: v.pipe(v.string(), v.transform(Number), v.number()) }) },
    targets: [{ key: 'one' }],
    policy: { backoff: '1ms', backoffMax: '1ms' },
    page: ({ attempt }) => {
      assert.equal(attempt, ++calls)
      return {
        items: [{ key: 'x', data: { price: calls === 1 ? (12 as never) : '12' } }],
        done: true,
      }
    },
  })
  const { items } = await crawlToEnd(crawl as never)
  assert.deepEqual(
    items.map(({ data, version }) => [data, version]),
    [[{ price: 12 }, 1]],
  )
  assert.equal(calls, 2)
})

test('onError decides: fail, park, retry after a time; NonRetryableError fails at once', async () => {
  const attempts: Record<string, number> = {}
  const crawl = defineCrawl({
    source: 'errors',
    targets: ['fail', 'park', 'retry', 'none', 'throws'].map((key) => ({ key })),
    policy: { retries: 0 },
    page({ target, attempt }) {
      attempts[target.key] = attempt
      if (target.key === 'none') throw new NonRetryableError('gone')
      if (target.key !== 'retry' || attempt < 3) throw new Error('no')
      return { done: true }
    },
    onError({ context: { target } }) {
      if (target.key === 'throws') throw new Error('mistake in onError')
      if (target.key === 'retry') return { retryAfter: '1ms' }
      return target.key === 'park' || target.key === 'fail' ? target.key : undefined
    },
  })
  const { targets, log } = await crawlToEnd(crawl as never)
  const statuses = Object.fromEntries(targets.map(({ key, status }) => [key, status]))
  assert.deepEqual(statuses, {
    fail: 'failed',
    park: 'parked',
    retry: 'done',
    none: 'failed',
    throws: 'failed',
  })
  assert.equal(attempts['retry'], 3)
  assert.match(log.join('\n'), /onError threw: mistake in onError/)
})

test('a page without address throws when its address is read, and returns either next or done', async () => {
  const errors: Record<string, (context: { readonly url: string }) => unknown> = {
    url: ({ url }) => ({ next: url }),
    neither: () => ({}),
    both: () => ({ next: null, done: true }),
  }
  const crawl = defineCrawl({
    source: 'x',
    targets: Object.keys(errors).map((key) => ({ key })),
    policy: { retries: 0 },
    page: (context) => errors[context.target.key]!(context) as { next: null },
  })
  const { targets } = await crawlToEnd(crawl as never)
  const messages = Object.fromEntries(targets.map(({ key, lastError }) => [key, lastError]))
  assert.match(messages['url']!, /Target url has no address/)
  assert.match(messages['neither']!, /neither next nor done/)
  assert.match(messages['both']!, /both next and done/)
})
