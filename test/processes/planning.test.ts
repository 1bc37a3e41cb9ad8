import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SOME_ENGINES, Stage } from './harness.ts'

const TARGETS = 200

for (const engine of SOME_ENGINES) {
  test(`kill -9 in the middle of planning: the next worker asks again, no target is missing or doubled, ${engine.name}`, async () => {
    await using stage = await Stage.set(engine)
    const crawl = stage.crawl(`
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
    const first = stage.unstuck('work', crawl, '--drain')
    await stage.marked('half')
    first.signal('SIGKILL')
    await first.end()
    assert.equal((await stage.run()).plannedAt, null)

    assert.equal(await stage.unstuck('work', crawl, '--drain').end(), 0)
    const run = await stage.run()
    assert.deepEqual([run.status, run.counts.targets.done], ['succeeded', TARGETS])
    const expected = Array.from({ length: TARGETS }, (_, n) => `target-${n + 1}/1`).sort()
    assert.deepEqual(await stage.ledger(), expected)
    assert.equal(stage.marks('asked').length, 2)
  })
}

describe('planning streams', { concurrency: 2 }, () => {
  test('targets are worked on while others still stream in', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      async *targets() {
        yield { key: 'a' }
        yield { key: 'b' }
        await opened('gate')
        yield { key: 'c' }
      },
      async page({ target }) { mark('page', target.key); return { next: null } },
    `)
    const program = stage.unstuck('work', crawl, '--drain')
    await stage.marked('page', 2)
    assert.equal((await stage.run()).status, 'running')
    stage.open('gate')
    assert.equal(await program.end(), 0)
    assert.deepEqual(
      stage.marks('page').map(({ key }) => key),
      ['a', 'b', 'c'],
    )
  })

  test('a worker that dies while it plans is replaced by one that is at work already', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      async *targets() {
        mark('asked')
        yield { key: 'a' }
        if (marked('asked') === 1) await opened('never')
        yield { key: 'b' }
      },
      async page({ target, page }) { return { next: null, inTransaction: ledger(target.key, page) } },
    `)
    const planner = stage.unstuck('work', crawl, '--drain')
    await stage.marked('asked')
    const other = stage.unstuck('work', crawl, '--drain')
    await other.says('working on stage')
    planner.signal('SIGKILL')
    assert.equal(await other.end(), 0)
    assert.deepEqual(await stage.ledger(), ['a/1', 'b/1'])
  })

  test('300,000 targets are queued in a heap that could not hold them', async (t) => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() {
        for (let n = 1; n <= 300_000; n++) {
          yield { key: 'target-' + n, group: 'g' + (n % 50), url: 'https://example.com/list?n=' + n }
        }
        mark('peak', '', process.resourceUsage().maxRSS / 1_024)
      },
      async page() { return { next: null } },
    `)
    const program = stage.unstuckWithHeap(32, 'enqueue', crawl)
    assert.equal(await program.end(), 0, program.output)
    assert.match(program.output, /queued with 300000 targets/)
    const [peak] = stage.marks('peak')
    t.diagnostic(`${Math.round(peak!.page)} MB at most`)
    assert.ok(peak!.page < 256, `${peak!.page} MB`)
    const run = await stage.run()
    assert.deepEqual([run.status, run.counts.targets.planned], ['queued', 300_000])
    assert.notEqual(run.plannedAt, null)
  })
})
