import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { isLong } from '../../src/testing/long-tests.ts'
import { assertCountersConsistent } from '../../src/testing/assert-counters.ts'
import type { Engine } from '../../src/testing/test-database.ts'
import { makeRandom } from '../../src/features/chaos/random.ts'
import {
  CLI,
  ENGINES,
  SOME_ENGINES,
  kill,
  ProcessTestContext,
  waitFor,
  type Program,
} from '../processes/harness.ts'
import { PACKAGE, PYTHON_ENV } from './python.ts'
import { startScrapySite, type ScrapySite } from './scrapy-site.ts'

/** Scrapy under the real command: a crawl that is killed again and again is equal to one that is not. */

const IMPORTS = 'import scrapy, sys; print(sys.executable)'
const PYTHON = ['python3', '/usr/bin/python3']
  .map((name) => spawnSync(name, ['-c', IMPORTS], { encoding: 'utf8' }))
  .find(({ status }) => status === 0)
  ?.stdout.trim()
const skip = PYTHON
  ? false
  : 'no python3 on this machine has Scrapy; to install it: apt-get install python3-scrapy, or pip install scrapy'

const LISTS = isLong ? 30 : 12
const KILLS = isLong ? 20 : 4
const WORKERS = 2
const CLAIMS = 6

const ENV = { ...PYTHON_ENV, PYTHONWARNINGS: 'ignore' }
const SETTINGS = [
  'SCHEDULER=unstuck_client.scrapy.Scheduler',
  'SPIDER_MIDDLEWARES={"unstuck_client.scrapy.SpiderMiddleware": 0}',
  'REQUEST_FINGERPRINTER_IMPLEMENTATION=2.7',
]
const programPath = (spider: string): string =>
  fileURLToPath(new URL(`programs/${spider}_spider.py`, import.meta.url))

/** `scrapy runspider` with these settings. */
function runSpider(path: string, settings: readonly string[], ...args: string[]): string[] {
  const flags = settings.flatMap((one) => ['-s', one])
  return [PYTHON!, '-m', 'scrapy', 'runspider', ...flags, path, ...args]
}

function work(ctx: ProcessTestContext, command: string[], env: NodeJS.ProcessEnv = {}): Program {
  const options = ['--source', 'stage', '--workers', String(WORKERS), '--drain']
  return ctx.start([CLI, 'work', '--exec', '--targets', ...options, '--', ...command], {
    // Scrapy warns of its own future.
    env: { ...ENV, ...env },
  })
}

function crawl(
  ctx: ProcessTestContext,
  site: ScrapySite,
  spider = 'shop',
  claims = CLAIMS,
): Program {
  const env = { SITE: site.url, CLAIMS: String(claims) }
  return work(ctx, runSpider(programPath(spider), SETTINGS), env)
}

async function createContext(engine: Engine): Promise<ProcessTestContext> {
  const ctx = await ProcessTestContext.create(engine)
  ctx.writeConfig({ stage: { maxCrashes: 50, retries: 3, backoff: '50ms' } })
  return ctx
}

/** The items of the source by key. */
async function itemsOf(ctx: ProcessTestContext): Promise<Map<string, unknown>> {
  const program = ctx.unstuck('items', 'stage')
  assert.equal(await program.waitForExit(), 0, program.output)
  const items = program.output
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { key: string; data: unknown })
  const byKey = new Map(items.map(({ key, data }) => [key, data]))
  assert.equal(byKey.size, items.length, 'every item once')
  return byKey
}

/** What the callbacks counted in `spider.state`, over all processes. */
function timesCounted(ctx: ProcessTestContext): number {
  const [mark] = ctx.marks('output') as unknown as { readonly folder: string }[]
  return globSync(join(mark!.folder, 'spider-state-*.json'))
    .map((path) => JSON.parse(readFileSync(path, 'utf8')) as { times?: number })
    .reduce((sum, { times = 0 }) => sum + times, 0)
}

function countByPath(site: ScrapySite): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { path } of site.fetches) counts.set(path, (counts.get(path) ?? 0) + 1)
  return counts
}

