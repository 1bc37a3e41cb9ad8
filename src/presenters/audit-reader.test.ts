import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresEngine } from '../testing/postgres-engine.ts'
import { sqliteEngine } from '../testing/sqlite-engine.ts'
import { enqueueCrawl } from '../testing/fixtures.ts'
import type { Store } from '../core/store/store.ts'
import { AuditReader } from './audit-reader.ts'

let count = 0

/** One entry in the trail, by a person's word. */
async function cancelOne(store: Store): Promise<string> {
  const because = `reason ${count++}`
  const run = await enqueueCrawl(store, 1, { source: `s${count}` })
  const info = { actor: 'a person', because, action: 'cancel', evidence: null }
  await store.moveRun({ run, to: 'cancelled', expected: {}, ...info })
  return because
}

async function readAll(reader: AuditReader): Promise<string[]> {
  const all: string[] = []
  for (let some; (some = await reader.next()).length > 0;) {
    all.push(...some.map(({ because }) => because))
  }
  return all
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`${engine.name}: every entry is read once and in order, from the beginning or from now on`, async () => {
    await using database = await engine.fresh()
    const store = await database.open()
    const old = [await cancelOne(store), await cancelOne(store)]
    const whole = new AuditReader(store, 0)
    const fromNow = await AuditReader.fromNow(store)
    assert.deepEqual(await readAll(whole), old)
    assert.deepEqual(await fromNow.next(), [])
    const fresh = [await cancelOne(store), await cancelOne(store), await cancelOne(store)]
    assert.deepEqual(await readAll(whole), fresh)
    assert.deepEqual(await readAll(fromNow), fresh)
    assert.deepEqual(await readAll(whole), [])
  })
}

test('the reader waits a limited time for an entry whose transaction ends after later ones', async () => {
  await using database = await postgresEngine.fresh()
  const store = await database.open()
  const reader = await AuditReader.fromNow(store)
  const first = await cancelOne(store)
  assert.deepEqual(await readAll(reader), [first])
  // As a rolled back transaction leaves it.
  await database.raw(`SELECT nextval(pg_get_serial_sequence('unstuck.audit', 'id'))`)
  const later = await cancelOne(store)
  assert.deepEqual(await readAll(reader), [])
  await database.advanceClock(3_000)
  assert.deepEqual(await readAll(reader), [])
  await database.raw(`
    INSERT INTO unstuck.audit (id, actor, action, source, run_id, because, evidence, before, after)
    OVERRIDING SYSTEM VALUE
    SELECT id - 1, actor, action, source, run_id, 'late', evidence, before, after
      FROM unstuck.audit WHERE because = '${later}'
  `)
  assert.deepEqual(await readAll(reader), ['late', later])
  await database.raw(`SELECT nextval(pg_get_serial_sequence('unstuck.audit', 'id'))`)
  const last = await cancelOne(store)
  assert.deepEqual(await readAll(reader), [])
  await database.advanceClock(5_000)
  assert.deepEqual(await readAll(reader), [last])
  // An old trail is read without waiting, whatever is missing in it.
  assert.deepEqual(await readAll(new AuditReader(store, 0)), [first, 'late', later, last])
})
