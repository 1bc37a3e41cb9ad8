import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { NotFoundError, UsageError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended, type TestDatabase } from '../../../testing/test-database.ts'
import { CRAWLEE_STORE, hasRecord, type RecordContent } from './store.ts'

const ALL = { offset: 0, limit: 1_000_000, desc: false }
const ENTRY = { key: null, data: '1' }
const UNKEEPABLE = ['', 'a\0b', 'half \ud800', 'x'.repeat(1_001)]

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('ten callers that create a storage of one name at once get the same one; each kind has its own names', async () => {
      await using db = await engine.fresh()
      const stores = await Promise.all(
        Array.from({ length: 10 }, () => openExtended(db, CRAWLEE_STORE)),
      )
      const store = stores[0]!

      const made = await Promise.all(stores.map((store) => store.makeStorage('dataset', 'default')))
      const other = await store.makeStorage('records', 'default')

      assert.equal(new Set(made.map(({ id }) => id)).size, 1)
      assert.notEqual(other.id, made[0]!.id)
      assert.equal((await store.storages('dataset', ALL)).total, 1)
    })

    test('a storage is found by its id and by its name, and knows when it was looked at and when it changed', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id, createdAt } = await store.makeStorage('dataset', 'prices')
      await store.makeStorage('dataset', id)

      assert.equal((await store.storage('dataset', 'prices'))?.id, id)
      assert.equal(
        (await store.storage('dataset', id))?.name,
        'prices',
        'the id goes before a name',
      )
      assert.equal(await store.storage('queue', 'prices'), null)
      assert.equal(await store.storage('dataset', 'PRICES'), null)
      assert.equal(await store.storage('dataset', newId()), null)

      await db.advanceClock(5_000)
      const looked = (await store.storage('dataset', id))!
      assert.ok(looked.accessedAt >= createdAt)
      assert.equal(looked.modifiedAt, looked.createdAt)
      await store.append(id, [ENTRY])
      const changed = (await store.storage('dataset', id))!
      assert.ok(changed.modifiedAt > looked.modifiedAt)
      assert.equal(changed.createdAt, looked.createdAt)
    })

    test('storages come in the order they were made, in parts, from either end', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const names = ['c', 'a', 'b']
      for (const name of names) {
        await store.makeStorage('queue', name)
        await db.advanceClock(10)
      }

      const read = async (offset: number, limit: number, desc: boolean) => {
        const { total, items } = await store.storages('queue', { offset, limit, desc })
        assert.equal(total, 3)
        return items.map(({ name }) => name).join('')
      }

      assert.equal(await read(0, 9, false), 'cab')
      assert.equal(await read(0, 2, true), 'ba')
      assert.equal(await read(1, 1, false), 'a')
      assert.equal(await read(3, 5, false), '')
      assert.deepEqual(await store.storages('dataset', ALL), { total: 0, items: [] })
    })

    test('a storage can take another name, but not one that is taken', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id } = await store.makeStorage('dataset', 'a')
      await store.makeStorage('dataset', 'b')
      await store.makeStorage('queue', 'c')

      await assert.rejects(store.renameStorage(id, 'b'), UsageError)
      assert.equal(await store.renameStorage(id, 'a'), true)
      assert.equal(await store.renameStorage(id, 'c'), true)
      assert.equal(await store.renameStorage(newId(), 'd'), false)

      assert.equal((await store.storage('dataset', 'c'))?.id, id)
      assert.equal(await store.storage('dataset', 'a'), null)
    })

    test('a storage that is dropped takes all that is in it along, and nothing else', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const [{ id }, kept] = [
        await store.makeStorage('dataset', 'a'),
        await store.makeStorage('dataset', 'b'),
      ]
      const records = await store.makeStorage('records', 'a')
      await store.append(id, [ENTRY, ENTRY, ENTRY])
      await store.append(kept.id, [ENTRY, ENTRY])
      await store.setRecord(records.id, 'k', text('v'))

      assert.equal(await store.dropStorage(id), true)
      assert.equal(await store.dropStorage(records.id), true)
      assert.equal(await store.dropStorage(id), false)

      assert.equal(await store.storage('dataset', 'a'), null)
      assert.equal(await count(db, 'crawlee_dataset_entry'), 2)
      assert.equal(await count(db, 'crawlee_record'), 0)
      await assert.rejects(store.append(id, [ENTRY]), NotFoundError)
      await assert.rejects(store.setRecord(records.id, 'k', text('v')), NotFoundError)
      assert.deepEqual(await store.entries(id, ALL), { total: 0, items: [] })
      assert.equal(await store.record(records.id, 'k'), null)
    })

    test('hostile names and keys stand for themselves; those that cannot be kept are refused, and never found', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const hostile = [
        "'; DROP TABLE storage; --",
        '../../etc',
        '%',
        '_',
        '$1',
        '\n',
        'ü😀',
        'NULL',
      ]
      for (const name of hostile) await store.makeStorage('records', name)
      const { id } = (await store.storage('records', '%'))!
      for (const key of hostile) await store.setRecord(id, key, text(key))

      for (const name of hostile) {
        assert.equal((await store.storage('records', name))?.name, name)
        assert.equal(Buffer.from((await store.record(id, name))!.value).toString(), name)
      }
      for (const bad of UNKEEPABLE) {
        await assert.rejects(store.makeStorage('records', bad), UsageError)
        await assert.rejects(store.renameStorage(id, bad), UsageError)
        await assert.rejects(store.setRecord(id, bad, text('v')), UsageError)
        await assert.rejects(store.append(id, [{ key: bad, data: '1' }]), UsageError)
        assert.equal(await store.storage('records', bad), null)
        assert.equal(await store.record(id, bad), null)
        assert.equal(await hasRecord(store, id, bad), false)
        await store.setRecord(id, bad, null)
      }
      assert.equal((await store.storages('records', ALL)).total, hostile.length)
      assert.equal((await store.recordKeys(id, { limit: 100 })).length, hostile.length)
    })

    test('records come back byte by byte, with their type; the last one that was set counts', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id } = await store.makeStorage('records', 'default')
      const all = Uint8Array.from({ length: 1_000_000 }, (_, n) => n % 251)
      const values = { empty: new Uint8Array(0), nul: Uint8Array.of(0, 255, 39, 92), all }
      for (const [key, value] of Object.entries(values)) {
        await store.setRecord(id, key, text('old'))
        await store.setRecord(id, key, { value, contentType: 'application/x; charset=ü' })
      }

      for (const [key, value] of Object.entries(values)) {
        const record = (await store.record(id, key))!
        assert.equal(Buffer.compare(record.value, value), 0, key)
        assert.equal(record.contentType, 'application/x; charset=ü')
        assert.equal(await hasRecord(store, id, key), true)
      }
      assert.deepEqual(
        await store.recordKeys(id, { limit: 9 }),
        Object.entries(values)
          .map(([key, value]) => ({ key, size: value.length }))
          .sort((a, b) => (a.key < b.key ? -1 : 1)),
      )
      await store.setRecord(id, 'all', null)
      await store.setRecord(id, 'all', null)
      assert.equal(await store.record(id, 'all'), null)
      assert.equal(await hasRecord(store, id, 'all'), false)
    })

    test('keys of records come in the order of their bytes, from after one of them, under a prefix, whatever it is', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, CRAWLEE_STORE)
      const { id } = await store.makeStorage('records', 'default')
      const other = await store.makeStorage('records', 'other')
      const odd = [
        '%a',
        '_a',
        'A',
        'a',
        'a%',
        'a%b',
        'a_',
        'a_b',
        'aa',
        'ab',
        'b',
        '\ud7ff',
        '\ue000',
      ]
      const keys = [
        ...odd,
        'z\u{10ffff}',
        'z\u{10ffff}\u{10ffff}a',
        '\u{10ffff}',
        '\u{10ffff}b',
        '😀',
      ]
      for (const key of keys) await store.setRecord(id, key, text(''))
      for (const key of keys) await store.setRecord(other.id, key, text(''))
      const inOrder = keys.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

      for (const prefix of [undefined, '', ...keys, 'a\0', 'nothing']) {
        for (const after of [undefined, '', ...keys, 'a\0']) {
          const read = await store.recordKeys(id, { prefix, after, limit: 99 })
          const expected = inOrder.filter(
            (key) =>
              key.startsWith(prefix ?? '') &&
              Buffer.compare(Buffer.from(key), Buffer.from(after ?? '')) > 0,
          )
          const what = `prefix ${prefix}, after ${after}`
          assert.deepEqual(
            read.map(({ key }) => key),
            expected,
            what,
          )
        }
      }
      const [first, ...more] = await store.recordKeys(id, { prefix: 'a', after: 'a', limit: 1 })
      assert.deepEqual([first?.key, more.length], ['a%', 0])
    })
  })
}

function text(value: string): RecordContent {
  return { value: Buffer.from(value), contentType: 'text/plain' }
}

async function count(db: TestDatabase, table: string): Promise<number> {
  return (await db.raw(`SELECT 1 FROM ${db.table(table)}`)).length
}
