import { operatorContext } from '../../src/testing/fixtures.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { newId } from '../../src/core/model/id.ts'
import { classifyRuns } from '../../src/core/recovery/clean.ts'
import { explainRun } from '../../src/presenters/explain.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { revert } from '../../src/operator/actions.ts'
import type { Store } from '../../src/core/store/store.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { insertRows } from '../../src/testing/user-tables.ts'
import { ADOPTED_STORE } from '../../src/features/adopted/store/store.ts'
import {
  minutesAgo,
  createAdoptedTestContext,
  openIntents,
  replaceAdopted,
  type AdoptedTestContext,
} from './test-context.ts'
import { oldTable, silentRow, stalePolicy, workRuns } from './work-runs.ts'

/** Intents whose process died or stopped between recording the intent and writing the audit trail. */

const KILL_POINTS = {
  'before it has written to the row': 'recordIntents',
  'after it has written to the row': 'concludeIntents',
} as const
for (const [moment, verb] of Object.entries(KILL_POINTS)) {
  test(`P15 an operation of a process that stalls for longer than others wait, ${moment}, is audited once and started once`, async () => {
    const resumed: unknown[] = []
    await using ctx = await createAdoptedTestContext(sqliteEngine, {
      work: {
        table: workRuns,
        rows: [{ id: 1, ...silentRow }],
        options: { onResume: (row) => resumed.push(row['id']) },
      },
    })
    const othersSettle = async (): Promise<void> => {
      await ctx.sql(`UPDATE adopted_intent SET at = at - 31000`)
      await (await ctx.openAnother()).settle()
    }
    let hasStood = false
    const standsStill = async (): Promise<void> => {
      if (!hasStood) await othersSettle()
      hasStood = true
    }
    const slow = (own: Store): Store =>
      replaceAdopted(own, (adopted) => ({
        recordIntents: async (intents) => {
          await adopted.recordIntents(intents)
          if (verb === 'recordIntents') await standsStill()
        },
        concludeIntents: async (ends) => {
          if (verb === 'concludeIntents') await standsStill()
          return adopted.concludeIntents(ends)
        },
      }))
    const store = await ctx.openAnother(slow)

    const { verdicts } = await recover(operatorContext(store, 'the slow'), {
      observer: TRUSTED_OBSERVER,
    })

    assert.equal(verdicts[0]?.applied, true)
    const entries = await store.audit({ limit: 5 })
    assert.deepEqual(
      entries.map(({ actor, action, after }) => [actor, action, after]),
      [['the slow', 'resume', { status: 'planned', statusValue: 'waiting' }]],
    )
    assert.deepEqual(resumed.map(String), ['1'])
    assert.deepEqual(await openIntents(store), [])
  })
}

test("P15 the row shows the outcome of a dead process's intent: applied, not applied, or audited as unsure", async () => {
  const resumed: unknown[] = []
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    work: {
      table: workRuns,
      rows: [1, 2, 3, 4].map((id) => ({ id, ...silentRow })),
      options: { onResume: (row) => resumed.push(row['id']) },
    },
  })
  const dying = (own: Store): Store =>
    replaceAdopted(own, () => ({
      concludeIntents: () => Promise.reject(new Error('killed')),
    }))
  const store = await ctx.openAnother(dying)
  await assert.rejects(
    recover(operatorContext(store, 'the dead'), { observer: TRUSTED_OBSERVER }),
    /killed/,
  )
  const beat = silentRow.beat.toISOString()
  await ctx.sql(`UPDATE work_runs SET status = 'WAITING' WHERE id = 1`)
  await ctx.sql(
    `UPDATE work_runs SET status = 'busy', owner = 'host-1', beat = '${beat}' WHERE id = 2`,
  )
  await ctx.sql(`UPDATE work_runs SET status = 'busy', owner = 'host-2' WHERE id = 3`)
  await ctx.sql(`DELETE FROM work_runs WHERE id = 4`)
  await ctx.sql(`UPDATE adopted_intent SET at = at - 31000`)

  await ctx.store.settle()

  const entries = await ctx.store.audit({ limit: 9 })
  const told = entries.map(({ before, after }) => {
    const [{ key }, { unsure = false }] = [before as { key: string }, after as { unsure?: boolean }]
    return `${key} ${unsure ? 'unsure' : 'done'}`
  })
  assert.deepEqual(told.sort(), ['1 done', '3 unsure', '4 unsure'])
  assert.deepEqual(resumed.map(String), ['1'], 'its maker had no time to')
  assert.deepEqual(await openIntents(ctx.store), [])
})

