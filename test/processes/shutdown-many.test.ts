import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { kill, ProcessTestContext, waitFor } from './harness.ts'

/** Each of three targets has two pages; a page ends when the test opens the gate. */
const GATED = `
  *targets() { for (const key of 'abc') yield { key } },
  async page({ target, page }) {
    mark('page', target.key, page)
    await opened('gate')
    return { next: page < 2 ? 'next' : null, inTransaction: ledger(target.key, page) }
  },
  setup() { mark('setup') },
  teardown() { mark('teardown') },
`

/** Three processes, each in the middle of a page. */
async function startThreeWorkers(ctx: ProcessTestContext, crawl = GATED) {
  const parent = ctx.unstuck('work', ctx.crawl(crawl), '--workers', '3', '--drain')
  const marks = await ctx.waitForMarks('page', 3)
  const children = new Set(marks.map((mark) => mark.pid))
  assert.equal(children.size, 3)
  return { parent, children: [...children] }
}

/** The page in hand was saved, once each; nothing else was begun, and nothing cost anything. */
async function assertReleased(ctx: ProcessTestContext): Promise<void> {
  const targets = [...(await ctx.targets()).values()]
  assert.deepEqual(
    targets.map(({ status, page, attempts, crashes }) => [status, page, attempts, crashes]),
    targets.map(() => ['planned', 1, 0, 0]),
  )
  assert.deepEqual(await ctx.ledger(), ['a/1', 'b/1', 'c/1'])
  assert.equal(ctx.marks('page').length, 3)
  assert.equal(ctx.marks('teardown').length, ctx.marks('setup').length)
  assert.deepEqual(await ctx.verdicts(), [])
}

describe('P13 shutdown of many processes', { concurrency: 2 }, () => {
  test('SIGTERM to the parent stops them all: pages saved, targets released, no child left', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const { parent } = await startThreeWorkers(ctx)
    parent.signal('SIGTERM')
    await parent.waitForOutput(/(finishing the pages in progress[^]*){4}/)
    ctx.openGate('gate')
    assert.equal(await parent.waitForExit(), 75)
    await assertReleased(ctx)
    await ctx.assertNoProcessesLeft()
  })

  test('SIGTERM to the parent while its children are just starting stops them too', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const parent = ctx.unstuck('work', ctx.crawl(GATED), '--workers', '3', '--drain')
    await waitFor('the children', () => ctx.processes().length === 4)
    parent.signal('SIGTERM')
    ctx.openGate('gate')
    assert.equal(await parent.waitForExit(), 75, parent.output)
    assert.doesNotMatch(parent.output, /Still not stopped/)
    assert.deepEqual(await ctx.verdicts(), [])
    await ctx.assertNoProcessesLeft()
  })

  test('Ctrl-C reaches only the parent, which stops the others once', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const { parent } = await startThreeWorkers(ctx)
    parent.signalGroup('SIGINT')
    await parent.waitForOutput(/(finishing the pages in progress[^]*){4}/)
    ctx.openGate('gate')
    assert.equal(await parent.waitForExit(), 75)
    await assertReleased(ctx)
    await ctx.assertNoProcessesLeft()
  })

  test('SIGTERM to parent and children together, as systemd sends it, still is one stop', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const { parent, children } = await startThreeWorkers(ctx)
    for (const pid of [...children, parent.pid]) kill(pid, 'SIGTERM')
    await parent.waitForOutput(/(finishing the pages in progress[^]*){4}/)
    ctx.openGate('gate')
    assert.equal(await parent.waitForExit(), 75)
    await assertReleased(ctx)
    await ctx.assertNoProcessesLeft()
  })

  test('a second signal to the parent ends all of them at once', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const { parent } = await startThreeWorkers(ctx)
    parent.signal('SIGTERM')
    await parent.waitForOutput(/(finishing the pages in progress[^]*){4}/)
    parent.signal('SIGTERM')
    assert.equal(await parent.waitForExit(), 75)
    await ctx.assertNoProcessesLeft()
    assert.deepEqual(await ctx.ledger(), [])
  })

  test('a child whose event loop never comes back does not outlive the deadline of its parent', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { for (const key of 'ab') yield { key } },
      async page() { mark('page'); block(600_000) },
    `)
    const parent = ctx.unstuck('work', crawl, '--workers', '2', '--stop-deadline', '2s')
    await ctx.waitForMarks('page', 2)
    parent.signal('SIGTERM')
    assert.equal(await parent.waitForExit(), 75)
    await ctx.assertNoProcessesLeft()
  })

  test('kill -9 of the parent: its children finish their page, release their targets and exit', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const { parent } = await startThreeWorkers(ctx)
    parent.signal('SIGKILL')
    await parent.waitForOutput(/(The parent process is gone[^]*){3}/)
    ctx.openGate('gate')
    await ctx.assertNoProcessesLeft()
    await assertReleased(ctx)
    assert.equal((await ctx.run()).status, 'interrupted')
  })

  test('kill -9 of the parent while its children are just starting: they end', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const parent = ctx.unstuck('work', ctx.crawl(GATED), '--workers', '3')
    await waitFor('the children', () => ctx.processes().length === 4)
    parent.signal('SIGKILL')
    ctx.openGate('gate')
    await ctx.assertNoProcessesLeft()
  })

  test('kill -9 of the parent while pages hang: its children end by the deadline', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const crawl = ctx.crawl(`
      *targets() { for (const key of 'ab') yield { key } },
      async page() { mark('page'); await sleep(600_000) },
      async teardown() { await sleep(600_000) },
    `)
    const parent = ctx.unstuck('work', crawl, '--workers', '2', '--stop-deadline', '2s')
    await ctx.waitForMarks('page', 2)
    parent.signal('SIGKILL')
    await ctx.assertNoProcessesLeft()
    assert.deepEqual(
      [...(await ctx.targets()).values()].map(({ status, crashes }) => [status, crashes]),
      [
        ['planned', 0],
        ['planned', 0],
      ],
    )
  })

  test('a child that dies is started again, and the work is finished', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const { parent, children } = await startThreeWorkers(ctx)
    kill(children[0]!, 'SIGKILL')
    await waitFor(
      'a new process at work',
      () => new Set(ctx.marks('page').map((m) => m.pid)).size === 4,
    )
    ctx.openGate('gate')
    assert.equal(await parent.waitForExit(), 0)
    assert.match(parent.output, /worker process \d died \(SIGKILL\); starting it again/)
    assert.deepEqual(await ctx.ledger(), ['a/1', 'a/2', 'b/1', 'b/2', 'c/1', 'c/2'])
    await ctx.assertNoProcessesLeft()
  })
})
