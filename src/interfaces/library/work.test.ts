import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineCrawl, open } from '../../index.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`work returns what was committed while it ran, ${engine.name}`, async () => {
    await using database = await engine.fresh()
    await using unstuck = await open({ db: database.url, config: false })
    let round = 0
    const crawl = defineCrawl({
      source: 'shop',
      targets: ['https://shop.example/a', 'https://shop.example/b'],
      policy: { backoff: '1ms' },
      async page({ url, attempt }) {
        if (url.endsWith('/b') && attempt === 1) throw new Error('busy')
        const items = [1, 2, 3].map((n) => ({ key: `${url}#${n}`, data: n === 1 ? round : n }))
        return { items, next: null }
      },
    })

    const { durationMs, ...first } = await unstuck.work(crawl, { drain: true })
    round++
    const { durationMs: _, ...second } = await unstuck.work(crawl, { drain: true })
    const third = await unstuck.work(crawl, { drain: true, start: false })

    const { items: runs } = await unstuck.runs({ source: 'shop' })
    assert.deepEqual(first, {
      stopped: null,
      runs: [runs[1]!.id],
      pages: 2,
      items: { new: 6, updated: 0, unchanged: 0 },
      errors: 1,
    })
    assert.ok(durationMs > 0)
    assert.deepEqual(second, {
      stopped: null,
      runs: [runs[0]!.id],
      pages: 2,
      items: { new: 0, updated: 2, unchanged: 4 },
      errors: 1,
    })
    assert.deepEqual([third.runs, third.pages, third.errors], [[], 0, 0])
  })
}

test('work that is stopped returns why, and what was saved until then of the run that it continued', async () => {
  await using database = await sqliteEngine.fresh()
  await using unstuck = await open({ db: database.url, config: false })
  const stop = new AbortController()
  const crawl = defineCrawl({
    source: 'shop',
    initialCursor: 0,
    targets: ['a', 'b', 'c'].map((key) => ({ key })),
    async page({ target, cursor }) {
      if (target.key === 'b' && cursor === 0) stop.abort(new Error('deploy'))
      return {
        items: [{ key: `${target.key}/${cursor}`, data: {} }],
        cursor: 1,
        done: cursor === 1,
      }
    },
  })

  const stopped = await unstuck.work(crawl, { drain: true, signal: stop.signal })
  const resumed = await unstuck.work(crawl, { drain: true })

  assert.deepEqual([stopped.stopped, stopped.pages, stopped.items.new], ['deploy', 3, 3])
  assert.deepEqual([resumed.stopped, resumed.pages, resumed.items.new], [null, 3, 3])
  assert.deepEqual(resumed.runs, stopped.runs)
})
