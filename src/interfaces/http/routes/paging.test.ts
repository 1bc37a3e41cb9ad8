import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { cancel } from '../../../operator/actions.ts'
import { createApiClient, type ApiClient } from '../../../testing/api-client.ts'
import { claim, enqueueSingle, enqueueCrawl } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'

/** All of a list, a few at a time. No answer is longer than asked for, and none comes twice. */
async function walk(api: ApiClient, path: string, limit: number): Promise<any[]> {
  const all: any[] = []
  const joint = path.includes('?') ? '&' : '?'
  for (let after = ''; ;) {
    const { items, next } = await api.get(`${path}${joint}limit=${limit}${after}`)
    assert.ok(items.length <= limit)
    all.push(...items)
    if (next === null) break
    after = `&after=${next}`
  }
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length, `${path} repeats itself`)
  return all
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: lists can be walked without gaps or repeats, whatever the filter`, async () => {
    await using api = await createApiClient({ engine })
    const { store } = api.ctx
    const context = { store, actor: 'the tests' }
    for (let n = 0; n < 7; n++) {
      const run = await enqueueSingle(store, `source-${n % 3}`)
      if (n < 5) await cancel(context, run)
      else if (n === 5) await cancel(context, run, 'no longer wanted')
    }
    const crawl = await enqueueCrawl(store, 12, { source: 'crawl' })
    const claimed = await claim(store, await api.registerLiveWorker('crawl'), 9, {
      source: 'crawl',
    })
    for (const [n, one] of claimed.entries())
      await store.fail([
        { ...one, error: `HTTP ${n % 2 ? 403 : 503} after ${n} s`, becomes: 'failed' },
      ])

    const runs = await walk(api, '/api/runs', 3)
    const ended = await walk(api, '/api/runs?status=cancelled&status=failed', 2)
    const live = await walk(api, '/api/runs?status=live', 1)
    const ofSource = await walk(api, '/api/runs?q=SOURCE-1&since=1h', 1)
    const targets = await walk(api, `/api/runs/${crawl}/targets`, 5)
    const failed = await walk(api, `/api/runs/${crawl}/targets?status=failed&q=http`, 2)
    const { groups, total } = await api.get('/api/dead-letters')
    const trail = await walk(api, '/api/history', 2)
    const cancelled = await walk(api, '/api/history?action=cancel', 4)

    assert.equal(runs.length, 8)
    assert.deepEqual(
      runs,
      runs.toSorted((a, b) => (a.id < b.id ? 1 : -1)),
    )
    assert.equal(ended.length, 6)
    assert.equal(live.length, 2)
    assert.equal(ofSource.length, 2)
    assert.equal(targets.length, 12)
    assert.equal(failed.length, 9)
    assert.equal(total, 9)
    assert.deepEqual(
      groups.map(({ count }: any) => count),
      [5, 4],
    )
    for (const { fingerprint, count } of groups) {
      const letters = await walk(api, `/api/dead-letters/${fingerprint}/targets`, 2)
      assert.equal(letters.length, count)
    }
    assert.equal(cancelled.length, 6)
    assert.deepEqual(
      cancelled,
      trail.filter(({ action }) => action === 'cancel'),
    )
    const { counts } = await api.get(`/api/history?run=${ended[0].id}`)
    assert.deepEqual(
      counts.map(({ action, count }: any) => [action, count]),
      [['cancel', 1]],
    )
  })
}

describe('operations', () => {
  test('operations can be paged, newest first', async () => {
    await using api = await createApiClient()
    for (let n = 0; n < 4; n++) await api.post('/api/runs', { source: `s${n}` })
    await api.post('/api/runs', { source: 's0' }, 409)

    const all = await walk(api, '/api/operations', 2)

    assert.deepEqual(
      all.map(({ status, selection }) => [status, selection.source]),
      [
        [409, 's0'],
        [201, 's3'],
        [201, 's2'],
        [201, 's1'],
        [201, 's0'],
      ],
    )
    assert.match(all[0].actor, /^the-admin \(admin\) via http from /)
  })
})
