import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shortId, type RunId } from '../../../core/model/id.ts'
import { recoverWorker, claimOne, enqueueCrawl } from '../../../testing/fixtures.ts'
import {
  HOUR_MS,
  createCliTestContext,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'

let ctx: CliTestContext
let shop: RunId

/** Two days ago a run was cancelled and brought back; now recovery took a target back, and another run was cancelled. */
before(async () => {
  ctx = await createCliTestContext()
  shop = await enqueueCrawl(ctx.store, 1)
  await ctx.cli(['cancel', shop, '--because', 'wrong list'])
  await ctx.cli(['revert', shop])
  await ctx.database.advanceClock(48 * HOUR_MS)
  const worker = await ctx.registerDeadWorker('shop')
  await claimOne(ctx.store, worker)
  await recoverWorker(ctx.store, worker)
  await ctx.cli(['cancel', await enqueueCrawl(ctx.store, 1, { source: 'portal' })])
})
after(() => ctx[Symbol.asyncDispose]())

describe('history', { concurrency: 2 }, () => {
  test('counts by source and action, and lists actor, action, time and reason, newest first', async () => {
    const data = await ctx.json(['history'])
    assert.equal(
      Object.keys(data).join(' '),
      'counts items next severity summary sections actions undo',
    )
    assert.equal(Object.keys(data.counts[0]).join(' '), 'source action count lastAt')
    assert.equal(
      Object.keys(data.items[0]).sort().join(' '),
      'action actor after at because before evidence facts id key run source subject target',
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

  test('as text: a table of counts, then each fact once in sentences', async () => {
    const { stdout, stderr } = await ctx.cli(['history'])
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
        `^- 2 days ago: revert run ${id} of shop \\(cancelled → queued\\): cancel reverted`,
        'm',
      ),
    )
    assert.match(
      stdout,
      new RegExp(
        `^- \\S.*: resume target t0000 \\(\\w{8}\\) of run ${id} of shop \\(in progress → planned\\)`,
        'm',
      ),
    )
  })

  test('--since and --source choose, for counts and trail alike', async () => {
    const recent = await ctx.json(['history', '--since', '24h'])
    assert.deepEqual(
      recent.items.map(({ action }: any) => action),
      ['cancel', 'resume'],
    )
    assert.equal(recent.counts.length, 2)
    const { items, counts } = await ctx.json(['history', '--source', 'portal'])
    assert.deepEqual([items.length, counts.length], [1, 1])
    assert.match(
      (await ctx.cli(['history', '--source', 'nobody'])).stdout,
      /^The audit trail is empty: no recovery/,
    )
    await ctx.cli(['history', '--since', 'yesterday'], 2)
  })

  test('page by page until the end, each entry comes once', async () => {
    const ids: number[] = []
    let after: number | null = null
    for (let pages = 0; pages < 10; pages++) {
      const more: string[] = after === null ? [] : ['--after', String(after)]
      const { items, next } = await ctx.json(['history', '--limit', '1', ...more])
      ids.push(...items.map(({ id }: any) => id))
      after = next
      if (after === null) break
    }
    assert.deepEqual(
      ids,
      (await ctx.json(['history'])).items.map(({ id }: any) => id),
    )
    const { stdout } = await ctx.cli(['history', '--limit', '2'])
    assert.match(
      stdout,
      new RegExp(`^2 entries shown\\. There are more: add \`--after ${ids[1]}\``, 'm'),
    )
    const beyond = await ctx.cli(['history', '--after', String(ids.at(-1))])
    assert.match(beyond.stdout, /There are no older entries\.\n$/)
    await ctx.cli(['history', '--limit', '0'], 2)
  })
})