test('intents on tables removed from the config hide no others, and end as unsure', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    work: { table: workRuns, rows: [{ id: 1, ...silentRow }] },
  })
  const dying = (own: Store): Store =>
    replaceAdopted(own, () => ({
      concludeIntents: () => Promise.reject(new Error('killed')),
    }))
  const dead = await ctx.openAnother(dying)
  await assert.rejects(
    recover(operatorContext(dead, 'the dead'), { observer: TRUSTED_OBSERVER }),
    /killed/,
  )
  const [intent] = await openIntents(dead, -60_000, 1)
  const { at: _at, ...said } = intent!
  const adopted = await dead.extend(ADOPTED_STORE)
  for (let n = 0; n < 101; n++)
    await adopted.recordIntents([{ ...said, id: newId(), ref: { table: 'renamed', key: '1' } }])
  await ctx.sql(`UPDATE adopted_intent SET at = at - 60000 - 60000 * (name = 'renamed')`)
  const count = async () => (await openIntents(dead, -60_000, 500)).length

  await ctx.store.settle()
  assert.deepEqual([await count(), (await dead.audit({ limit: 500 })).length], [101, 1])
  await ctx.sql(`UPDATE adopted_intent SET at = at - 3600000`)
  await ctx.store.settle()

  assert.equal(await count(), 0)
  const unsure = (await dead.audit({ limit: 500 })).filter(
    ({ after }) => (after as { unsure?: boolean }).unsure,
  )
  assert.equal(unsure.length, 101)
})

test('an operation whose process dies before the audit entry is audited once by the next recovery', async () => {
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    { work: { table: workRuns, rows: [{ id: 1, ...silentRow }] } },
    stalePolicy,
  )
  let times = 0
  const dying = (own: Store): Store =>
    replaceAdopted(own, (adopted) => ({
      // The second time before anything is written to the user's table.
      recordIntents: async (intents) => {
        await adopted.recordIntents(intents)
        if (++times === 2) throw new Error('killed before')
      },
      concludeIntents: async () => {
        throw new Error('killed after')
      },
    }))
  const dead = operatorContext(await ctx.openAnother(dying), 'the dead')
  await assert.rejects(recover(dead, { observer: TRUSTED_OBSERVER }), /killed after/)
  await insertRows(ctx.url, workRuns, [{ id: 2, ...silentRow }])
  await assert.rejects(recover(dead, { observer: TRUSTED_OBSERVER }), /killed before/)
  assert.equal((await openIntents(dead.store)).length, 2)
  const words = (await ctx.rows('work')).map((row) => row['status'])
  assert.deepEqual(words.sort(), ['busy', 'waiting'])
  assert.deepEqual(await ctx.store.audit({ limit: 5 }), [])

  await ctx.store.settle()
  assert.deepEqual(await ctx.store.audit({ limit: 5 }), [], 'it may be on its way still')
  await ctx.sql(`UPDATE adopted_intent SET at = at - 31000`)
  const others = [await ctx.openAnother(), await ctx.openAnother(), await ctx.openAnother()]
  await Promise.all(others.map((one) => one.settle()))

  const entries = await ctx.store.audit({ limit: 5 })
  assert.deepEqual(
    entries.map(({ action, actor }) => [action, actor]),
    [['resume', 'the dead']],
  )
  assert.deepEqual(await openIntents(ctx.store), [])
})

