import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DatabaseError } from '../../model/errors.ts'
import { exitCodeOf } from '../../model/exit-codes.ts'
import { claim, registerWorker, enqueueCrawl } from '../../../testing/fixtures.ts'
import { createPreRelease } from '../../../testing/pre-release.ts'
import { startStoreProcesses } from '../../../testing/store-process.ts'
import type { Engine } from '../../../testing/test-database.ts'
import { readDatabaseInfo } from '../../../features/inspection/store/database-info.ts'

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

  test('a database of a pre-release is refused, and nothing is written', async () => {
    await using db = await engine.empty()
    const contents = await createPreRelease(db, engine)
    const before = await contents()

    await assert.rejects(db.open(), (error) => {
      assert.ok(error instanceof DatabaseError)
      assert.equal(error.code, 'E_SCHEMA_OLDER')
      assert.match(error.message, /made by a pre-release of unstuck \(schema version 8\)/)
      assert.equal(exitCodeOf(error), 9)
      return true
    })
    const { version, pending } = await readDatabaseInfo(db.url)

    assert.deepEqual([version, pending], [8, []])
    assert.deepEqual(await contents(), before)
  })

  test('a schema newer than the program is refused, and nothing is written', async () => {
    await using db = await engine.fresh()
    await db.raw(newMigration(engine, db.table('migration'), 999, 1))
    const before = await db.raw(`SELECT * FROM ${db.table('migration')}`)

    await assert.rejects(db.open(), { code: 'E_SCHEMA_NEWER' })

    assert.deepEqual(await db.raw(`SELECT * FROM ${db.table('migration')}`), before)
  })

  test('a heartbeat reports that the schema requires a newer program', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const beat = { worker, claimIds: [], loopLagMs: 0 }
    assert.equal((await store.heartbeat(beat)).isOutdated, false)

    await db.raw(newMigration(engine, db.table('migration'), 999, 1))
    assert.equal((await store.heartbeat(beat)).isOutdated, false, 'a migration that only adds')

    await db.raw(`UPDATE ${db.table('migration')} SET min_program_version = 999 WHERE number = 999`)
    assert.equal((await store.heartbeat(beat)).isOutdated, true)
  })

  test('the time of the store is the wall clock time', async () => {
    await using db = await engine.fresh()
    const store = await db.open()

    const now = await store.now()

    assert.ok(Math.abs(now - Date.now()) < 60_000)
    assert.equal(store.engine, engine.name)
    assert.doesNotMatch(store.location, /password/)
  })
}

function newMigration(engine: Engine, table: string, number: number, minVersion: number): string {
  const now = engine.name === 'sqlite' ? '0' : 'now()'
  return `INSERT INTO ${table} (number, min_program_version, applied_at) VALUES (${number}, ${minVersion}, ${now})`
}
