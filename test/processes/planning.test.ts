import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SOME_ENGINES, ProcessTestContext } from './harness.ts'

const TARGETS = 200

for (const engine of SOME_ENGINES) {
  test(`kill -9 in the middle of planning: the next worker plans again, no target is missing or duplicated, ${engine.name}`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const crawl = ctx.crawl(`
      async *targets() {
        mark('asked')
        for (let n = 1; n <= ${TARGETS}; n++) {
          yield { key: 'target-' + n }
          if (n === ${TARGETS / 2} && marked('asked') === 1) { mark('half'); await opened('never') }
          if (n % 10 === 0) await sleep(20)
        }
      },
      async page({ target, page }) { return { next: null, inTransaction: ledger(target.key, page) } },
      concurrency: 10,
    `)
    const first = ctx.unstuck('work', crawl, '--drain')
    await ctx.waitForMarks('half')
    first.signal('SIGKILL')
    await first.waitForExit()
    assert.equal((await ctx.run()).plannedAt, null)

    assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 0)
    const run = await ctx.run()
    assert.deepEqual([run.status, run.counts.targets.done], ['succeeded', TARGETS])
    const expected = Array.from({ length: TARGETS }, (_, n) => `target-${n + 1}/1`).sort()
    assert.deepEqual(await ctx.ledger(), expected)
    assert.equal(ctx.marks('asked').length, 2)
  })
}

describe('planning streams', { concurrency: 2 }, () => {
  test('targets are worked on while others still stream in', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      async *targets() {
        yield { key: 'a' }
        yield { key: 'b' }
        await opened('gate')
        yield { key: 'c' }
      },
      async page({ target }) { mark('page', target.key); return { next: null } },
    `)
    const program = ctx.unstuck('work', crawl, '--drain')
    await ctx.waitForMarks('page', 2)
    assert.equal((await ctx.run()).status, 'running')
    ctx.openGate('gate')
    assert.equal(await program.waitForExit(), 0)
    assert.deepEqual(
      ctx.marks('page').map(({ key }) => key),
      ['a', 'b', 'c'],
    )
  })

  test('a worker that dies while it plans is replaced by one that is at work already', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      async *targets() {
        mark('asked')
        yield { key: 'a' }
        if (marked('asked') === 1) await opened('never')
        yield { key: 'b' }
      },
      async page({ target, page }) { return { next: null, inTransaction: ledger(target.key, page) } },
    `)
    const planner = ctx.unstuck('work', crawl, '--drain')
    await ctx.waitForMarks('asked')
    const other = ctx.unstuck('work', crawl, '--drain')
    await other.waitForOutput('working on stage')
    planner.signal('SIGKILL')
    assert.equal(await other.waitForExit(), 0)
    assert.deepEqual(await ctx.ledger(), ['a/1', 'b/1'])
  })

  test('60 MB of targets are queued in a heap of 32 MB', async (t) => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() {
        for (let n = 1; n <= 60_000; n++) {
          const query = Buffer.alloc(1_000, 'q').toString('latin1')
          yield { key: 'target-' + n, group: 'g' + (n % 50), url: 'https://example.com/' + n + '?q=' + query }
        }
        mark('peak', '', process.resourceUsage().maxRSS / 1_024)
      },
      async page() { return { next: null } },
    `)
    const program = ctx.unstuckWithHeap(32, 'enqueue', crawl)
    assert.equal(await program.waitForExit(), 0, program.output)
    assert.match(program.output, /queued with 60000 targets/)
    const [peak] = ctx.marks('peak')
    t.diagnostic(`${Math.round(peak!.page)} MB at most`)
    assert.ok(peak!.page < 256, `${peak!.page} MB`)
    const run = await ctx.run()
    assert.deepEqual([run.status, run.counts.targets.planned], ['queued', 60_000])
    assert.notEqual(run.plannedAt, null)
  })
})
