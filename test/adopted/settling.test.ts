import assert from 'node:assert/strict'
import { test } from 'node:test'
import { STEADY } from '../../src/core/decide/liveness.ts'
import { newId } from '../../src/core/model/id.ts'
import { sumUp } from '../../src/core/recovery/clean.ts'
import { explainRun } from '../../src/presenters/explanation.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { revert } from '../../src/core/recovery/operator-actions.ts'
import type { Store } from '../../src/core/store/store.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { fill } from '../../src/testing/users-tables.ts'
import { ago, setStage, type Stage } from './stage.ts'
import { old, silent, stale, workRuns } from './work-runs.ts'

/** What becomes of deeds whose makers died, or stood still, between what they meant to do and the trail. */

const moments = {
  'before it has written to the row': 'intend',
  'after it has written to the row': 'concludeIntents',
} as const
for (const [moment, verb] of Object.entries(moments)) {
  test(`P15 a deed of a process that stands still for longer than others wait, ${moment}, is in the trail once and started once`, async () => {
    const resumed: unknown[] = []
    await using stage = await setStage(sqliteEngine, {
      work: {
        table: workRuns,
        rows: [{ id: 1, ...silent }],
        options: { onResume: (row) => resumed.push(row['id']) },
      },
    })
    const othersSettle = async (): Promise<void> => {
      await stage.sql(`UPDATE adopted_intent SET at = at - 31000`)
      await (await stage.another()).settle()
    }
    let hasStood = false
    const standsStill = async (): Promise<void> => {
      if (!hasStood) await othersSettle()
      hasStood = true
    }
    const slow = (own: Store): Store => ({
      ...own,
      intend: async (intents) => {
        await own.intend(intents)
        if (verb === 'intend') await standsStill()
      },
      concludeIntents: async (ends) => {
        if (verb === 'concludeIntents') await standsStill()
        return own.concludeIntents(ends)
      },
    })
    const store = await stage.another(slow)

    const { verdicts } = await recover({ store, actor: 'the slow' }, { judge: STEADY })

    assert.equal(verdicts[0]?.applied, true)
    const entries = await store.audit({ limit: 5 })
    assert.deepEqual(
      entries.map(({ actor, action, after }) => [actor, action, after]),
      [['the slow', 'resume', { status: 'planned', word: 'waiting' }]],
    )
    assert.deepEqual(resumed.map(String), ['1'])
    assert.deepEqual(await store.openIntents(-60_000, 5), [])
  })
}

test('P15 what the dead have done is told by the row: done whatever the case, not done, or entered as unsure', async () => {
  const resumed: unknown[] = []
  await using stage = await setStage(sqliteEngine, {
    work: {
      table: workRuns,
      rows: [1, 2, 3, 4].map((id) => ({ id, ...silent })),
      options: { onResume: (row) => resumed.push(row['id']) },
    },
  })
  const dying = (own: Store): Store => ({
    ...own,
    concludeIntents: () => Promise.reject(new Error('killed')),
  })
  const store = await stage.another(dying)
  await assert.rejects(recover({ store, actor: 'the dead' }, { judge: STEADY }), /killed/)
  const beat = silent.beat.toISOString()
  await stage.sql(`UPDATE work_runs SET status = 'WAITING' WHERE id = 1`)
  await stage.sql(
    `UPDATE work_runs SET status = 'busy', owner = 'host-1', beat = '${beat}' WHERE id = 2`,
  )
  await stage.sql(`UPDATE work_runs SET status = 'busy', owner = 'host-2' WHERE id = 3`)
  await stage.sql(`DELETE FROM work_runs WHERE id = 4`)
  await stage.sql(`UPDATE adopted_intent SET at = at - 31000`)

  await stage.store.settle()

  const entries = await stage.store.audit({ limit: 9 })
  const told = entries.map(({ before, after }) => {
    const [{ key }, { unsure = false }] = [before as { key: string }, after as { unsure?: boolean }]
    return `${key} ${unsure ? 'unsure' : 'done'}`
  })
  assert.deepEqual(told.sort(), ['1 done', '3 unsure', '4 unsure'])
  assert.deepEqual(resumed.map(String), ['1'], 'its maker had no time to')
  assert.deepEqual(await stage.store.openIntents(-60_000, 5), [])
})