/** So that others take them for left. */
async function ageIntents(ctx: AdoptedTestContext): Promise<void> {
  const [intents, earlier] = ctx.url.startsWith('sqlite:')
    ? ['adopted_intent', 'at - 31000']
    : ['unstuck.adopted_intent', `at - interval '31 s'`]
  await ctx.sql(`UPDATE ${intents} SET at = ${earlier}`)
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a read reconciles no intents of dead processes, a recovery does, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using ctx = await createAdoptedTestContext(engine, {
      work: {
        table: workRuns,
        rows: [{ id: 1, ...silentRow }],
        options: { onResume: (row) => resumed.push(row['id']) },
      },
    })
    const dying = (own: Store): Store =>
      replaceAdopted(own, () => ({
        concludeIntents: () => Promise.reject(new Error('killed')),
      }))
    const dead = operatorContext(await ctx.openAnother(dying), 'the dead')
    await assert.rejects(recover(dead, { observer: TRUSTED_OBSERVER }), /killed/)
    await ageIntents(ctx)
    const store = await ctx.openAnother()
    const door = operatorContext(store, 'a test')

    await recover(door, { observer: TRUSTED_OBSERVER, dryRun: true })
    const { items } = await store.runs({ limit: 5 })
    await explainRun(door, items[0]!)
    await classifyRuns(door)
    assert.deepEqual([resumed, await store.audit({ limit: 5 })], [[], []])
    assert.equal((await openIntents(store, 0)).length, 1)

    await recover(door, { observer: TRUSTED_OBSERVER })
    assert.deepEqual(resumed.map(String), ['1'])
    assert.equal((await store.audit({ limit: 5 })).length, 1)
    assert.equal((await openIntents(store, 0)).length, 0)
  })

  test(`P15 a recovery killed in the middle of many rows and followed at once by another: each row is audited once and started once, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using ctx = await createAdoptedTestContext(engine, {
      work: {
        table: workRuns,
        rows: [1, 2, 3, 4, 5].map((id) => ({ id, ...silentRow })),
        options: { onResume: (row) => resumed.push(row['id']) },
      },
    })
    const dying = (own: Store): Store =>
      replaceAdopted(own, (adopted) => ({
        recordIntents: async (intents) => {
          await adopted.recordIntents(intents)
          // As it would have done itself.
          await ctx.sql(
            `UPDATE work_runs SET status = 'waiting', owner = NULL, beat = NULL WHERE id < 3`,
          )
          throw new Error('killed')
        },
      }))
    const dead = operatorContext(await ctx.openAnother(dying), 'the dead')
    await assert.rejects(recover(dead, { observer: TRUSTED_OBSERVER }), /killed/)

    const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
    assert.equal(verdicts.filter(({ applied }) => applied).length, 3)
    await ageIntents(ctx)
    await ctx.store.settle()

    const entries = await ctx.store.audit({ limit: 20 })
    const told = entries.map(({ actor, before }) => `${(before as { key: string }).key} ${actor}`)
    assert.deepEqual(told.sort(), ['1 the dead', '2 the dead', '3 a test', '4 a test', '5 a test'])
    assert.deepEqual(resumed.map(String).sort(), ['1', '2', '3', '4', '5'])
    assert.deepEqual(await openIntents(ctx.store), [])
  })
}

test('reverting an operation of a dead process: it is audited first, then reverted', async () => {
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    { qualification: oldTable },
    stalePolicy,
  )
  const dying = (own: Store): Store =>
    replaceAdopted(own, () => ({
      concludeIntents: () => Promise.reject(new Error('killed')),
    }))
  const dead = operatorContext(await ctx.openAnother(dying), 'the dead')
  await assert.rejects(recover(dead, { observer: TRUSTED_OBSERVER }), /killed/)
  await ageIntents(ctx)
  const { id, status } = await ctx.run('qualification', 'old')
  assert.equal(status, 'failed')

  await revert(operatorContext(await ctx.openAnother(), 'a person'), id)

  const entries = await ctx.store.audit({ limit: 5 })
  assert.deepEqual(
    entries.map(({ actor, action }) => `${actor} ${action}`),
    ['the dead fail', 'a person revert'],
  )
  assert.equal((await ctx.rows('qualification'))[0]!['status'], 'PROCESSING')
})

test('P2 an intent in progress is not reconciled on behalf of a dead process', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    work: { table: workRuns, rows: [{ id: 1, ...silentRow }] },
  })
  const dying = (own: Store): Store =>
    replaceAdopted(own, (adopted) => ({
      recordIntents: async (intents) => {
        await adopted.recordIntents(intents)
        throw new Error('killed')
      },
    }))
  const dead = operatorContext(await ctx.openAnother(dying), 'the dead')
  await assert.rejects(recover(dead, { observer: TRUSTED_OBSERVER }), /killed/)
  const slow = (own: Store): Store =>
    replaceAdopted(own, (adopted) => ({
      concludeIntents: async (ends) => {
        await ctx.sql(`UPDATE adopted_intent SET at = at - 31000 WHERE id <> '${ends[0]!.id}'`)
        await ctx.store.settle()
        return adopted.concludeIntents(ends)
      },
    }))
  const store = await ctx.openAnother(slow)

  await recover(operatorContext(store, 'the slow'), { observer: TRUSTED_OBSERVER })
  await ctx.store.settle()

  const entries = await store.audit({ limit: 5 })
  assert.deepEqual(
    entries.map(({ actor }) => actor),
    ['the slow'],
  )
  assert.deepEqual(await openIntents(store), [])
})

test('a reverted row is left alone until it has an owner again', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    work: {
      table: workRuns,
      rows: [{ id: 1, ...silentRow, pages: 0 }],
      options: { policy: { lease: '150ms', heartbeat: '50ms', onCrash: 'fail' } },
    },
  })
  const { store, operator } = ctx
  const look = () => recover(operator, { observer: TRUSTED_OBSERVER })
  const actions = async () =>
    (await look()).verdicts.map(({ action, applied }) => [action, applied])
  assert.deepEqual(await actions(), [['fail', true]])
  const { id } = await ctx.run('work', 1)
  await revert(operator, id)
  assert.deepEqual(await actions(), [], 'its beat is as old as before')
  assert.equal((await store.run(id))?.status, 'running')

  await ctx.sql(`UPDATE work_runs SET beat = '${minutesAgo(-1).toISOString()}'`)
  assert.deepEqual(await actions(), [], 'it is alive')
  assert.equal((await store.observations()).length, 1)
  await ctx.sql(`UPDATE work_runs SET beat = '${minutesAgo(5).toISOString()}'`)
  assert.deepEqual(await actions(), [['fail', true]], 'that it was taken back once is over')
})
