import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ItemStore } from '../../../features/items/store/store.ts'
import type { NewItem } from '../../../core/model/item.ts'
import type { StoreExtension } from '../../../core/store/store.ts'
import { createApiClient } from '../../../testing/api-client.ts'
import { beginOne, enqueueSingle, savePage } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'

function makeManyItems(count: number, data: unknown = {}): NewItem[] {
  return Array.from({ length: count }, (_, n) => ({ key: `k${String(n).padStart(6, '0')}`, data }))
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: items come out as the command line prints them, whole or from a key on`, async () => {
    await using api = await createApiClient({ engine })
    const { store, database, folder } = api.ctx
    const begun = await beginOne(store, await api.registerLiveWorker('a b"c'), { source: 'a b"c' })
    const evil = { key: '=cmd|calc', data: { text: '\u202e"x",\n' } }
    await savePage(store, begun, { items: [...makeManyItems(450, { n: 1 }), evil] })
    const at = '/api/items/a%20b%22c'

    for (const format of ['jsonl', 'csv', 'json']) {
      const heard = await api.ctx.call('GET', `${at}?format=${format}`, { as: 'viewer' })
      const args = ['items', 'a b"c', '--format', format, '--db', database.url]
      const printed = await unstuck(args, { cwd: folder })
      assert.equal(heard.body, printed.stdout)
      assert.equal(
        heard.headers.get('content-disposition'),
        `attachment; filename="items-a_b_c.${format}"`,
      )
      if (format === 'csv') assert.match(heard.body, /^'=cmd\|calc,/m)
    }
    const rest: string = await api.get(`${at}?after=k000447`)
    assert.deepEqual(
      rest
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).key),
      ['k000448', 'k000449'],
    )
    await api.get(`${at}?since=1h&after=k000447`, 400)
    await enqueueSingle(store, 'empty')
    assert.equal(await api.get('/api/items/empty'), '')
    assert.match((await api.get('/api/items/emty', 404)).error.message, /Did you mean empty\?/)
  })
}

test('the latest items come with the start of their data', async () => {
  await using api = await createApiClient()
  const { store } = api.ctx
  const begun = await beginOne(store, await api.registerLiveWorker('a'), { source: 'a' })
  const wide = Object.fromEntries(Array.from({ length: 15 }, (_, n) => [`f${n}`, n]))
  const items = [
    { key: 'k1', data: { name: '<b>', long: 'x'.repeat(300), list: [1, null] } },
    { key: 'k2', data: wide },
    { key: 'k3', data: null },
  ]
  await savePage(store, begun, { items })

  const { items: found } = await api.get(`/api/items/a/latest?run=${begun.run}`)

  assert.deepEqual(
    found.map(({ key }: { key: string }) => key),
    ['k3', 'k2', 'k1'],
  )
  assert.deepEqual(found[0].fields, [{ name: 'data', value: 'null', isCut: false }])
  assert.deepEqual([found[1].fields.length, found[1].omitted], [12, 3])
  const long = { name: 'long', value: `${'x'.repeat(200)}…`, isCut: true }
  const list = { name: 'list', value: '[1,null]', isCut: false }
  assert.deepEqual(found[2].fields, [{ name: 'name', value: '<b>', isCut: false }, long, list])
  assert.equal((await api.get('/api/items/a/latest?limit=1')).items.length, 1)
  await api.get('/api/items/a/latest?limit=21', 400)
  await enqueueSingle(store, 'other')
  await api.get('/api/items/a/latest?run=other', 400)
})

test('nothing is read ahead of the client, and nothing after it has disconnected', async () => {
  await using api = await createApiClient()
  const { store, url, tokens } = api.ctx
  const begun = await beginOne(store, await api.registerLiveWorker('a'), { source: 'a' })
  await savePage(store, begun, { items: makeManyItems(10_000, { text: 'x'.repeat(2_000) }) })
  const { extend } = store
  let reads = 0
  const counting = async (extension: StoreExtension<ItemStore>): Promise<ItemStore> => {
    const opened = await extend(extension)
    const readItems: ItemStore['readItems'] = (...args) => {
      reads++
      return opened.readItems(...args)
    }
    return 'readItems' in opened ? { ...opened, readItems } : opened
  }
  Object.assign(store, { extend: counting })
  const leaving = new AbortController()
  const response = await fetch(`${url}/api/items/a`, {
    headers: { authorization: `Bearer ${tokens.viewer}` },
    signal: leaving.signal,
  })
  const reader = response.body!.getReader()
  await reader.read()
  leaving.abort()
  await assert.rejects(reader.read())
  const readByThen = reads
  await api.get('/api/operations')

  assert.ok(readByThen > 0 && readByThen < 45, `${readByThen} of 50 batches were read`)
  assert.ok(reads <= readByThen + 1, 'it read on')
})
