import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isLong } from '../../src/testing/long-tests.ts'
import { CRAWLEE_STORE } from '../../src/features/crawlee/store/store.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ProcessTestContext, waitFor, type Program } from '../processes/harness.ts'
import { startSite, type Site } from './site.ts'

const CRAWLER = fileURLToPath(new URL('./crawler.ts', import.meta.url))

/** Under a second on a quiet machine. Crawlee's own storage waits for minutes until the locks of the dead have run out. */
const IDLE_MAX_MS = 60_000

function crawl(ctx: ProcessTestContext, site: Site, env: NodeJS.ProcessEnv = {}): Program {
  return ctx.start([CRAWLER], { env: { SITE: site.url, ...env } })
}

async function fetched(site: Site, program: Program, count: number): Promise<void> {
  const own = (): number => site.fetches.filter(({ pid }) => pid === program.pid).length
  await waitFor(`${count} fetches of\n${program.output}`, () => own() >= count)
}

describe("faults that Crawlee's own storage does not survive", { concurrency: 2 }, () => {
  test('a crawl that is killed and stopped goes on at once each time, and ends with each item once', async (t) => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using site = await startSite(isLong ? 80 : 45, () => 50)
    const killed = crawl(ctx, site)
    await fetched(site, killed, 12)
    killed.signal('SIGKILL')
    await killed.waitForExit()

    const stopped = crawl(ctx, site)
    await fetched(site, stopped, 8)
    const [ready] = ctx.marks('ready').filter(({ pid }) => pid === stopped.pid)
    const idleMs = site.fetches.find(({ pid }) => pid === stopped.pid)!.at - ready!.at
    t.diagnostic(`fetched again ${idleMs} ms after the restart`)
    assert.ok(idleMs < IDLE_MAX_MS, `${idleMs} ms`)
    assert.match(stopped.output, /run \w{8} of crawlee\/default continues: \d+ requests are left/)
    stopped.signal('SIGTERM')
    assert.equal(await stopped.waitForExit(), 75, stopped.output)
    assert.match(stopped.output, /stopped by SIGTERM: \d+ requests of default are left/)
    const { counts, status } = await ctx.run('crawlee/default')
    assert.deepEqual([status, counts.targets.in_progress], ['interrupted', 0])

    if (isLong) {
      const interrupted = crawl(ctx, site)
      await fetched(site, interrupted, 8)
      interrupted.signalGroup('SIGINT')
      assert.equal(await interrupted.waitForExit(), 75, interrupted.output)
    }

    const last = crawl(ctx, site)
    assert.equal(await last.waitForExit(), 0, last.output)
    const [store, run] = [await ctx.store(), await ctx.run('crawlee/default')]
    assert.deepEqual([run.status, run.counts.targets.done], ['succeeded', site.pages.length])
    const storages = await store.extend(CRAWLEE_STORE)
    const dataset = await storages.storage('dataset', 'default')
    const { items } = await storages.entries(dataset!.id, { offset: 0, limit: 1_000, desc: false })
    const urls = items.map((data) => (JSON.parse(data) as { url: string }).url)
    assert.deepEqual(urls.toSorted(), [...site.pages, ...site.pages].sort())
    const { items: targets } = await store.targets(run.id, { limit: 1_000 })
    const crashes = targets.reduce((sum, { attempts }) => sum + attempts - 1, 0)
    assert.ok(crashes <= 12, `only what the killed process had was begun again: ${crashes}`)
  })

  test('all requests are in the queue when addRequests() resolves, however many', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using site = await startSite(1)
    const program = crawl(ctx, site, { ADD: '3000', CONCURRENCY: '1' })
    await ctx.waitForMarks('added')
    program.signal('SIGKILL')
    await program.waitForExit()

    const { counts } = await ctx.run('crawlee/default')
    const { planned, in_progress, done, failed } = counts.targets
    assert.equal(planned + in_progress + done + failed, 3_001)
  })

  test('a page that takes its process down is tried alone, and parked after three times: all others are handled', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using site = await startSite(7, () => 20)
    const env = { FATAL: site.pages[2]!, CONCURRENCY: '3' }
    const ends: (number | string)[] = []
    while (ends.at(-1) !== 0 && ends.length < 8)
      ends.push(await crawl(ctx, site, env).waitForExit())

    const times = ctx.marks('fatal').length
    assert.deepEqual(ends, [...Array.from({ length: times }, () => 'SIGKILL'), 0])
    assert.ok(times >= 3 && times <= 4, `the first time others are under suspicion too: ${times}`)
    const [store, { id, counts }] = [await ctx.store(), await ctx.run('crawlee/default')]
    const { items: targets } = await store.targets(id, { limit: 10 })
    const parked = targets.filter(({ status }) => status === 'parked').map(({ key }) => key)
    assert.deepEqual([parked, counts.targets.done], [[site.pages[2]], 6])
  })

  test('a second signal ends a crawler at once whose page hangs', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using site = await startSite(1, () => new Promise(() => {}))
    const program = crawl(ctx, site)
    await fetched(site, program, 1)
    program.signal('SIGTERM')
    await program.waitForOutput('finishing the pages in progress')
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 75)
    assert.match(program.output, /SIGTERM again: ending now/)
  })

  test('the example has each product once in the end, also when it is killed in the middle', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const example = fileURLToPath(new URL('../../examples/crawlee/crawl.ts', import.meta.url))
    const env = { SHOP_PORT: String(20_000 + (process.pid % 20_000)) }
    const first = ctx.start([example], { env })
    await first.waitForOutput('handled /aisle/9')
    first.signal('SIGKILL')
    assert.equal(await first.waitForExit(), 'SIGKILL')
    const last = ctx.start([example], { env })
    assert.equal(await last.waitForExit(), 0, last.output)
    assert.match(last.output, /continues: \d+ requests are left/)
    assert.match(last.output, /^120 products$/m)
  })
})
