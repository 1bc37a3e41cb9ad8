import assert from 'node:assert/strict'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId, type WorkerId } from '../model/id.ts'
import { journalName, openJournal, pruneJournals } from '../../lib/files/journal.ts'
import { assertCountersConsistent } from '../../testing/assert-counters.ts'
import { claimOne, registerWorker, savePage, enqueueCrawl } from '../../testing/fixtures.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { REAL_CLOCK } from '../host/clock.ts'
import { runJob } from './jobs.ts'
import { sampleJob } from './sampling.ts'

const HOUR = 60 * 60_000
const ENGINES = process.env['UNSTUCK_TEST_PG'] ? [sqliteEngine, postgresEngine] : [sqliteEngine]

for (const engine of ENGINES) {
  test(`${engine.name}: the rows of ended workers are bounded by number within a day, and by age after it`, async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const run = await enqueueCrawl(store, 1)
    const first = await registerWorker(store)
    await savePage(store, await claimOne(store, first), { done: true })
    await store.retireWorker(first)
    const row = (await db.raw(`SELECT * FROM ${db.table('worker')}`))[0]!
    const columns = Object.keys(row).filter((name) => name !== 'id')
    const ids = Array.from({ length: 1_100 }, () => `('${newId()}')`).join(', ')
    const id = engine.name === 'postgres' ? 'new::uuid' : 'new'
    await db.raw(
      `WITH ids(new) AS (VALUES ${ids}) INSERT INTO ${db.table('worker')} (id, ${columns.join(', ')})
       SELECT ${id}, ${columns.join(', ')} FROM ids CROSS JOIN ${db.table('worker')} w WHERE w.id = '${first}'`,
    )
    const rows = async (): Promise<number> =>
      Number((await db.raw(`SELECT count(*) AS n FROM ${db.table('worker')}`))[0]!['n'])
    const worker = await registerWorker(store)
    const sample = (): Promise<void> =>
      runJob(sampleJob(store), {
        clock: REAL_CLOCK,
        acquireLeadership: (role, forMs) => store.acquireLeadership(worker, forMs, role),
        onError: (_, error) => assert.fail(error as Error),
      })

    await sample()
    assert.equal(await rows(), 1_102, 'ended a moment ago')
    await db.advanceClock(2 * HOUR)
    await sample()
    assert.equal(await rows(), 1_001, 'the newest thousand, and the live one')
    await db.advanceClock(25 * HOUR)
    await sample()
    assert.equal(await rows(), 1)
    await assertCountersConsistent(store, run)
    assert.equal((await store.run(run))?.counts.pages, 1)
  })
}

/** A folder of journals, and a store that knows their workers. */
async function journals() {
  const db = await sqliteEngine.fresh()
  const store = await db.open()
  const folder = mkdtempSync(join(tmpdir(), 'unstuck-journals-'))
  const age = (name: string, hours: number): void => {
    const then = Date.now() / 1_000 - hours * 3_600
    utimesSync(join(folder, name), then, then)
  }
  return {
    store,
    folder,
    remove: () => pruneJournals(folder, async () => store, Date.now()),
    age,
    /** Of a worker that last wrote so many hours ago. */
    journal: (
      worker: WorkerId,
      hours: number,
      name = journalName('shop', worker, 4711),
    ): string => {
      openJournal(join(folder, name), worker)({ type: 'heartbeat', claims: 0, loopLagMs: 0 })
      age(name, hours)
      return name
    },
    async [Symbol.asyncDispose]() {
      rmSync(folder, { recursive: true })
      await db[Symbol.asyncDispose]()
    },
  }
}

test('journals of ended workers are deleted after a week; those of live workers and unrelated files stay', async () => {
  await using set = await journals()
  const { store, folder } = set
  const [ended, living] = [await registerWorker(store), await registerWorker(store)]
  await store.retireWorker(ended)
  const earlier = [newId(), await registerWorker(store)] as const
  const old = [
    set.journal(ended, 24 * 8),
    set.journal(newId(), 24 * 8),
    set.journal(earlier[0], 24 * 8, `${earlier[0]}.jsonl`),
  ]
  const kept = [
    set.journal(living, 24 * 8),
    set.journal(newId(), 24 * 6),
    set.journal(earlier[1], 24 * 8, `${earlier[1]}.jsonl`),
    // Its first line names another worker.
    set.journal(newId(), 24 * 8, journalName('shop', newId(), 4711)),
  ]
  const others = [
    `${newId()}.jsonl`,
    `${newId()}.jsonl.zst`,
    journalName('shop', newId(), 1),
    `${journalName('shop', newId(), 1)}.zst`,
    'notes.jsonl',
    `${newId()}.txt`,
  ]
  for (const name of others) {
    writeFileSync(join(folder, name), '{"mine":1}\n')
    set.age(name, 24 * 30)
  }
  const link = `${newId()}.jsonl`
  symlinkSync(join(folder, old[0]!), join(folder, link))

  assert.equal(await set.remove(), 3)
  for (const name of old) assert.equal(existsSync(join(folder, name)), false)
  assert.deepEqual(readdirSync(folder).sort(), [...kept, ...others, link].sort())
})

test('of more than a thousand journals the oldest go, but none that was written to within the hour', async () => {
  await using set = await journals()
  const { store, folder } = set
  const living = set.journal(await registerWorker(store), 5)
  for (let n = 0; n < 20; n++) set.journal(newId(), 4)
  for (let n = 0; n < 1_010; n++) set.journal(newId(), 0.5)

  assert.equal(await set.remove(), 20)
  assert.equal(readdirSync(folder).length, 1_011)
  assert.equal(existsSync(join(folder, living)), true)
  assert.equal(await set.remove(), 0)
})
