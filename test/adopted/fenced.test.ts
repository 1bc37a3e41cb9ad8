import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdoptedOptions } from '../../src/adopted/mapping.ts'
import { STEADY } from '../../src/decide/sign.ts'
import { recover, type Door } from '../../src/runtime/recovery.ts'
import { sweep } from '../../src/runtime/sweep.ts'
import { revert } from '../../src/runtime/steering.ts'
import type { Store } from '../../src/store/store.ts'
import { isLong } from '../../src/testing/length.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { qualificationRuns, type UsersTable } from '../../src/testing/users-tables.ts'
import { ago, setStage, type Scene } from './stage.ts'

/** One that beats. */
const workRuns: UsersTable = {
  sql: { sqlite: 'work_runs', postgres: 'work_runs' },
  ddl: {
    sqlite: `CREATE TABLE work_runs (id INTEGER PRIMARY KEY, status TEXT, owner TEXT, beat TEXT, ended TEXT, why TEXT, pages INTEGER)`,
    postgres: `CREATE TABLE work_runs (id int PRIMARY KEY, status text, owner text, beat timestamptz, ended timestamptz, why text, pages int)`,
  },
  options: { sqlite: beating(), postgres: beating() },
  sqliteTime: (at) => at.toISOString(),
}

function beating(): AdoptedOptions {
  return {
    table: 'work_runs',
    columns: {
      id: 'id',
      status: 'status',
      owner: 'owner',
      heartbeatAt: 'beat',
      finishedAt: 'ended',
      error: 'why',
      done: 'pages',
    },
    statuses: { active: 'busy', queued: 'waiting', failed: 'broken', succeeded: 'fine' },
    policy: { lease: '150ms', heartbeat: '50ms' },
  }
}

const silent = { status: 'busy', owner: 'host-1', beat: ago(20), pages: 3 }
const stale = { staleAfterMs: 5 * 60_000, onStale: 'fail' as const }
const old: Scene = {
  table: qualificationRuns,
  rows: [{ id: 'old', status: 'PROCESSING', total: 1, createdAt: ago(10) }],
}

/** The store of somebody who is overtaken right before each write to the user's table. */
const overtakenBy =
  (writer: () => Promise<unknown>) =>
  (own: Store): Store => ({
    ...own,
    intend: async (intent) => {
      await writer()
      await own.intend(intent)
    },
  })

