import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../../index.ts'
import { createApiClient } from '../../../testing/api-client.ts'
import { createCliTestContext, HOSTILE_TEXT } from '../../../testing/cli-test-context.ts'
import { beginOne, itemsOf, registerWorker, savePage } from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'
import type { Store } from '../../../core/store/store.ts'
import { shortId } from '../../../core/model/id.ts'
import type { NewItem } from '../../../core/model/item.ts'

/** A run that saves these items with one page. */
async function saveItems(store: Store, items: NewItem[], source = 'shop'): Promise<string> {
  const worker = await registerWorker(store, { source, leaseMs: 600_000 })
  const begun = await beginOne(store, worker, { source })
  await savePage(store, begun, { items, done: true })
  await store.settle(begun.run)
  return begun.run
}

const lines = (text: string): any[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
const keysOf = (items: readonly { key: string }[]): string[] => items.map(({ key }) => key)

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: items by run, time and number are the same in CLI, HTTP and library`, async () => {
    await using api = await createApiClient({ engine })
    const { store, database } = api.ctx
    const first = await saveItems(
      store,
      ['a', 'b', 'c', 'd'].map((key) => ({ key, data: 1 })),
    )
    const changed = (await itemsOf(store, 'shop')).map(({ changedAt }) => changedAt)
    while ((await store.now()) <= Math.max(...changed) + 1);
    const second = await saveItems(store, [
      { key: 'a', data: 1 },
      { key: 'b', data: 2 },
    ])
    await using library = await open({ db: database.url, config: false })
    const since = new Date(Math.max(...changed) + 1)

    for (const [options, wanted] of [
      [{ run: second }, ['a', 'b']],
      [{ run: first }, ['c', 'd']],
      [{ run: first, limit: 1 }, ['c']],
      [{ limit: 3 }, ['a', 'b', 'c']],
      [{ group: '' }, ['a', 'b', 'c', 'd']],
      [{ group: 'CA' }, []],
      [{ since: '1h', limit: 2 }, null],
    ] as const) {
      const flags = Object.entries(options).flatMap(([name, value]) => [`--${name}`, `${value}`])
      const query = new URLSearchParams({ ...options, format: 'json' } as never)
      const args = ['items', 'shop', ...flags, '--json', '--db', database.url]
      const printed = JSON.parse((await unstuck(args, { cwd: api.ctx.folder })).stdout)
      const { items, next } = await library.items('shop', options)

      if (wanted) assert.deepEqual(keysOf(items), wanted, JSON.stringify(options))
      assert.deepEqual(printed, { items, next }, JSON.stringify(options))
      assert.deepEqual(JSON.parse(await api.get(`/api/items/shop?${query}`)), printed)
    }
    assert.deepEqual(keysOf((await library.items('shop', { since })).items), ['b'])
    const all: string[] = []
    for await (const { key } of library.items('shop', { since: '1h', limit: 3 })) all.push(key)
    assert.deepEqual([...all].sort(), ['a', 'b', 'c', 'd'])
    assert.equal(all.at(-1), 'b', 'what changed last is last')
    const other = await saveItems(store, [], 'other')
    await assert.rejects(
      async () => library.items('shop', { run: other }),
      /is a run of other, not/,
    )
  })
}

test('items --limit ends with where to continue, and --after continues there', async () => {
  await using ctx = await createCliTestContext()
  await saveItems(
    ctx.store,
    Array.from({ length: 45 }, (_, n) => ({ key: `k${n + 10}`, data: n })),
  )

  const page = async (...args: string[]): Promise<any> => ctx.json(['items', 'shop', ...args])
  const first = await page('--limit', '30')
  assert.deepEqual([first.items.length, first.next], [30, 'k39'])
  const rest = await page('--limit', '30', '--after', first.next)
  assert.deepEqual([rest.items.length, rest.next], [15, null])
  assert.deepEqual((await page()).next, null)
  assert.equal(lines((await ctx.cli(['items', 'shop', '--limit', '7'])).stdout).length, 7)
  const none = await ctx.cli(['items', 'shop', '--group', 'CA'])
  assert.deepEqual([none.stdout, none.stderr], ['', 'Note: there is no group CA\n'])
  assert.match((await ctx.cli(['items', 'shop', '--since', '0s'])).stderr, /No items match\.\n/)
})

test('the items of a run that a later run saw again are said to belong to that', async () => {
  await using ctx = await createCliTestContext()
  const run = await saveItems(ctx.store, [{ key: 'a', data: 1 }])
  await saveItems(ctx.store, [{ key: 'a', data: 1 }])
  const { stderr } = await ctx.cli(['items', 'shop', '--run', run])
  assert.match(stderr, /No items match\. An item belongs to the run that saw it last/)
})

test('a run that is also the name of a source is refused with the commands for both', async () => {
  await using ctx = await createCliTestContext()
  const source = "joe's shop"
  const run = await saveItems(ctx.store, [{ key: 'a', data: 1 }], source)
  await saveItems(ctx.store, [{ key: 'b', data: 1 }], shortId(run))
  const { stderr } = await ctx.cli(['items', source, '--run', shortId(run)], 2)
  assert.ok(
    stderr.includes(`For the run: \`unstuck items 'joe'\\''s shop' --run ${run} --db`),
    stderr,
  )
})

test('CSV has one column per field of the data', async () => {
  await using ctx = await createCliTestContext()
  const data = [
    { name: 'Acme', price: -3, tags: ['a'] },
    { name: '=cmd()', url: 'https://x.example/', __proto__x: 1, ['=1+1']: true },
    'plain text',
  ]
  await saveItems(
    ctx.store,
    data.map((one, n) => ({ key: `${n}`, data: one })),
  )

  const { stdout } = await ctx.cli(['items', 'shop', '--format', 'csv'])
  const [header, ...rows] = stdout.trimEnd().split('\n')

  assert.equal(
    header,
    "key,url,run,group,firstSeenAt,changedAt,lastSeenAt,name,price,tags,data.url,__proto__x,'=1+1,data",
  )
  assert.match(rows[0]!, /Z,Acme,-3,"\[""a""\]",,,,$/)
  assert.match(rows[1]!, /Z,'=cmd\(\),,,https:\/\/x\.example\/,1,true,$/)
  assert.match(rows[2]!, /Z,,,,,,,plain text$/)
})

test('a field that the first items do not have goes into the column _more', async () => {
  await using ctx = await createCliTestContext()
  const items = Array.from({ length: 1_500 }, (_, n) => ({
    key: `k${n + 1_000}`,
    data: n === 1_400 ? { n, late: HOSTILE_TEXT } : { n },
  }))
  await saveItems(ctx.store, items)

  const rows = (await ctx.cli(['items', 'shop', '--format', 'csv'])).stdout.trimEnd().split('\n')

  assert.match(rows[0]!, /,n,_more$/)
  assert.equal(rows.length, 1_501)
  assert.match(rows[1]!, /Z,0,$/)
  assert.match(rows[1_401]!, /Z,1400,"\{""late"":""/)
})
