import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SOME_ENGINES, ProcessTestContext } from './harness.ts'

const HEALTHY_KEYS = ['1', '2', '3', '4', '5', '6', '7', '8', '9']

for (const engine of SOME_ENGINES) {
  describe(`P11 crashes are counted apart from errors, ${engine.name}`, () => {
    test('one crashing target among nine slow healthy ones: only it is parked, exit 3', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(`
        *targets() { for (const key of ['poison', ...${JSON.stringify(HEALTHY_KEYS)}]) yield { key } },
        async page({ target, page }) {
          await sleep(100)
          if (target.key === 'poison') process.kill(process.pid, 'SIGKILL')
          await sleep(200)
          return { items: [{ key: target.key, data: page }], next: null, inTransaction: ledger(target.key, page) }
        },
        concurrency: 10,
      `)
      const program = ctx.unstuck('work', crawl, '--workers', '2', '--drain')

      assert.equal(await program.waitForExit(), 3)
      assert.match(
        program.output,
        // Also what the killed worker processes saved.
        /^Run \w{8} of \S+, failed: 9 pages by all its workers; items: 9 new, 0 updated, 0 unchanged; 0 errors; took /m,
      )
      assert.match(
        program.output,
        /0 failed, 1 parked and 0 stuck targets. List them with: unstuck show/,
      )
      const targets = await ctx.targets()
      const poison = targets.get('poison')!
      assert.equal(poison.status, 'parked')
      assert.match(poison.lastError!, /took down 3 workers that held nothing else/)
      assert.deepEqual(
        HEALTHY_KEYS.filter((key) => targets.get(key)!.status !== 'done'),
        [],
      )
      assert.deepEqual(
        await ctx.ledger(),
        HEALTHY_KEYS.map((key) => `${key}/1`),
      )
      await ctx.assertNoProcessesLeft()
    })
  })
}

describe('P11 not counted as a crash', { concurrency: 2 }, () => {
  test('a handler that always throws: failed after its retries, no crash, not parked', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'bad' }; yield { key: 'good' } },
      async page({ target }) {
        mark('try', target.key)
        if (target.key === 'bad') throw new Error('no such page')
        return { next: null }
      },
      policy: { retries: 2, backoff: '10ms' },
    `)
    const program = ctx.unstuck('work', crawl, '--drain', '--json')
    assert.equal(await program.waitForExit(), 3)
    const [result] = /^{\n[^]*?^}$/m.exec(program.output)!
    assert.partialDeepStrictEqual(JSON.parse(result), { stopped: null, pages: 1, errors: 3 })
    const bad = await ctx.target('bad')
    assert.deepEqual(
      [bad.status, bad.errors, bad.crashes, bad.crashesAlone, bad.lastError],
      ['failed', 3, 0, 0, 'no such page'],
    )
    assert.equal(ctx.marks('try').filter(({ key }) => key === 'bad').length, 3)
    assert.equal((await ctx.target('good')).status, 'done')
  })

  test('clean stops, however many, cost nothing', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' } },
      async page({ signal }) {
        mark('page')
        await new Promise((resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
      policy: { maxCrashes: 2 },
    `)
    for (let n = 1; n <= 3; n++) {
      const program = ctx.unstuck('work', crawl, '--stop-deadline', '3s')
      await ctx.waitForMarks('page', n)
      program.signal('SIGTERM')
      await program.waitForExit()
      const target = await ctx.target('a')
      assert.deepEqual(
        [target.status, target.attempts, target.errors, target.crashes, target.crashesAlone],
        ['planned', 0, 0, 0, 0],
      )
    }
  })

  test('a crawl that saves a page before each crash is never parked', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' } },
      async page({ target, page }) {
        if (page > 1 && marked('died at ' + page) === 0) {
          mark('died at ' + page)
          process.kill(process.pid, 'SIGKILL')
        }
        return { next: page < 5 ? 'next' : null, inTransaction: ledger(target.key, page) }
      },
      policy: { maxCrashes: 2 },
    `)
    for (let n = 1; n <= 4; n++) {
      assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 'SIGKILL')
    }
    assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 0)
    const target = await ctx.target('a')
    assert.deepEqual(
      [target.status, target.page, target.attempts, target.crashes],
      ['done', 5, 5, 0],
    )
    assert.deepEqual(await ctx.ledger(), ['a/1', 'a/2', 'a/3', 'a/4', 'a/5'])
  })
})
