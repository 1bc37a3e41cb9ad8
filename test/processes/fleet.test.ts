import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { kill, Stage, until } from './harness.ts'

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
async function threeAtWork(stage: Stage, crawl = GATED) {
  const parent = stage.unstuck('work', stage.crawl(crawl), '--workers', '3', '--drain')
  const marks = await stage.marked('page', 3)
  const children = new Set(marks.map((mark) => mark.pid))
  assert.equal(children.size, 3)
  return { parent, children: [...children] }
}

/** The page in hand was saved, once each; nothing else was begun, and nothing cost anything. */
async function assertHandedBack(stage: Stage): Promise<void> {
  const targets = [...(await stage.targets()).values()]
  assert.deepEqual(
    targets.map(({ status, page, attempts, crashes }) => [status, page, attempts, crashes]),
    targets.map(() => ['planned', 1, 0, 0]),
  )
  assert.deepEqual(await stage.ledger(), ['a/1', 'b/1', 'c/1'])
  assert.equal(stage.marks('page').length, 3)
  assert.equal(stage.marks('teardown').length, stage.marks('setup').length)
  assert.deepEqual(await stage.verdicts(), [])
}

describe('P13 shutdown of many processes', { concurrency: 2 }, () => {
  test('SIGTERM to the parent stops them all: pages saved, targets handed back, no child left', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const { parent } = await threeAtWork(stage)
    parent.signal('SIGTERM')
    await parent.says(/(finishing the pages in hand[^]*){4}/)
    stage.open('gate')
    assert.equal(await parent.end(), 75)
    await assertHandedBack(stage)
    await stage.assertNobodyLeft()
  })

  test('SIGTERM to the parent while its children are just starting stops them too', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const parent = stage.unstuck('work', stage.crawl(GATED), '--workers', '3', '--drain')
    await until('the children', () => stage.processes().length === 4)
    parent.signal('SIGTERM')
    stage.open('gate')
    assert.equal(await parent.end(), 75, parent.output)
    assert.doesNotMatch(parent.output, /Still not stopped/)
    assert.deepEqual(await stage.verdicts(), [])
    await stage.assertNobodyLeft()
  })

  test('Ctrl-C reaches only the parent, which stops the others once', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const { parent } = await threeAtWork(stage)
    parent.signalGroup('SIGINT')
    await parent.says(/(finishing the pages in hand[^]*){4}/)
    stage.open('gate')
    assert.equal(await parent.end(), 75)
    await assertHandedBack(stage)
    await stage.assertNobodyLeft()
  })

  test('SIGTERM to parent and children together, as systemd sends it, still is one stop', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const { parent, children } = await threeAtWork(stage)
    for (const pid of [...children, parent.pid]) kill(pid, 'SIGTERM')
    await parent.says(/(finishing the pages in hand[^]*){4}/)
    stage.open('gate')
    assert.equal(await parent.end(), 75)
    await assertHandedBack(stage)
    await stage.assertNobodyLeft()
  })

  test('a second signal to the parent ends all of them at once', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const { parent } = await threeAtWork(stage)
    parent.signal('SIGTERM')
    await parent.says(/(finishing the pages in hand[^]*){4}/)
    parent.signal('SIGTERM')
    assert.equal(await parent.end(), 75)
    await stage.assertNobodyLeft()
    assert.deepEqual(await stage.ledger(), [])
  })

  test('a child whose event loop never comes back does not outlive the deadline of its parent', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() { for (const key of 'ab') yield { key } },
      async page() { mark('page'); block(600_000) },
    `)
    const parent = stage.unstuck('work', crawl, '--workers', '2', '--stop-deadline', '2s')
    await stage.marked('page', 2)
    parent.signal('SIGTERM')
    assert.equal(await parent.end(), 75)
    await stage.assertNobodyLeft()
  })

  test('kill -9 of the parent: its children finish their page, hand back and end', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const { parent } = await threeAtWork(stage)
    parent.signal('SIGKILL')
    await parent.says(/(The parent process is gone[^]*){3}/)
    stage.open('gate')
    await stage.assertNobodyLeft()
    await assertHandedBack(stage)
    assert.equal((await stage.run()).status, 'interrupted')
  })

  test('kill -9 of the parent while its children are just starting: they end', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const parent = stage.unstuck('work', stage.crawl(GATED), '--workers', '3')
    await until('the children', () => stage.processes().length === 4)
    parent.signal('SIGKILL')
    stage.open('gate')
    await stage.assertNobodyLeft()
  })

  test('kill -9 of the parent while pages hang: its children end by the deadline', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const crawl = stage.crawl(`
      *targets() { for (const key of 'ab') yield { key } },
      async page() { mark('page'); await sleep(600_000) },
      async teardown() { await sleep(600_000) },
    `)
    const parent = stage.unstuck('work', crawl, '--workers', '2', '--stop-deadline', '2s')
    await stage.marked('page', 2)
    parent.signal('SIGKILL')
    await stage.assertNobodyLeft()
    assert.deepEqual(
      [...(await stage.targets()).values()].map(({ status, crashes }) => [status, crashes]),
      [
        ['planned', 0],
        ['planned', 0],
      ],
    )
  })

  test('a child that dies is started again, and the work is finished', async () => {
    await using stage = await Stage.set(sqliteEngine)
    const { parent, children } = await threeAtWork(stage)
    kill(children[0]!, 'SIGKILL')
    await until(
      'a new process at work',
      () => new Set(stage.marks('page').map((m) => m.pid)).size === 4,
    )
    stage.open('gate')
    assert.equal(await parent.end(), 0)
    assert.match(parent.output, /worker process \d died \(SIGKILL\); starting it again/)
    assert.deepEqual(await stage.ledger(), ['a/1', 'a/2', 'b/1', 'b/2', 'c/1', 'c/2'])
    await stage.assertNobodyLeft()
  })
})
