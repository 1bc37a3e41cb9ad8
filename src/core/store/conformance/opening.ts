import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SchemaTooNewError } from '../../model/errors.ts'
import { claim, registerWorker, enqueueCrawl } from '../../../testing/fixtures.ts'
import { startStoreProcesses } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'

export function openingTests(engine: Engine): void {
  test('many stores that open one fresh database at once all succeed', async () => {
    await using db = await engine.empty()

    const [here, there] = await Promise.all([
      Promise.all(Array.from({ length: 8 }, () => db.open())),
      startStoreProcesses(db.url, 3, 4),
    ])
    await using _ended = there

    const worker = await registerWorker(here[0]!)
    await enqueueCrawl(here[1]!, 1)
    assert.equal((await claim(here[2]!, worker)).length, 1)
  })

  test('opening again changes nothing', async () => {
    await using db = await engine.empty()
    const first = await db.open()
    const run = await enqueueCrawl(first, 3)
    await first.close()

    const second = await db.open()

    assert.equal((await second.run(run))?.counts.targets.planned, 3)
    const versions = await db.raw(`SELECT number FROM ${db.table('migration')}`)
    assert.equal(new Set(versions.map((row) => row.number)).size, versions.length)
  })

  test('an older schema is brought up to date, with all that is in it, beside a program that does not know it', async () => {
    await using db = await engine.empty()
    const old = await db.open()
    const worker = await registerWorker(old)
    const run = await enqueueCrawl(old, 3)
    await claim(old, worker, 1)
    for (const text of [
      ...['sample', 'alert', 'telling', 'operation'].map((name) => `DROP TABLE ${db.table(name)}`),
      ...['adopted_row', 'adopted_intent'].map((name) => `DROP TABLE ${db.table(name)}`),
      ...['dataset_entry', 'record', 'storage', 'http_session', 'lost_claim'].map(
        (name) => `DROP TABLE ${db.table(name)}`,
      ),
      `DROP TABLE IF EXISTS ${db.table('clock')}`,
      ...['run_listed', 'run_by_age', 'run_by_end', 'target_troubled'].map(
        (name) => `DROP INDEX ${db.table(name)}`,
      ),
      `ALTER TABLE ${db.table('worker')} DROP COLUMN stats`,
      `ALTER TABLE ${db.table('target')} DROP COLUMN crashes_since_epoch`,
      `DELETE FROM ${db.table('migration')} WHERE number >= 4`,
    ]) {
      await db.raw(text)
    }

    const store = await db.open()

    await store.takeSample()
    assert.equal((await store.samples({ since: 0, until: 8e15, run })).length, 1)
    assert.equal((await store.run(run))?.counts.targets.in_progress, 1)
    assert.equal((await old.heartbeat({ worker, claimIds: [], loopLagMs: 0 })).isOutdated, false)
    assert.equal((await claim(old, worker, 5)).length, 2)
  })

  test('a schema newer than the program is refused, and nothing is written', async () => {
    await using db = await engine.fresh()
    await db.raw(newMigration(engine, db.table('migration'), 999, 1))
    const before = await db.raw(`SELECT * FROM ${db.table('migration')}`)

    await assert.rejects(db.open(), SchemaTooNewError)

    assert.deepEqual(await db.raw(`SELECT * FROM ${db.table('migration')}`), before)
  })

  test('a worker learns with its beat that the schema has left it behind', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const beat = { worker, claimIds: [], loopLagMs: 0 }
    assert.equal((await store.heartbeat(beat)).isOutdated, false)

    await db.raw(newMigration(engine, db.table('migration'), 999, 1))
    assert.equal((await store.heartbeat(beat)).isOutdated, false, 'a migration that only adds')

    await db.raw(`UPDATE ${db.table('migration')} SET lowest = 999 WHERE number = 999`)
    assert.equal((await store.heartbeat(beat)).isOutdated, true)
  })

  test('the clock of the store is the time of day', async () => {
    await using db = await engine.fresh()
    const store = await db.open()

    const now = await store.now()

    assert.ok(Math.abs(now - Date.now()) < 60_000)
    assert.equal(store.engine, engine.name)
    assert.doesNotMatch(store.location, /password/)
  })
}

function newMigration(engine: Engine, table: string, number: number, lowest: number): string {
  const now = engine.name === 'sqlite' ? '0' : 'now()'
  return `INSERT INTO ${table} (number, lowest, applied_at) VALUES (${number}, ${lowest}, ${now})`
}