test('intents on tables that the config has no more hide no others, and end as unsure', async () => {
  await using stage = await setStage(sqliteEngine, {
    work: { table: workRuns, rows: [{ id: 1, ...silent }] },
  })
  const dying = (own: Store): Store => ({
    ...own,
    concludeIntents: () => Promise.reject(new Error('killed')),
  })
  const dead = await stage.another(dying)
  await assert.rejects(recover({ store: dead, actor: 'the dead' }, { judge: STEADY }), /killed/)
  const [intent] = await dead.openIntents(-60_000, 1)
  const { at: _at, ...said } = intent!
  for (let n = 0; n < 101; n++)
    await dead.intend([{ ...said, id: newId(), ref: { table: 'renamed', key: '1' } }])
  await stage.sql(`UPDATE adopted_intent SET at = at - 60000 - 60000 * (name = 'renamed')`)
  const count = async () => (await dead.openIntents(-60_000, 500)).length

  await stage.store.settle()
  assert.deepEqual([await count(), (await dead.audit({ limit: 500 })).length], [101, 1])
  await stage.sql(`UPDATE adopted_intent SET at = at - 3600000`)
  await stage.store.settle()

  assert.equal(await count(), 0)
  const unsure = (await dead.audit({ limit: 500 })).filter(
    ({ after }) => (after as { unsure?: boolean }).unsure,
  )
  assert.equal(unsure.length, 101)
})

test('a deed whose maker dies before it is in the trail is entered there by the next who recovers, once', async () => {
  await using stage = await setStage(
    sqliteEngine,
    { work: { table: workRuns, rows: [{ id: 1, ...silent }] } },
    stale,
  )
  let times = 0
  const dying = (own: Store): Store => ({
    ...own,
    // The second time before anything is written to the user's table.
    intend: async (intents) => {
      await own.intend(intents)
      if (++times === 2) throw new Error('killed before')
    },
    concludeIntents: async () => {
      throw new Error('killed after')
    },
  })
  const dead = { store: await stage.another(dying), actor: 'the dead' }
  await assert.rejects(recover(dead, { judge: STEADY }), /killed after/)
  await fill(stage.url, workRuns, [{ id: 2, ...silent }])
  await assert.rejects(recover(dead, { judge: STEADY }), /killed before/)
  assert.equal((await dead.store.openIntents(-60_000, 5)).length, 2)
  const words = (await stage.rows('work')).map((row) => row['status'])
  assert.deepEqual(words.sort(), ['busy', 'waiting'])
  assert.deepEqual(await stage.store.audit({ limit: 5 }), [])

  await stage.store.settle()
  assert.deepEqual(await stage.store.audit({ limit: 5 }), [], 'it may be on its way still')
  await stage.sql(`UPDATE adopted_intent SET at = at - 31000`)
  const others = [await stage.another(), await stage.another(), await stage.another()]
  await Promise.all(others.map((one) => one.settle()))

  const entries = await stage.store.audit({ limit: 5 })
  assert.deepEqual(
    entries.map(({ action, actor }) => [action, actor]),
    [['resume', 'the dead']],
  )
  assert.deepEqual(await stage.store.openIntents(-60_000, 5), [])
})

