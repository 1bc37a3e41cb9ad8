import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { ACCESS_STORE, type NewOperation } from './store.ts'

const DAY_MS = 24 * 3_600_000
const ID = 'a'.repeat(64)
const SESSION = { id: ID, token: 'maria', tokenMark: 'b'.repeat(64), lastsMs: DAY_MS }

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('a session is seen by every server on the database until it is deleted on one', async () => {
      await using db = await engine.fresh()
      const [one, other] = [
        await openExtended(db, ACCESS_STORE),
        await openExtended(db, ACCESS_STORE),
      ]
      const now = await one.now()

      await one.createSession(SESSION)

      const found = await other.session(ID)
      assert.deepEqual(
        [found?.id, found?.token, found?.tokenMark],
        [ID, 'maria', SESSION.tokenMark],
      )
      assert.ok(found!.createdAt >= now - 1 && found!.createdAt <= (await one.now()))
      // PostgreSQL keeps microseconds, and each time is cut to milliseconds on its own.
      assert.ok(Math.abs(found!.expiresAt - found!.createdAt - DAY_MS) <= 5)
      assert.equal(await other.deleteSession(ID), true)
      assert.equal(await one.session(ID), null)
      assert.equal(await one.deleteSession(ID), false)
    })

    test('a session that is created again stays as it is', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ACCESS_STORE)
      await store.createSession(SESSION)
      await store.createSession({ ...SESSION, token: 'eve' })
      assert.equal((await store.session(ID))?.token, 'maria')
    })

    test('a session ends when it expires, and the next login deletes only expired ones', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ACCESS_STORE)
      const later = { ...SESSION, id: 'c'.repeat(64), lastsMs: 3 * DAY_MS }
      await store.createSession(SESSION)
      await store.createSession(later)
      await db.advanceClock(DAY_MS)
      assert.equal(await store.session(ID), null)
      await store.createSession({ ...SESSION, id: 'd'.repeat(64) })
      const left = await db.raw(`SELECT id FROM ${db.table('http_session')} ORDER BY id`)
      assert.deepEqual(
        left.map(({ id }) => String(id)[0]),
        ['c', 'd'],
      )
      assert.equal((await store.session(later.id))?.token, 'maria')
    })

    test('operations over HTTP are stored in their order, and read page by page', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ACCESS_STORE)
      const before = await store.now()
      for (let n = 0; n < 5; n++) await store.recordOperation(operation(n))

      const first = await store.operations({ limit: 3 })
      const second = await store.operations({ limit: 3, after: first.next! })

      const all = [...first.items, ...second.items]
      assert.deepEqual(
        all.map(({ id: _id, at: _at, ...kept }) => kept),
        [4, 3, 2, 1, 0].map(operation),
      )
      assert.deepEqual(
        all.map(({ id }) => id),
        all.map(({ id }) => id).sort((a, b) => b - a),
      )
      for (const { at } of all) assert.ok(at >= before && at <= before + 60_000)
      assert.equal(second.next, null)
      assert.equal((await store.operations({ limit: 5 })).next, null)
    })

    test('every text of an operation can be stored', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, ACCESS_STORE)
      const odd = 'a\0b \ud83d <script>'

      const texts = { actor: odd, address: odd, call: odd, plan: odd, result: odd }
      await store.recordOperation({ ...operation(0), ...texts, selection: { odd, [odd]: [odd] } })
      await store.recordOperation({ ...operation(1), selection: undefined })

      const { items } = await store.operations({ limit: 2 })
      assert.equal(items[0]!.selection, null)
      assert.match(items[1]!.result, /^a.?b .*<script>$/su)
    })
  })
}

function operation(n: number): NewOperation {
  return {
    actor: 'anna (operator)',
    address: n % 2 === 0 ? '10.0.0.7' : null,
    call: 'POST /api/recovery',
    selection: { sources: ['shop'], n },
    plan: n % 2 === 0 ? null : '0123456789abcdef',
    status: n === 3 ? 409 : 200,
    result: `${n} targets put back in the queue`,
  }
}