/** Crawls without a kill, and returns what is to be there after any other crawl. */
async function crawlUndisturbed(engine: Engine, site: ScrapySite): Promise<Map<string, unknown>> {
  await using ctx = await createContext(engine)
  const program = crawl(ctx, site)
  assert.equal(await program.waitForExit(), 0, program.output)
  assert.deepEqual(sorted(countByPath(site)), sorted(site.expected))
  const items = await itemsOf(ctx)
  const shape = [...items.values()] as Record<string, string>[]
  const count = (field: string): number => shape.filter((data) => field in data).length
  assert.deepEqual(
    [count('title'), count('part'), count('time'), count('status')],
    // One book is dropped; of the others: the page that is gone.
    [site.expected.size - 2 * LISTS - 2 - 1, 2 * LISTS, LISTS, 1],
  )
  assert.equal(timesCounted(ctx), LISTS)
  site.forget()
  return items
}

function sorted<T>(map: ReadonlyMap<string, T>): [string, T][] {
  return [...map].sort(([a], [b]) => (a < b ? -1 : 1))
}

for (const engine of SOME_ENGINES) {
  describe(`Scrapy on ${engine.name}`, { skip }, () => {
    test(`${KILLS} kills of its processes and one of Unstuck: every page, every item once, as without a kill`, async (t) => {
      const seed = Number(process.env['SEED'] ?? randomInt(2 ** 31))
      t.diagnostic(`SEED=${seed}`)
      const random = makeRandom(seed)
      await using site = await startScrapySite(LISTS)
      const undisturbed = await crawlUndisturbed(engine, site)
      const total = [...site.expected.values()].reduce((sum, one) => sum + one)

      await using ctx = await createContext(engine)
      let program = crawl(ctx, site)
      const ofUnstuck = random.between(0, KILLS - 1)
      let killed = 0
      for (let n = 0; n < KILLS; n++) {
        const enough = site.fetches.length + random.between(2, Math.floor(total / (KILLS + 2)))
        const dead = new Set(site.fetches.map(({ pid }) => pid).filter((pid) => !isAlive(pid)))
        const atWork = (): number | undefined =>
          site.fetches.findLast(({ pid }) => !dead.has(pid))?.pid
        await waitFor(
          () => `more fetches in:\n${program.output}`,
          () => site.fetches.length >= enough && atWork(),
        )
        kill(atWork()!, 'SIGKILL')
        killed++
        if (n !== ofUnstuck) continue
        program.signal('SIGKILL')
        await program.waitForExit()
        program = crawl(ctx, site)
        killed += WORKERS
      }
      assert.equal(await program.waitForExit(), 0, program.output)

      const items = await itemsOf(ctx)
      assert.deepEqual(sorted(items), sorted(undisturbed))
      const run = await ctx.run()
      assert.equal(run.status, 'succeeded')
      assert.equal(run.counts.itemsNew, undisturbed.size, 'each item was saved once')
      assert.deepEqual([run.counts.itemsUpdated, run.counts.itemsUnchanged], [0, 0])
      await assertCountersConsistent(await ctx.store(), run.id)
      const fetched = countByPath(site)
      assert.deepEqual([...fetched.keys()].sort(), [...site.expected.keys()].sort())
      const again = site.fetches.length - total
      assert.ok(again <= killed * CLAIMS, `${again} fetches again after ${killed} kills`)
      const counted = timesCounted(ctx)
      assert.ok(counted >= LISTS && counted <= LISTS + killed * CLAIMS, `counted ${counted}`)
      t.diagnostic(`${killed} processes killed, ${items.size} items, ${again} fetches again`)
      await ctx.assertNoProcessesLeft()
    })

    test('requests that fail, in every way, and what requests carry', async () => {
      await using site = await startScrapySite(1)
      await using ctx = await ProcessTestContext.create(engine)
      ctx.writeConfig({ stage: { retries: 1, backoff: '10ms' } })
      const program = crawl(ctx, site, 'odd')
      assert.equal(await program.waitForExit(), 3, program.output)
      const targets = [...(await ctx.targets()).values()]
      const count = (status: string): number =>
        targets.filter((one) => one.status === status).length
      const refused = /ConnectionRefusedError: /
      const errors = [
        /^KeyError: 'price'$/,
        /^KeyError: 'stock'$/,
        /^in a pipeline: RuntimeError: no connection$/,
        /^The page cannot be saved: Out of range float values are not JSON compliant/,
        /^cb_kwargs\.kind cannot be stored: it is a lock\./,
        refused,
        /^HTTP 500 for /,
        refused,
      ]
      assert.deepEqual([count('done'), count('failed'), targets.length], [9, errors.length, 17])
      const failed = targets.filter(({ status }) => status === 'failed')
      for (const [n, error] of errors.entries()) assert.match(failed[n]!.lastError!, error)
      const data = [...(await itemsOf(ctx)).values()] as { n: unknown }[]
      assert.deepEqual(data.map(({ n }) => JSON.stringify(n)).sort(), [
        '"after"',
        '"again carries carries"',
        '"first"',
        '"handled ConnectionRefusedError"',
        '"second"',
        `["b'\\\\xff\\\\x00'","(1, {2})","three",["a","b"]]`,
      ])
      assert.equal((await ctx.run()).counts.skipped, 1)
    })

    test('SIGTERM: the callbacks in progress end, and all else is released', async () => {
      await using site = await startScrapySite(4)
      await using ctx = await createContext(engine)
      const inFlight = 2
      const program = crawl(ctx, site, 'slow', inFlight)
      await waitFor(
        () => `callbacks in:\n${program.output}`,
        () => ctx.marks('callback').length === inFlight * WORKERS,
      )
      program.signal('SIGTERM')
      await waitFor(
        () => `both told to stop in:\n${program.output}`,
        () => program.output.split('Closing spider (shutdown)').length === 1 + WORKERS,
      )
      ctx.openGate('go')
      assert.equal(await program.waitForExit(), 75, program.output)
      const targets = [...(await ctx.targets()).values()]
      const count = (status: string): number =>
        targets.filter((one) => one.status === status).length
      assert.deepEqual(
        [count('done'), count('planned')],
        [inFlight * WORKERS, 10 - inFlight * WORKERS],
      )
      assert.ok(targets.every(({ crashes }) => crashes === 0))
      assert.equal((await itemsOf(ctx)).size, inFlight * WORKERS)
      const again = crawl(ctx, site, 'slow')
      assert.equal(await again.waitForExit(), 0, again.output)
      assert.equal((await itemsOf(ctx)).size, 10)
      assert.equal(site.fetches.length, 10, 'nothing is fetched twice')
      assert.equal(ctx.marks('start').length, 1, 'the start requests are asked for once')
    })
  })
}

