import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../model/errors.ts'
import { LIMITS } from '../../model/limits.ts'
import { makeCheckpoint } from '../../worker/page.ts'
import {
  itemsOf,
  assertAllOk,
  claimOne,
  registerWorker,
  unwrap,
  enqueueCrawl,
  getTarget,
} from '../../../testing/fixtures.ts'
import type { Engine } from '../../../testing/test-database.ts'

/** NUL and lone surrogates: text that a site may send and PostgreSQL cannot store. */
export function dirtyTextTests(engine: Engine): void {
  test('NUL and lone surrogates in item data and cursors become U+FFFD, and are counted', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const checkpoint = makeCheckpoint(claimed, claimed, {
      page: 1,
      items: [
        { url: 'https://a.example/x', data: { 'n\0': ['a\0b', '\ud83d', '\u{1f600}', '\\u0000'] } },
      ],
      next: 'https://a.example/\udc00',
      lastItemId: 'id\0',
      cursor: { at: 'c\ud800', 'k\0': 1 },
      done: false,
    })
    assert.equal(checkpoint.replaced, 7)
    unwrap((await store.checkpoint([checkpoint]))[0]!)

    const [item] = await itemsOf(store)
    assert.deepEqual(item!.data, { 'n\ufffd': ['a\ufffdb', '\ufffd', '\u{1f600}', '\\u0000'] })
    const { next, lastItemId, cursor } = await getTarget(store, claimed.target)
    assert.deepEqual(
      [next, lastItemId, cursor],
      ['https://a.example/\ufffd', 'id\ufffd', { at: 'c\ufffd', 'k\ufffd': 1 }],
    )
    unwrap((await store.checkpoint([checkpoint]))[0]!)
  })

  test('items whose keys or addresses differ only in such characters stay different items', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const claimed = await claimOne(store, await registerWorker(store))
    const keys = [
      'a\ud800',
      'a\ud801',
      'a\udfff',
      'a\ufffd',
      'a\0',
      'a',
      `${'x'.repeat(2_000)}\ud800`,
      `${'x'.repeat(2_000)}\ud801`,
    ]
    const urls = ['https://a.example/\ud800', 'https://a.example/\ud801', 'https://a.example/\0']
    const items = [
      ...keys.map((key) => ({ key, data: key })),
      ...urls.map((url) => ({ url, data: url })),
    ]
    const save = async (page: number): Promise<void> => {
      const at = await getTarget(store, claimed.target)
      const checkpoint = makeCheckpoint(claimed, at, { page, items, next: null, done: false })
      unwrap((await store.checkpoint([checkpoint]))[0]!)
    }
    await save(1)
    const saved = await itemsOf(store)
    assert.equal(saved.length, items.length)
    assert.ok(saved.every(({ key }) => key.isWellFormed() && !key.includes('\0')))
    await save(2)
    assert.deepEqual(
      (await itemsOf(store)).map(({ key, version }) => [key, version]),
      saved.map(({ key }) => [key, 1]),
    )
  })

  test('in target keys and groups they are refused; in addresses and cursors of targets replaced', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 0, { planned: false })
    for (const [target, why] of [
      [{ key: 'a\0' }, /key has a NUL or a lone surrogate/],
      [{ key: 'a\ud800' }, /key has a NUL or a lone surrogate/],
      [{ key: 'a', group: 'g\udc00' }, /group has a NUL or a lone surrogate/],
      [{ key: 'a', group: 7 }, /group must be text, not 7/],
      [{ key: 'a', grup: 'g' }, /there is no "grup"; did you mean group\?/],
      [{ key: 'a', url: 'u'.repeat(LIMITS.url + 1) }, /url is longer than 8192 bytes/],
      [{ key: 'a', group: 'g'.repeat(LIMITS.group + 1) }, /group is longer than 1000 bytes/],
      [{ key: 'a', cursor: 'c'.repeat(LIMITS.cursor) }, /larger than 256 KB/],
    ] as const) {
      await assert.rejects(store.plan(run, [target as never]), (error: unknown) => {
        assert.ok(error instanceof UsageError)
        assert.match(error.message, why)
        return true
      })
    }
    await store.plan(run, [{ key: 'a', url: 'https://a.example/\0', cursor: ['\ud800'] }])
    const [target] = (await store.targets(run, { limit: 10 })).items
    assert.deepEqual([target!.url, target!.cursor], ['https://a.example/\ufffd', ['\ufffd']])
    const claimed = await claimOne(store, await registerWorker(store))
    assertAllOk(
      await store.fail([
        { ...claimed, error: 'x', becomes: { retryInMs: 0 }, nextCursor: { 'a\0': '\0' } },
      ]),
    )
    assert.deepEqual((await getTarget(store, claimed.target)).cursor, { 'a\ufffd': '\ufffd' })
  })
}
