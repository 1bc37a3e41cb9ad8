import assert from 'node:assert/strict'
import { test } from 'node:test'
import { shortId, type RunId } from '../../../core/model/id.ts'
import { createApiClient } from '../../../testing/api-client.ts'
import {
  createCliTestContext,
  HOSTILE_TEXT,
  UNSAFE_CHARACTERS,
} from '../../../testing/cli-test-context.ts'
import { claimOne, enqueueCrawl, registerWorker } from '../../../testing/fixtures.ts'
import type { Store } from '../../../core/store/store.ts'

/** Three targets of one group and two of another; one failed, one parked. */
async function enqueueShop(store: Store): Promise<RunId> {
  const keys = ['a', 'b', HOSTILE_TEXT, 'd', 'e']
  const targets = keys.map((key, n) => ({ key, group: n < 3 ? 'CA' : 'TX' }))
  const run = await enqueueCrawl(store, targets, { source: 'shop' })
  const worker = await registerWorker(store, { source: 'shop', leaseMs: 600_000 })
  for (const becomes of ['failed', 'parked'] as const) {
    const claimed = await claimOne(store, worker, { source: 'shop' })
    await store.fail([{ ...claimed, error: `HTTP 500 ${HOSTILE_TEXT}`, becomes }])
  }
  return run
}

const keysOf = (items: { key: string }[]): string[] => items.map(({ key }) => key)

test('targets lists those of a run or source, by status and group, in pages', async () => {
  await using ctx = await createCliTestContext()
  const run = await enqueueShop(ctx.store)
  const list = async (...args: string[]): Promise<any> => ctx.json(['targets', ...args])

  assert.deepEqual(keysOf((await list('shop')).items), ['a', 'b', HOSTILE_TEXT, 'd', 'e'])
  assert.deepEqual(await list(shortId(run)), await list('shop'))
  assert.deepEqual(await list(), await list('shop'), 'the only live run')
  assert.deepEqual(keysOf((await list('shop', '--status', 'failed', 'parked')).items), ['a', 'b'])
  assert.deepEqual(keysOf((await list('shop', '--group', 'TX')).items), ['d', 'e'])
  const first = await list('shop', '--limit', '2')
  assert.deepEqual(keysOf(first.items), ['a', 'b'])
  const rest = await list('shop', '--after', first.next)
  assert.deepEqual([keysOf(rest.items), rest.next], [[HOSTILE_TEXT, 'd', 'e'], null])

  const { stderr } = await ctx.cli(['targets', 'shop', '--status', 'failed', 'lost'], 2)
  assert.match(stderr, /--status must be one of planned, .*parked, not "lost"/)
  await enqueueCrawl(ctx.store, ['x'], { source: 'other' })
  assert.match((await ctx.cli(['targets'], 2)).stderr, /Several runs are live: name a run or/)
})

test('targets prints a table with whole ids at 80 columns, and JSON lines as a stream', async () => {
  await using ctx = await createCliTestContext()
  const run = await enqueueShop(ctx.store)
  const { items } = (await ctx.json(['targets', 'shop'])) as { items: { id: string }[] }

  const { stdout } = await ctx.cli(['targets', 'shop', '--limit', '4'], 0, 80)

  assert.match(stdout, new RegExp(`^Run ${shortId(run)} of shop\n`))
  for (const { id } of items.slice(0, 4))
    assert.match(stdout, new RegExp(`^${shortId(id)}  `, 'm'), 'the whole id')
  for (const line of stdout.split('\n')) assert.ok(line.length <= 80, line)
  assert.match(stdout, /There are more: add `--after/)
  assert.doesNotMatch(stdout, UNSAFE_CHARACTERS)

  const lines = (await ctx.cli(['targets', 'shop', '--format', 'jsonl'])).stdout
    .trimEnd()
    .split('\n')
  assert.deepEqual(
    lines.map((line) => JSON.parse(line)),
    items,
  )
  const two = (await ctx.cli(['targets', 'shop', '--format', 'jsonl', '--limit', '2'])).stdout
  assert.equal(two.trimEnd().split('\n').length, 2)
})

test('targets --json is what the HTTP API returns', async () => {
  await using api = await createApiClient()
  const run = await enqueueShop(api.ctx.store)

  assert.deepEqual(
    await api.cli('targets', run, '--status', 'parked'),
    await api.get('/api/runs/shop/targets?status=parked'),
  )
})
