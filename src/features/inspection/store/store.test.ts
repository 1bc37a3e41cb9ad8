import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { newId } from '../../../core/model/id.ts'
import {
  assertAllOk,
  listTargets,
  beginOne,
  claim,
  registerWorker,
  nextCheckpoint,
  SOURCE,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended, type TestDatabase } from '../../../testing/test-database.ts'
import { readDatabaseInfo } from './database-info.ts'
import { INSPECTION_STORE } from './store.ts'

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => {
    test('P14 a sound database shows nothing, before, during and after a run', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      assert.deepEqual((await store.inspect()).counters, {
        checked: 0,
        unchecked: 0,
        mismatches: [],
      })

      const worker = await registerWorker(store)
      await enqueueCrawl(store, ['a', { key: 'b', group: 'TX' }, 'c', 'd'])
      const [a, b, c] = await claim(store, worker, 3)
      await store.checkpoint([nextCheckpoint(a!, { done: true })])
      assertAllOk(await store.fail([{ ...b!, error: 'x', becomes: 'parked' }]))
      await beginOne(store, worker, { source: 'single' })
      const during = await store.inspect()

      assertAllOk(await store.finish([c!]))
      assertAllOk(await store.finish(await claim(store, worker, 1)))
      await store.settle()
      const after = await store.inspect()

      for (const seen of [during, after]) {
        const { durability: _, ...rest } = seen
        assert.deepEqual(rest, {
          counters: { checked: 2, unchecked: 0, mismatches: [] },
          duplicateLiveRuns: [],
          invalidClaims: [],
          withoutEndTime: [],
          leftoverLocks: [],
          blockedWal: null,
        })
      }
    })

    test('P4 the connections of a store are set so that an acknowledged page survives a power cut', async () => {
      await using db = await engine.fresh()
      const { durability } = await (await openExtended(db, INSPECTION_STORE)).inspect()

      assert.deepEqual(
        durability,
        engine.name === 'sqlite'
          ? { journal_mode: 'wal', synchronous: 'full' }
          : { synchronous_commit: 'on' },
      )
    })

    test('P14 books that do not balance are named by run and status', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      const run = await enqueueCrawl(store, 5)
      await enqueueCrawl(store, 2, { source: 'sound' })
      await db.raw(
        `UPDATE ${db.table('run_counters')} SET planned = planned - 2, done = done + 1 WHERE run_id = '${run}'`,
      )

      const { counters } = await store.inspect()

      const wrong = { run, source: SOURCE }
      assert.deepEqual(counters, {
        checked: 2,
        unchecked: 0,
        mismatches: [
          { ...wrong, status: 'planned', recorded: 3, counted: 5 },
          { ...wrong, status: 'done', recorded: 1, counted: 0 },
        ],
      })
    })

    test('P14 a target that vanished, or a run without books, is noticed', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      const [fewer, bookless] = [
        await enqueueCrawl(store, 3),
        await enqueueCrawl(store, 1, { source: 'bookless' }),
      ]
      const [target] = await listTargets(store, fewer)
      await db.raw(`DELETE FROM ${db.table('target')} WHERE id = '${target!.id}'`)
      await db.raw(`DELETE FROM ${db.table('run_counters')} WHERE run_id = '${bookless}'`)

      const { mismatches } = (await store.inspect()).counters

      assert.deepEqual(
        mismatches.map(({ run, recorded, counted }) => [run, recorded, counted]),
        [
          [bookless, 0, 1],
          [fewer, 3, 2],
        ],
      )
    })

    test('P14 books balance in every inspection while the run is worked on', async () => {
      await using db = await engine.fresh()
      const [store, other] = [await db.open(), await openExtended(db, INSPECTION_STORE)]
      const worker = await registerWorker(store)
      await enqueueCrawl(store, 200)
      let working = true
      const look = async (): Promise<number> => {
        let looks = 0
        for (; working || looks === 0; looks++) {
          assert.deepEqual((await other.inspect()).counters.mismatches, [])
        }
        return looks
      }

      const looking = look()
      for (;;) {
        const claims = await claim(store, worker, 5)
        if (claims.length === 0) break
        assertAllOk(
          await store.checkpoint(claims.map((claim) => nextCheckpoint(claim, { done: true }))),
        )
      }
      working = false

      assert.ok((await looking) > 1)
    })

    test('a run too large to be counted in one read is left out, and marked', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      const run = await enqueueCrawl(store, 1)
      await enqueueCrawl(store, 1, { source: 'small' })
      await db.raw(
        `UPDATE ${db.table('run_counters')} SET planned = 9000000 WHERE run_id = '${run}'`,
      )

      assert.deepEqual((await store.inspect()).counters, {
        checked: 1,
        unchecked: 1,
        mismatches: [],
      })
    })

    test('P10 two live runs of one source are found when the guard is gone', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      const run = await enqueueCrawl(store, 1)
      await enqueueCrawl(store, 1, { source: 'alone' })
      const second = newId()
      await db.raw(`DROP INDEX ${db.table('run_live')}`)
      await copyRun(db, run, second)

      assert.deepEqual((await store.inspect()).duplicateLiveRuns, [
        { source: SOURCE, runs: [run, second] },
      ])
    })

    test('P1 claims without a valid owner are found, each with its problem', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      const [ended, unknown, honest] = [
        await registerWorker(store),
        await registerWorker(store),
        await registerWorker(store),
      ]
      const run = await enqueueCrawl(store, 5)
      const [a] = await claim(store, ended, 1)
      const [b] = await claim(store, unknown, 1)
      const [c] = await claim(store, honest, 2)
      const now = engine.name === 'sqlite' ? '1' : 'now()'
      const [target, worker] = [db.table('target'), db.table('worker')]
      await db.raw(`UPDATE ${worker} SET ended_at = ${now} WHERE id = '${ended}'`)
      await db.raw(`DELETE FROM ${worker} WHERE id = '${unknown}'`)
      // The tests' own guard forbids what is to be shown here.
      await db.raw(
        `DROP TRIGGER target_never_back${engine.name === 'sqlite' ? '' : ` ON ${target}`}`,
      )
      await db.raw(`UPDATE ${target} SET epoch = 0 WHERE id = '${c!.target}'`)

      const { invalidClaims } = await store.inspect()

      assert.deepEqual(
        new Set(invalidClaims),
        new Set([
          { target: a!.target, run, source: SOURCE, worker: ended, fault: 'worker-ended' },
          { target: b!.target, run, source: SOURCE, worker: unknown, fault: 'worker-unknown' },
          { target: c!.target, run, source: SOURCE, worker: honest, fault: 'no-epoch' },
        ]),
      )
    })

    test('claims of an ended run are not reported', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      const worker = await registerWorker(store)
      const run = await enqueueCrawl(store, 1)
      await claim(store, worker, 1)
      const now = engine.name === 'sqlite' ? '1' : 'now()'
      await db.raw(
        `UPDATE ${db.table('run')} SET status = 'cancelled', finished_at = ${now} WHERE id = '${run}'`,
      )
      await db.raw(`DELETE FROM ${db.table('worker')}`)

      assert.deepEqual((await store.inspect()).invalidClaims, [])
    })

    test('P7 a run that ended at no time is found', async () => {
      await using db = await engine.fresh()
      const store = await openExtended(db, INSPECTION_STORE)
      const run = await enqueueCrawl(store, 1)
      await db.raw(`UPDATE ${db.table('run')} SET status = 'cancelled' WHERE id = '${run}'`)

      assert.deepEqual((await store.inspect()).withoutEndTime, [{ run, source: SOURCE }])
    })

    test('readDatabaseInfo returns the version and what is pending, and changes nothing', async () => {
      await using db = await engine.empty()
      const before = await readDatabaseInfo(db.url)
      assert.equal(before.version, 0)
      assert.deepEqual(before.pending[0], 'initial')
      const again = await readDatabaseInfo(db.url)
      assert.equal(again.engine === null, before.engine === null, 'the first look made something')

      await (await db.open()).close()
      const current = await readDatabaseInfo(db.url)
      assert.equal(current.engine?.name, engine.name)
      assert.equal(current.version, current.known)
      assert.deepEqual(current.pending, [])
      assert.doesNotMatch(current.where, /password|unstuck:/)

      const now = engine.name === 'sqlite' ? '0' : 'now()'
      await db.raw(
        `INSERT INTO ${db.table('migration')} (number, min_program_version, applied_at) VALUES (999, 999, ${now})`,
      )
      const newer = await readDatabaseInfo(db.url)
      assert.deepEqual([newer.version, newer.pending], [999, []])
    })
  })
}

async function copyRun(db: TestDatabase, run: string, id: string): Promise<void> {
  await db.raw(
    `INSERT INTO ${db.table('run')} (id, source, kind, status, policy, created_at)
     SELECT '${id}', source, kind, status, policy, created_at FROM ${db.table('run')} WHERE id = '${run}'`,
  )
}