/** So that others take them for left. */
async function age(stage: Stage): Promise<void> {
  const [intents, earlier] = stage.url.startsWith('sqlite:')
    ? ['adopted_intent', 'at - 31000']
    : ['unstuck.adopted_intent', `at - interval '31 s'`]
  await stage.sql(`UPDATE ${intents} SET at = ${earlier}`)
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`who only looks settles nothing of what the dead have begun, who recovers does, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using stage = await setStage(engine, {
      work: {
        table: workRuns,
        rows: [{ id: 1, ...silent }],
        options: { onResume: (row) => resumed.push(row['id']) },
      },
    })
    const dying = (own: Store): Store => ({
      ...own,
      concludeIntents: () => Promise.reject(new Error('killed')),
    })
    const dead = { store: await stage.another(dying), actor: 'the dead' }
    await assert.rejects(recover(dead, { judge: STEADY }), /killed/)
    await age(stage)
    const store = await stage.another()
    const door = { store, actor: 'a test' }

    await recover(door, { judge: STEADY, dryRun: true })
    const { items } = await store.runs({ limit: 5 })
    await explainRun(door, items[0]!)
    await sumUp(door)
    assert.deepEqual([resumed, await store.audit({ limit: 5 })], [[], []])
    assert.equal((await store.openIntents(0, 5)).length, 1)

    await recover(door, { judge: STEADY })
    assert.deepEqual(resumed.map(String), ['1'])
    assert.equal((await store.audit({ limit: 5 })).length, 1)
    assert.equal((await store.openIntents(0, 5)).length, 0)
  })

  test(`P15 whoever is killed in the middle of many rows, and is followed at once by another: each is in the trail once and started once, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using stage = await setStage(engine, {
      work: {
        table: workRuns,
        rows: [1, 2, 3, 4, 5].map((id) => ({ id, ...silent })),
        options: { onResume: (row) => resumed.push(row['id']) },
      },
    })
    const dying = (own: Store): Store => ({
      ...own,
      intend: async (intents) => {
        await own.intend(intents)
        // As it would have done itself.
        await stage.sql(
          `UPDATE work_runs SET status = 'waiting', owner = NULL, beat = NULL WHERE id < 3`,
        )
        throw new Error('killed')
      },
    })
    const dead = { store: await stage.another(dying), actor: 'the dead' }
    await assert.rejects(recover(dead, { judge: STEADY }), /killed/)

    const { verdicts } = await recover(stage.door, { judge: STEADY })
    assert.equal(verdicts.filter(({ applied }) => applied).length, 3)
    await age(stage)
    await stage.store.settle()

    const entries = await stage.store.audit({ limit: 20 })
    const told = entries.map(({ actor, before }) => `${(before as { key: string }).key} ${actor}`)
    assert.deepEqual(told.sort(), ['1 the dead', '2 the dead', '3 a test', '4 a test', '5 a test'])
    assert.deepEqual(resumed.map(String).sort(), ['1', '2', '3', '4', '5'])
    assert.deepEqual(await stage.store.openIntents(-60_000, 5), [])
  })
}

test('a person takes back what one who died has done: it is entered first, then taken back', async () => {
  await using stage = await setStage(sqliteEngine, { qualification: old }, stale)
  const dying = (own: Store): Store => ({
    ...own,
    concludeIntents: () => Promise.reject(new Error('killed')),
  })
  const dead = { store: await stage.another(dying), actor: 'the dead' }
  await assert.rejects(recover(dead, { judge: STEADY }), /killed/)
  await age(stage)
  const { id, status } = await stage.run('qualification', 'old')
  assert.equal(status, 'failed')

  await revert({ store: await stage.another(), actor: 'a person' }, id)

  const entries = await stage.store.audit({ limit: 5 })
  assert.deepEqual(
    entries.map(({ actor, action }) => `${actor} ${action}`),
    ['the dead fail', 'a person revert'],
  )
  assert.equal((await stage.rows('qualification'))[0]!['status'], 'PROCESSING')
})

test('P2 what somebody is at just now is not settled for another who died before', async () => {
  await using stage = await setStage(sqliteEngine, {
    work: { table: workRuns, rows: [{ id: 1, ...silent }] },
  })
  const dying = (own: Store): Store => ({
    ...own,
    intend: async (intents) => {
      await own.intend(intents)
      throw new Error('killed')
    },
  })
  const dead = { store: await stage.another(dying), actor: 'the dead' }
  await assert.rejects(recover(dead, { judge: STEADY }), /killed/)
  const slow = (own: Store): Store => ({
    ...own,
    concludeIntents: async (ends) => {
      await stage.sql(`UPDATE adopted_intent SET at = at - 31000 WHERE id <> '${ends[0]!.id}'`)
      await stage.store.settle()
      return own.concludeIntents(ends)
    },
  })
  const store = await stage.another(slow)

  await recover({ store, actor: 'the slow' }, { judge: STEADY })
  await stage.store.settle()

  const entries = await store.audit({ limit: 5 })
  assert.deepEqual(
    entries.map(({ actor }) => actor),
    ['the slow'],
  )
  assert.deepEqual(await store.openIntents(-60_000, 5), [])
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
