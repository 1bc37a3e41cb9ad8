import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortId } from '../../../core/model/id.ts'
import { createCliTestContext } from '../../../testing/cli-test-context.ts'
import { beginOne, makeItems, savePage, unwrap } from '../../../testing/fixtures.ts'

test('items that had not changed are counted apart from what pages reported as skipped', async () => {
  await using ctx = await createCliTestContext()
  const { store } = ctx
  const begun = await beginOne(store, await ctx.registerLiveWorker('shop'), { source: 'shop' })
  const first = await savePage(store, begun, { items: makeItems(0, 4) })
  const second = await savePage(store, first, { items: makeItems(1, 3), skipped: 2 })
  unwrap((await store.release([second]))[0]!)
  await store.retireWorker(second.worker)
  const counts = { extracted: 4, unchanged: 3, skipped: 2 }
  const pick = ({ extracted, unchanged, skipped }: any) => ({ extracted, unchanged, skipped })
  const short = shortId(begun.run)

  const shown = await ctx.json(['show', short])
  assert.deepEqual([pick(shown.run), pick(shown.counts)], [counts, counts])
  const [resumable] = (await ctx.json(['summary'])).resumable
  assert.deepEqual([pick(resumable), pick(resumable.facts)], [counts, counts])
  assert.match(resumable.evidence.join(' '), /extracted: 4, unchanged: 3, skipped: 2/)
  const text = /4 new, 0 updated, 3 unchanged, 2 skipped/
  for (const command of ['show', 'explain'])
    assert.match((await ctx.cli([command, short])).stdout, text)
})

test('summary counts the runs that have ended, by how', async () => {
  await using ctx = await createCliTestContext()
  const { store } = ctx
  const worker = await ctx.registerLiveWorker('shop')
  for (const becomes of ['done', 'done', 'failed'] as const) {
    const begun = await beginOne(store, worker, { source: 'shop' })
    if (becomes === 'done') await store.finish([begun])
    else await store.fail([{ ...begun, error: 'no', becomes }])
    await store.settle(begun.run)
  }
  const live = await beginOne(store, worker, { source: 'shop' })
  await ctx.cli(['cancel', shortId(live.run)])

  const { ended } = await ctx.json(['summary'])
  assert.deepEqual(ended, { succeeded: 2, failed: 1, cancelled: 1, abandoned: 0 })
  assert.match(
    (await ctx.cli(['summary'])).stdout,
    /^Ended runs: 2 succeeded, 1 failed, 1 cancelled, 0 abandoned\.$/m,
  )
})