const engines = isLong ? [sqliteEngine, postgresEngine] : [sqliteEngine]
for (const engine of engines) {
  test(`P2 five who recover the rows of a table at once act as one: one word, one entry, one onResume, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using stage = await setStage(
      engine,
      {
        work: {
          table: workRuns,
          rows: [{ id: 1, ...silent }],
          options: { onResume: (row) => resumed.push(row['id']) },
        },
        qualification: old,
      },
      stale,
    )
    const doors: Door[] = []
    for (let n = 1; n <= 5; n++) doors.push({ store: await stage.another(), actor: `number ${n}` })

    const all = await Promise.all(doors.map((door) => recover(door, { judge: STEADY })))

    const applied = all.flatMap(({ verdicts }) => verdicts).filter((verdict) => verdict.applied)
    assert.deepEqual(applied.map(({ source, action }) => `${source} ${action}`).sort(), [
      'qualification fail',
      'work resume',
    ])
    assert.deepEqual(resumed.map(String), ['1'])
    const entries = await stage.store.audit({ limit: 50 })
    assert.deepEqual(entries.map(({ action }) => action).sort(), ['fail', 'resume'])
    assert.deepEqual(await stage.store.openIntents(-60_000, 10), [])
    const [row] = await stage.rows('work')
    assert.deepEqual(
      [row!['status'], row!['owner'], row!['beat'], row!['pages']],
      ['waiting', null, null, 3],
    )
  })

  test(`P2 whoever writes to a row between judgement and verdict wins, ${engine.name}`, async () => {
    await using stage = await setStage(
      engine,
      { work: { table: workRuns, rows: [{ id: 1, ...silent }] }, qualification: old },
      stale,
    )
    const finishes = overtakenBy(async () => {
      await stage.sql(`UPDATE work_runs SET status = 'fine', why = 'by myself'`)
      await stage.sql(`UPDATE qualification_runs SET status = 'COMPLETED'`)
    })
    const store = await stage.another(finishes)

    const { verdicts } = await recover({ store, actor: 'late' }, { judge: STEADY })

    assert.deepEqual(
      verdicts.map(({ applied }) => applied),
      [false, false],
    )
    assert.equal((await stage.rows('work'))[0]!['why'], 'by myself')
    assert.equal((await stage.rows('qualification'))[0]!['status'], 'COMPLETED')
    assert.deepEqual(await store.audit({ limit: 5 }), [])
    assert.deepEqual(await store.openIntents(-60_000, 10), [], 'what was not done is forgotten')
  })

  test(`P9 a row that has beaten since it was seen is not touched, whoever else has looked meanwhile, ${engine.name}`, async () => {
    await using stage = await setStage(engine, {
      work: { table: workRuns, rows: [{ id: 1, ...silent }] },
    })
    const beats = (own: Store): Store => ({
      ...own,
      // Between the look at the workers and the judgement of what they hold.
      now: async () => {
        await stage.sql(`UPDATE work_runs SET beat = '${new Date().toISOString()}'`)
        return own.now()
      },
    })
    const store = await stage.another(beats)
    const options = { judge: STEADY, actor: 'hasty' }
    const roll = store.workers()
    const overlooking = {
      ...store,
      workers: async () => {
        const seen = await roll
        await store.now()
        await store.workers()
        return seen
      },
    }

    const verdicts = await sweep(overlooking, options)

    assert.deepEqual(
      verdicts.map(({ applied }) => applied),
      [false],
    )
    assert.equal((await stage.rows('work'))[0]!['status'], 'busy')
  })
}

test('P2 a row that has moved since it was judged as a whole stays as it is', async () => {
  await using stage = await setStage(sqliteEngine, { qualification: old }, stale)
  const { id, status, lastActivityAt } = await stage.run('qualification', 'old')
  await stage.sql(`UPDATE qualification_runs SET "createdAt" = ${Date.now()}`)
  const moved = await stage.store.moveRun({
    run: id,
    to: 'failed',
    action: 'fail',
    because: 'it was old',
    evidence: null,
    actor: 'late',
    only: { status, lastActivityAt, unheld: true },
  })

  assert.equal(moved, false)
  assert.equal((await stage.rows('qualification'))[0]!['status'], 'PROCESSING')
})

test('a deed whose maker dies before it is in the trail is entered there by the next who looks, once', async () => {
  await using stage = await setStage(
    sqliteEngine,
    {
      work: {
        table: workRuns,
        rows: [
          { id: 1, ...silent },
          { id: 2, ...silent },
        ],
      },
    },
    stale,
  )
  let intents = 0
  const dying = (own: Store): Store => ({
    ...own,
    // The second one dies before it has written anything to the user's table.
    intend: async (intent) => {
      await own.intend(intent)
      if (++intents === 2) throw new Error('killed before')
    },
    concludeIntent: async () => {
      throw new Error('killed after')
    },
  })
  const store = await stage.another(dying)
  for (const when of [/killed after/, /killed before/])
    await assert.rejects(recover({ store, actor: 'the dead' }, { judge: STEADY }), when)
  assert.equal((await store.openIntents(-60_000, 5)).length, 2)
  const words = (await stage.rows('work')).map((row) => row['status'])
  assert.deepEqual(words.sort(), ['busy', 'waiting'])
  assert.deepEqual(await stage.store.audit({ limit: 5 }), [])

  await stage.store.settle()
  assert.deepEqual(await stage.store.audit({ limit: 5 }), [], 'it may be on its way still')
  await stage.sql(`UPDATE adopted_intent SET at = at - 31000`)
  const others = [await stage.another(), await stage.another(), await stage.another()]
  await Promise.all(others.map((one) => one.runs({ limit: 5 })))

  const entries = await stage.store.audit({ limit: 5 })
  assert.deepEqual(
    entries.map(({ action, actor }) => [action, actor]),
    [['resume', 'the dead']],
  )
  assert.deepEqual(await stage.store.openIntents(-60_000, 5), [])
})

test('what was taken back is left alone until its row has an owner again', async () => {
  await using stage = await setStage(sqliteEngine, {
    work: {
      table: workRuns,
      rows: [{ id: 1, ...silent, pages: 0 }],
      options: { policy: { lease: '150ms', heartbeat: '50ms', onCrash: 'fail' } },
    },
  })
  const { store, door } = stage
  const look = () => recover(door, { judge: STEADY })
  const actions = async () =>
    (await look()).verdicts.map(({ action, applied }) => [action, applied])
  assert.deepEqual(await actions(), [['fail', true]])
  const { id } = await stage.run('work', 1)
  await revert(door, id)
  assert.deepEqual(await actions(), [], 'its beat is as old as before')
  assert.equal((await store.run(id))?.status, 'running')

  await stage.sql(`UPDATE work_runs SET beat = '${ago(-1).toISOString()}'`)
  assert.deepEqual(await actions(), [], 'it is alive')
  assert.equal((await store.workers()).length, 1)
  await stage.sql(`UPDATE work_runs SET beat = '${ago(5).toISOString()}'`)
  assert.deepEqual(await actions(), [['fail', true]], 'that it was taken back once is over')
})
