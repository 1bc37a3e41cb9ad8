import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isLong } from '../../src/testing/long-tests.ts'
import { CRAWLEE_STORE } from '../../src/features/crawlee/store/store.ts'
import { assertCountersConsistent } from '../../src/testing/assert-counters.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import { makeRandom } from '../../src/features/chaos/random.ts'
import { SOME_ENGINES, ProcessTestContext, waitFor, type Program } from '../processes/harness.ts'
import { startSite } from './site.ts'

const CRAWLER = fileURLToPath(new URL('./crawler.ts', import.meta.url))

const PAGES = isLong ? 300 : 150
const PROCESSES = 3
const KILLS = isLong ? 12 : 2
/** Slow enough for all kills to come before the last page. */
const LATENCY_MS = 100
const CONCURRENCY = 5
/** How long a start takes on a busy machine is not what is tried here: a kill comes after so many fetches. */
const FETCHES_BETWEEN_KILLS = [5, Math.floor(PAGES / (KILLS + 3))] as const

async function crawlWithKills(engine: Engine, seed: number): Promise<string> {
  const random = makeRandom(seed)
  await using ctx = await ProcessTestContext.create(engine)
  await using site = await startSite(PAGES, () => LATENCY_MS)
  // Who starts when the others are done finds nothing to do, instead of beginning a new crawl.
  const env = { SITE: site.url, CONCURRENCY: String(CONCURRENCY), CRAWLEE_PURGE_ON_START: '0' }
  const start = (): Program => ctx.start([CRAWLER], { env })
  const programs = Array.from({ length: PROCESSES }, start)

  let kills = 0
  for (; kills < KILLS; kills++) {
    const enough = site.fetches.length + random.between(...FETCHES_BETWEEN_KILLS)
    const hasFetched = (program: Program): boolean =>
      site.fetches.some(({ pid }) => pid === program.pid)
    const atWork = (): Program[] => programs.filter((one) => one.isAlive && hasFetched(one))
    const isOver = (): boolean => new Set(site.fetches.map(({ page }) => page)).size === PAGES
    await waitFor(
      'enough fetches',
      () => isOver() || (site.fetches.length >= enough && atWork().length > 0),
    )
    if (isOver()) break
    random.pick(atWork()).signal('SIGKILL')
    programs.push(start())
  }
  assert.equal(kills, KILLS, 'each of them while pages were left')
  for (const program of programs) {
    const code = await program.waitForExit()
    assert.ok(code === 0 || code === 'SIGKILL', `${code}\n${program.output}`)
  }

  const [store, run] = [await ctx.store(), await ctx.run('crawlee/default')]
  assert.deepEqual([run.status, run.counts.targets.done], ['succeeded', PAGES])
  await assertCountersConsistent(store, run.id)
  const storages = await store.extend(CRAWLEE_STORE)
  const dataset = await storages.storage('dataset', 'default')
  const { items } = await storages.entries(dataset!.id, { offset: 0, limit: 10_000, desc: false })
  const pushed = items.map((data) => JSON.parse(data) as { url: string; title?: string })
  const each = (of: typeof pushed): string[] => of.map(({ url }) => url).toSorted()
  const expected = [...site.pages].sort()
  assert.deepEqual(each(pushed.filter(({ title }) => title !== undefined)), expected)
  assert.deepEqual(each(pushed.filter(({ title }) => title === undefined)), expected)
  assert.equal(run.counts.itemsNew, 2 * PAGES)
  const fetched = new Set(site.fetches.map(({ page }) => page))
  assert.equal(fetched.size, PAGES)
  await ctx.assertNoProcessesLeft()
  const twice = site.fetches.length - PAGES
  assert.ok(twice <= kills * CONCURRENCY, `only what was in hand is fetched again, not ${twice}`)
  return `${kills} kills: ${PAGES} pages, ${items.length} items once each, ${twice} fetches again`
}

describe('a crawl of Crawlee in three processes that are killed -9 again and again', () => {
  for (const engine of SOME_ENGINES) {
    test(`handles every page and saves each item exactly once, on ${engine.name}`, async (t) => {
      const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31))
      t.diagnostic(`SEED=${seed}`)
      t.diagnostic(await crawlWithKills(engine, seed))
    })
  }
})
