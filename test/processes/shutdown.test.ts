import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SOME_ENGINES, ProcessTestContext } from './harness.ts'

/** Two targets of three pages; a page ends when the test opens its gate. */
const GATED_CRAWL = `
  *targets() { yield { key: 'a' }; yield { key: 'b' } },
  async page({ target, page }) {
    mark('page', target.key, page)
    await opened('gate')
    return { items: [{ key: target.key + page, data: page }], next: page < 3 ? 'next' : null,
             inTransaction: ledger(target.key, page) }
  },
  setup() { mark('setup') },
  teardown() { mark('teardown') },
`

const SIGNALS = ['SIGTERM', 'SIGINT'] as const

for (const engine of SOME_ENGINES) {
  describe(`P13 shutdown, ${engine.name}`, { concurrency: 3 }, () => {
    for (const signal of engine === sqliteEngine ? SIGNALS : SIGNALS.slice(0, 1)) {
      test(`${signal} in the middle of a page: the page is saved, its target released without a crash or error, exit 0`, async () => {
        await using ctx = await ProcessTestContext.create(engine)
        const program = ctx.unstuck('work', ctx.crawl(GATED_CRAWL))
        await ctx.waitForMarks('page')

        program.signal(signal)
        await program.waitForOutput('finishing the pages in progress')
        ctx.openGate('gate')

        assert.equal(await program.waitForExit(), 0)
        const [a, b] = [await ctx.target('a'), await ctx.target('b')]
        assert.deepEqual([a.status, a.page, a.attempts, a.crashes], ['planned', 1, 0, 0])
        assert.deepEqual([b.status, b.page], ['planned', 0])
        assert.deepEqual(await ctx.ledger(), ['a/1'])
        assert.equal((await ctx.run()).status, 'interrupted')
        assert.equal(ctx.marks('setup').length, 1)
        assert.equal(ctx.marks('teardown').length, 1)
        await ctx.assertNoProcessesLeft()
      })
    }

    test('a released target is claimed at once, and a stopped worker that was asked to finish exits with 75', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(GATED_CRAWL)
      const first = ctx.unstuck('work', crawl, '--drain')
      await ctx.waitForMarks('page')
      first.signal('SIGTERM')
      await first.waitForOutput('finishing the pages in progress')
      ctx.openGate('gate')
      assert.equal(await first.waitForExit(), 75)
      assert.match(first.output, /has work left. Continue it with: unstuck work/)

      assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 0)
      assert.equal((await ctx.run()).status, 'succeeded')
      assert.deepEqual(await ctx.ledger(), ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'b/3'])
      assert.deepEqual(await ctx.verdicts(), [])
    })
  })
}

