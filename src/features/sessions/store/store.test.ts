import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { SESSION_STORE } from './store.ts'

const DAY_MS = 24 * 3_600_000
const ID = 'a'.repeat(64)
const SESSION = { id: ID, token: 'maria', tokenMark: 'b'.repeat(64), lastsMs: DAY_MS }

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('a session is seen by every server on the database until it is deleted on one', async () => {
      await using db = await engine.fresh()
      const [one, other] = [
        await openExtended(db, SESSION_STORE),
        await openExtended(db, SESSION_STORE),
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
      const store = await openExtended(db, SESSION_STORE)
      await store.createSession(SESSION)
      await store.createSession({ ...SESSION, token: 'eve' })
      assert.equal((await store.session(ID))?.token, 'maria')
    })

    test('a session ends when it expires, and the next login deletes only expired ones', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, SESSION_STORE)
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
  })
}