describe('Scrapy', { skip }, () => {
  const [sqlite] = ENGINES

  test('the example', async () => {
    await using site = await startScrapySite(3)
    await using ctx = await createContext(sqlite!)
    const path = fileURLToPath(new URL('../../examples/scrapy/books.py', import.meta.url))
    const program = work(ctx, runSpider(path, [], '-a', `start=${site.url}/list/1`))
    assert.equal(await program.waitForExit(), 0, program.output)
    const books = [...(await itemsOf(ctx)).values()] as { title: string; price: string }[]
    assert.equal(books.length, 24)
    assert.ok(books.some(({ title, price }) => title === 'Book 7' && price === '£7'))
  })

  test('requests are the same after they were stored', () => {
    const options = { cwd: PACKAGE, env: { ...process.env, ...ENV }, encoding: 'utf8' } as const
    const tests = ['-m', 'unittest', 'tests/scrapy_requests.py']
    const { stderr, status } = spawnSync(PYTHON!, tests, options)
    assert.equal(status, 0, stderr)
    assert.match(stderr, /^OK$/m)
  })

  test('without Unstuck it works as ever, and says so', async () => {
    await using site = await startScrapySite(1)
    await using ctx = ProcessTestContext.createWithoutDatabase()
    const [file, ...args] = runSpider(programPath('shop'), SETTINGS)
    const env = { ...process.env, ...ENV, SITE: site.url, CLAIMS: '4', STAGE: ctx.folder }
    const child = spawn(file!, [...args, '-o', 'items.json'], { cwd: ctx.folder, env })
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => (output += text))
    const [code] = (await once(child, 'close')) as [number]
    assert.equal(code, 0, output)
    assert.match(
      output,
      /This crawl is not under Unstuck: a crash loses it\. Start it with: unstuck/,
    )
    const items = JSON.parse(readFileSync(join(ctx.folder, 'items.json'), 'utf8')) as unknown[]
    assert.ok(items.length >= 8, output)
  })

  test('without its spider middleware it does not begin', async () => {
    await using site = await startScrapySite(1)
    await using ctx = await createContext(sqlite!)
    const settings = SETTINGS.filter((one) => !one.startsWith('SPIDER'))
    const env = { SITE: site.url, CLAIMS: '4' }
    const program = work(ctx, runSpider(programPath('shop'), settings), env)
    await program.waitForOutput('The spider middleware of Unstuck is missing. Add the setting')
    program.signal('SIGKILL')
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
