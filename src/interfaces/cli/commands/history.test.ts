import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shortId, type RunId } from '../../../core/model/id.ts'
import { bury, claimOne, startCrawl } from '../../../testing/fixtures.ts'
import { HOUR_MS, operator, type Operator } from '../../../testing/operator.ts'

let op: Operator
let shop: RunId

/** Two days ago a run was cancelled and brought back; now recovery took a target back, and another run was cancelled. */
before(async () => {
  op = await operator()
  shop = await startCrawl(op.store, 1)
  await op.call(['cancel', shop, '--because', 'wrong list'])
  await op.call(['revert', shop])
  await op.database.later(48 * HOUR_MS)
  const worker = await op.gone('shop')
  await claimOne(op.store, worker)
  await bury(op.store, worker)
  await op.call(['cancel', await startCrawl(op.store, 1, { source: 'portal' })])
})
after(() => op[Symbol.asyncDispose]())

describe('history', { concurrency: 2 }, () => {
  test('counts by source and action, and tells who did what, when and why, newest first', async () => {
    const data = await op.json(['history'])
    assert.equal(Object.keys(data).join(' '), 'counts items next')
    assert.equal(Object.keys(data.counts[0]).join(' '), 'source action count lastAt')
    assert.equal(
      Object.keys(data.items[0]).sort().join(' '),
      'action actor after at because before evidence id run source target',
    )
    assert.deepEqual(
      data.counts.map(({ source, action, count }: any) => [source, action, count]),
      [
        ['portal', 'cancel', 1],
        ['shop', 'cancel', 1],
        ['shop', 'resume', 1],
        ['shop', 'revert', 1],
      ],
    )
    assert.deepEqual(
      data.items.map(({ source, action }: any) => [source, action]),
      [
        ['portal', 'cancel'],
        ['shop', 'resume'],
        ['shop', 'revert'],
        ['shop', 'cancel'],
      ],
    )
    const { run, because, before, after, actor } = data.items[3]
    assert.deepEqual(
      [run, because, before.status, after.status],
      [shop, 'wrong list', 'queued', 'cancelled'],
    )
    assert.match(actor, /^.+@.+$/)
    assert.equal(data.next, null)
  })

  test('for people: a table of counts, then sentences that say everything once', async () => {
    const { stdout, stderr } = await op.call(['history'])
    assert.equal(stderr, '')
    assert.match(stdout, /^SOURCE  ACTION  TIMES +LAST$/m)
    assert.match(stdout, /^shop    cancel      1  2 days ago$/m)
    const id = shortId(shop)
    assert.match(
      stdout,
      new RegExp(
        `^- 2 days ago: cancel run ${id} of shop \\(queued → cancelled\\), by \\S+: wrong`,
        'm',
      ),
    )
    assert.match(
      stdout,
      new RegExp(
        `^- 2 days ago: revert run ${id} of shop \\(cancelled → queued\\): cancel taken`,
        'm',
      ),
    )
    assert.match(
      stdout,
      new RegExp(
        `^- \\S.*: resume target \\w{8} of run ${id} of shop \\(in progress → planned\\)`,
        'm',
      ),
    )
  })

  test('--since and --source choose, for counts and trail alike', async () => {
    const recent = await op.json(['history', '--since', '24h'])
    assert.deepEqual(
      recent.items.map(({ action }: any) => action),
      ['cancel', 'resume'],
    )
    assert.equal(recent.counts.length, 2)
    const { items, counts } = await op.json(['history', '--source', 'portal'])
    assert.deepEqual([items.length, counts.length], [1, 1])
    assert.match(
      (await op.call(['history', '--source', 'nobody'])).stdout,
      /^Nothing was done: no recovery/,
    )
    await op.call(['history', '--since', 'yesterday'], 2)
  })

  test('page by page until the end, each entry comes once', async () => {
    const ids: number[] = []
    let after: number | null = null
    for (let pages = 0; pages < 10; pages++) {
      const more: string[] = after === null ? [] : ['--after', String(after)]
      const { items, next } = await op.json(['history', '--limit', '1', ...more])
      ids.push(...items.map(({ id }: any) => id))
      after = next
      if (after === null) break
    }
    assert.deepEqual(
      ids,
      (await op.json(['history'])).items.map(({ id }: any) => id),
    )
    const { stdout } = await op.call(['history', '--limit', '2'])
    assert.match(
      stdout,
      new RegExp(`^2 entries shown\\. There is more: add \`--after ${ids[1]}\``, 'm'),
    )
    const beyond = await op.call(['history', '--after', String(ids.at(-1))])
    assert.match(beyond.stdout, /That was all: nothing comes after it\.\n$/)
    await op.call(['history', '--limit', '0'], 2)
  })
})