describe('P13 shutdown, at any moment', { concurrency: 3 }, () => {
  test('SIGTERM while a target waits for its next try: it ends at once', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.unstuck(
      'work',
      ctx.crawl(`
        *targets() { yield { key: 'a' } },
        async page() { throw new Error('not now') },
        policy: { backoff: '1h', backoffMax: '1h' },
      `),
      '--drain',
    )
    await program.waitForOutput('trying again in')
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 75)
    const target = await ctx.target('a')
    assert.deepEqual([target.status, target.errors, target.crashes], ['planned', 1, 0])
  })

  test('SIGTERM in the middle of a claim: the claimed targets are released unstarted', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' }; yield { key: 'b' } },
      async page() { mark('page'); return { next: null } },
      async setup() { mark('setup'); await opened('gate'); mark('claims now') },
      concurrency: 2,
    `)
    assert.equal(await ctx.unstuck('enqueue', crawl).waitForExit(), 0)
    const program = ctx.unstuck('work', crawl, '--no-start')
    await ctx.waitForMarks('setup')
    {
      // No process can write now: the claim waits.
      using lock = new DatabaseSync(ctx.database.url.slice('sqlite:'.length), { timeout: 5_000 })
      lock.exec('BEGIN IMMEDIATE')
      ctx.openGate('gate')
      await ctx.waitForMarks('claims now')
      await sleep(500)
      program.signal('SIGTERM')
      await program.waitForOutput('finishing the pages in progress')
    }
    assert.equal(await program.waitForExit(), 0)
    assert.match(program.output, /a released after page 0/)
    for (const { status, epoch, attempts, crashes } of (await ctx.targets()).values()) {
      assert.deepEqual([status, epoch, attempts, crashes], ['planned', 1, 0, 0])
    }
    assert.deepEqual(ctx.marks('page'), [])
  })

  test('SIGTERM in the middle of recovery: what was recovered stays so, the rest is found again', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { for (let n = 1; n <= 40; n++) yield { key: 'target-' + n } },
      async page({ target, page }) {
        mark('page')
        await opened('gate')
        return { next: null, inTransaction: ledger(target.key, page) }
      },
      concurrency: 40,
    `)
    const victim = ctx.unstuck('work', crawl)
    await ctx.waitForMarks('page', 40)
    victim.signal('SIGKILL')
    await victim.waitForExit()
    const stopped = ctx.unstuck('work', crawl)
    await stopped.waitForOutput('recovery:')
    stopped.signal('SIGTERM')
    ctx.openGate('gate')
    assert.equal(await stopped.waitForExit(), 0, stopped.output)
    assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 0)
    assert.equal((await ctx.ledger()).length, 40)
    assert.equal(new Set(await ctx.ledger()).size, 40)
    assert.equal((await ctx.verdicts()).length, 40)
  })

  test('SIGTERM while idle: it ends at once with 0, and has started nothing', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.unstuck('work', ctx.crawl(GATED_CRAWL), '--no-start')
    await program.waitForOutput('working on stage')
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 0)
    assert.deepEqual((await (await ctx.store()).runs({ limit: 1 })).items, [])
  })

  test('SIGTERM during setup: no run is started, teardown is called', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.unstuck(
      'work',
      ctx.crawl(`
        *targets() { yield { key: 'a' } },
        async page() { return { next: null } },
        async setup() { mark('setup'); await opened('gate') },
        teardown() { mark('teardown') },
      `),
    )
    await ctx.waitForMarks('setup')
    program.signal('SIGTERM')
    await program.waitForOutput('finishing the pages in progress')
    ctx.openGate('gate')
    assert.equal(await program.waitForExit(), 0)
    assert.equal(ctx.marks('teardown').length, 1)
    assert.deepEqual((await (await ctx.store()).runs({ limit: 1 })).items, [])
  })

  test('SIGTERM during planning does not wait for targets(): the next worker calls it again', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      async *targets() {
        for (const key of 'abc') yield { key }
        mark('planning')
        await opened('gate')
        for (const key of 'def') yield { key }
      },
      async page({ target, page }) { return { next: null, inTransaction: ledger(target.key, page) } },
    `)
    const program = ctx.unstuck('work', crawl)
    await ctx.waitForMarks('planning')
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 0)
    assert.equal((await ctx.run()).plannedAt, null)

    ctx.openGate('gate')
    assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 0)
    assert.deepEqual(await ctx.ledger(), ['a/1', 'b/1', 'c/1', 'd/1', 'e/1', 'f/1'])
  })

  test('a second signal ends it at once with 75; saved pages are safe', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.unstuck('work', ctx.crawl(GATED_CRAWL))
    await ctx.waitForMarks('page')
    program.signal('SIGTERM')
    await program.waitForOutput('Send it again to end at once')
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 75)
    assert.equal((await ctx.target('a')).status, 'in_progress')
    await ctx.assertNoProcessesLeft()
  })

  test('a page that ignores its signal is aborted at the deadline, its target released, exit 0', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.unstuck(
      'work',
      ctx.crawl(`
        *targets() { yield { key: 'a' } },
        async page({ signal }) {
          mark('page')
          signal.addEventListener('abort', () => mark('told'))
          await sleep(600_000)
        },
        teardown() { mark('teardown') },
      `),
      '--stop-deadline',
      '4s',
    )
    await ctx.waitForMarks('page')
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 0)
    assert.equal(ctx.marks('told').length, 1)
    assert.equal(ctx.marks('teardown').length, 1)
    const target = await ctx.target('a')
    assert.deepEqual([target.status, target.attempts, target.crashes], ['planned', 0, 0])
  })

  test('a teardown that hangs is ended by the deadline with 75, and its targets are free', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.unstuck(
      'work',
      ctx.crawl(`
        *targets() { yield { key: 'a' }; yield { key: 'b' } },
        async page() { mark('page'); return { next: null } },
        async teardown() { mark('teardown'); await sleep(600_000) },
      `),
      '--stop-deadline',
      '2s',
    )
    await ctx.waitForMarks('page', 2)
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 75)
    assert.match(program.output, /Still not stopped after 2 s/)
    await ctx.assertNoProcessesLeft()
  })

  test('a teardown that throws is logged and changes nothing', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' } },
      async page() { return { next: null } },
      async teardown() { throw new Error('the browser is gone') },
    `)
    const program = ctx.unstuck('work', crawl, '--drain')
    assert.equal(await program.waitForExit(), 0)
    assert.match(program.output, /teardown failed: the browser is gone/)
    assert.equal((await ctx.run()).status, 'succeeded')
  })

  test('handles left open by a crawl do not keep the process alive', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' } },
      async page() { setInterval(() => {}, 1_000); return { next: null } },
    `)
    assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 0)
  })

  test('a closed stdout and stderr do not stop the work', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { yield { key: 'a' } },
      async page({ page, log }) {
        mark('page')
        await opened('gate')
        for (let n = 0; n < 50; n++) { console.log('out '.repeat(200)); log('err '.repeat(200)) }
        return { next: page < 5 ? 'next' : null }
      },
    `)
    const program = ctx.unstuck('work', crawl, '--drain')
    await ctx.waitForMarks('page')
    program.child.stdout!.destroy()
    program.child.stderr!.destroy()
    ctx.openGate('gate')
    assert.equal(await program.waitForExit(), 0)
    assert.equal((await ctx.run()).counts.pages, 5)
  })

  test('under a process manager that holds a channel to it, as PM2 does, a stop is 0 all the same', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.unstuckWithIpc('work', ctx.crawl(GATED_CRAWL))
    await ctx.waitForMarks('page')
    program.signal('SIGINT')
    ctx.openGate('gate')
    assert.equal(await program.waitForExit(), 0)
  })
})
