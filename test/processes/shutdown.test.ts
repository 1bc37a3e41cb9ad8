import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SOME_ENGINES, Stage } from './harness.ts'

/** Two targets of three pages; a page ends when the test opens its gate. */
const GATED = `
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
      test(`${signal} in the middle of a page: the page is saved, its target handed back at no cost, exit 0`, async () => {
        await using stage = await Stage.set(engine)
        const program = stage.unstuck('work', stage.crawl(GATED))
        await stage.marked('page')

        program.signal(signal)
        await program.says('finishing the pages in hand')
        stage.open('gate')

        assert.equal(await program.end(), 0)
        const [a, b] = [await stage.target('a'), await stage.target('b')]
        assert.deepEqual([a.status, a.page, a.attempts, a.crashes], ['planned', 1, 0, 0])
        assert.deepEqual([b.status, b.page], ['planned', 0])
        assert.deepEqual(await stage.ledger(), ['a/1'])
        assert.equal((await stage.run()).status, 'interrupted')
        assert.equal(stage.marks('setup').length, 1)
        assert.equal(stage.marks('teardown').length, 1)
        await stage.assertNobodyLeft()
      })
    }

    test('what was handed back is taken up at once, and asked to finish a stopped worker ends with 75', async () => {
      await using stage = await Stage.set(engine)
      const crawl = stage.crawl(GATED)
      const first = stage.unstuck('work', crawl, '--drain')
      await stage.marked('page')
      first.signal('SIGTERM')
      await first.says('finishing the pages in hand')
      stage.open('gate')
      assert.equal(await first.end(), 75)
      assert.match(first.output, /has work left. Go on with: unstuck work/)

      assert.equal(await stage.unstuck('work', crawl, '--drain').end(), 0)
      assert.equal((await stage.run()).status, 'succeeded')
      assert.deepEqual(await stage.ledger(), ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'b/3'])
      assert.deepEqual(await stage.verdicts(), [])
    })
  })
}

describe('P13 shutdown, at any moment', { concurrency: 3 }, () => {
  test('SIGTERM while a target waits for its next try: it ends at once', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const program = stage.unstuck(
      'work',
      stage.crawl(`
        *targets() { yield { key: 'a' } },
        async page() { throw new Error('not now') },
        policy: { backoff: '1h', backoffMax: '1h' },
      `),
      '--drain',
    )
    await program.says('trying again in')
    program.signal('SIGTERM')
    assert.equal(await program.end(), 75)
    const target = await stage.target('a')
    assert.deepEqual([target.status, target.errors, target.crashes], ['planned', 1, 0])
  })

  test('SIGTERM in the middle of a claim: what it brings is handed back unopened', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() { yield { key: 'a' }; yield { key: 'b' } },
      async page() { mark('page'); return { next: null } },
      async setup() { mark('setup'); await opened('gate'); mark('claims now') },
      concurrency: 2,
    `)
    assert.equal(await stage.unstuck('enqueue', crawl).end(), 0)
    const program = stage.unstuck('work', crawl, '--no-start')
    await stage.marked('setup')
    {
      // Nobody can write now: the claim waits.
      using lock = new DatabaseSync(stage.database.url.slice('sqlite:'.length), { timeout: 5_000 })
      lock.exec('BEGIN IMMEDIATE')
      stage.open('gate')
      await stage.marked('claims now')
      await sleep(500)
      program.signal('SIGTERM')
      await program.says('finishing the pages in hand')
    }
    assert.equal(await program.end(), 0)
    assert.match(program.output, /a handed back after page 0/)
    for (const { status, epoch, attempts, crashes } of (await stage.targets()).values()) {
      assert.deepEqual([status, epoch, attempts, crashes], ['planned', 1, 0, 0])
    }
    assert.deepEqual(stage.marks('page'), [])
  })

  test('SIGTERM in the middle of recovery: what was recovered stays so, the rest is found again', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() { for (let n = 1; n <= 40; n++) yield { key: 'target-' + n } },
      async page({ target, page }) {
        mark('page')
        await opened('gate')
        return { next: null, inTransaction: ledger(target.key, page) }
      },
      concurrency: 40,
    `)
    const victim = stage.unstuck('work', crawl)
    await stage.marked('page', 40)
    victim.signal('SIGKILL')
    await victim.end()
    const stopped = stage.unstuck('work', crawl)
    await stopped.says('recovery:')
    stopped.signal('SIGTERM')
    stage.open('gate')
    assert.equal(await stopped.end(), 0, stopped.output)
    assert.equal(await stage.unstuck('work', crawl, '--drain').end(), 0)
    assert.equal((await stage.ledger()).length, 40)
    assert.equal(new Set(await stage.ledger()).size, 40)
    assert.equal((await stage.verdicts()).length, 40)
  })

  test('SIGTERM while idle: it ends at once with 0, and has started nothing', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const program = stage.unstuck('work', stage.crawl(GATED), '--no-start')
    await program.says('working on stage')
    program.signal('SIGTERM')
    assert.equal(await program.end(), 0)
    assert.deepEqual((await (await stage.store()).runs({ limit: 1 })).items, [])
  })

  test('SIGTERM during setup: no run is started, teardown is called', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const program = stage.unstuck(
      'work',
      stage.crawl(`
        *targets() { yield { key: 'a' } },
        async page() { return { next: null } },
        async setup() { mark('setup'); await opened('gate') },
        teardown() { mark('teardown') },
      `),
    )
    await stage.marked('setup')
    program.signal('SIGTERM')
    await program.says('finishing the pages in hand')
    stage.open('gate')
    assert.equal(await program.end(), 0)
    assert.equal(stage.marks('teardown').length, 1)
    assert.deepEqual((await (await stage.store()).runs({ limit: 1 })).items, [])
  })

  test('SIGTERM during planning does not wait for targets(): the next worker asks it again', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      async *targets() {
        for (const key of 'abc') yield { key }
        mark('planning')
        await opened('gate')
        for (const key of 'def') yield { key }
      },
      async page({ target, page }) { return { next: null, inTransaction: ledger(target.key, page) } },
    `)
    const program = stage.unstuck('work', crawl)
    await stage.marked('planning')
    program.signal('SIGTERM')
    assert.equal(await program.end(), 0)
    assert.equal((await stage.run()).plannedAt, null)

    stage.open('gate')
    assert.equal(await stage.unstuck('work', crawl, '--drain').end(), 0)
    assert.deepEqual(await stage.ledger(), ['a/1', 'b/1', 'c/1', 'd/1', 'e/1', 'f/1'])
  })

  test('a second signal ends it at once with 75; what was saved is safe', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const program = stage.unstuck('work', stage.crawl(GATED))
    await stage.marked('page')
    program.signal('SIGTERM')
    await program.says('Once more to end at once')
    program.signal('SIGTERM')
    assert.equal(await program.end(), 75)
    assert.equal((await stage.target('a')).status, 'in_progress')
    await stage.assertNobodyLeft()
  })

  test('a page that ignores its signal is cut short at the deadline, its target handed back, exit 0', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const program = stage.unstuck(
      'work',
      stage.crawl(`
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
    await stage.marked('page')
    program.signal('SIGTERM')
    assert.equal(await program.end(), 0)
    assert.equal(stage.marks('told').length, 1)
    assert.equal(stage.marks('teardown').length, 1)
    const target = await stage.target('a')
    assert.deepEqual([target.status, target.attempts, target.crashes], ['planned', 0, 0])
  })

  test('a teardown that hangs is ended by the deadline with 75, and its targets are free', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const program = stage.unstuck(
      'work',
      stage.crawl(`
        *targets() { yield { key: 'a' }; yield { key: 'b' } },
        async page() { mark('page'); return { next: null } },
        async teardown() { mark('teardown'); await sleep(600_000) },
      `),
      '--stop-deadline',
      '2s',
    )
    await stage.marked('page', 2)
    program.signal('SIGTERM')
    assert.equal(await program.end(), 75)
    assert.match(program.output, /Still not stopped after 2 s/)
    await stage.assertNobodyLeft()
  })

  test('a teardown that throws is logged and changes nothing', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() { yield { key: 'a' } },
      async page() { return { next: null } },
      async teardown() { throw new Error('the browser is gone') },
    `)
    const program = stage.unstuck('work', crawl, '--drain')
    assert.equal(await program.end(), 0)
    assert.match(program.output, /teardown failed: the browser is gone/)
    assert.equal((await stage.run()).status, 'succeeded')
  })

  test('what a crawl leaves open does not keep the process from ending', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() { yield { key: 'a' } },
      async page() { setInterval(() => {}, 1_000); return { next: null } },
    `)
    assert.equal(await stage.unstuck('work', crawl, '--drain').end(), 0)
  })

  test('a closed stdout and stderr do not stop the work', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() { yield { key: 'a' } },
      async page({ page, log }) {
        mark('page')
        await opened('gate')
        for (let n = 0; n < 50; n++) { console.log('out '.repeat(200)); log('err '.repeat(200)) }
        return { next: page < 5 ? 'next' : null }
      },
    `)
    const program = stage.unstuck('work', crawl, '--drain')
    await stage.marked('page')
    program.child.stdout!.destroy()
    program.child.stderr!.destroy()
    stage.open('gate')
    assert.equal(await program.end(), 0)
    assert.equal((await stage.run()).counts.pages, 5)
  })

  test('under a process manager that holds a channel to it, as PM2 does, a stop is 0 all the same', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const program = stage.unstuckWithChannel('work', stage.crawl(GATED))
    await stage.marked('page')
    program.signal('SIGINT')
    stage.open('gate')
    assert.equal(await program.end(), 0)
  })
})
