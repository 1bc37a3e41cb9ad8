import { operatorContext } from '../../src/testing/fixtures.ts'
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { RowLocator } from '../../src/features/adopted/runs/row-locator.ts'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import type { PolicyOf } from '../../src/core/model/policy-of.ts'
import type { OperatorContext } from '../../src/core/recovery/context.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { sweep } from '../../src/core/recovery/sweep.ts'
import { cancel } from '../../src/operator/actions.ts'
import type { Store } from '../../src/core/store/store.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { engineOf, ypTargets, type UserTable } from '../../src/testing/user-tables.ts'
import {
  minutesAgo,
  createAdoptedTestContext,
  openIntents,
  replaceAdopted,
} from './test-context.ts'
import { workRunsOptions, oldTable, silentRow, stalePolicy, workRuns } from './work-runs.ts'

/** A write of the user's own program, now. */
function writeAsUser(url: string, text: string): void {
  using db = new DatabaseSync(url.replace('sqlite:', ''))
  db.exec(text)
}

/** A store whose writes to the user's table are each preceded by a concurrent write. */
const withConcurrentWrite =
  (writer: () => Promise<unknown>) =>
  (own: Store): Store =>
    replaceAdopted(own, (adopted) => ({
      recordIntents: async (intents) => {
        await writer()
        await adopted.recordIntents(intents)
      },
    }))

const engines = [sqliteEngine, postgresEngine]
for (const engine of engines) {
  test(`P2 five processes that recover the rows of a table at once act as one: one write, one audit entry, one onResume, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using ctx = await createAdoptedTestContext(
      engine,
      {
        work: {
          table: workRuns,
          rows: [{ id: 1, ...silentRow }],
          options: { onResume: (row) => resumed.push(row['id']) },
        },
        qualification: oldTable,
      },
      stalePolicy,
    )
    const doors: OperatorContext[] = []
    for (let n = 1; n <= 5; n++) doors.push(operatorContext(await ctx.openAnother(), `number ${n}`))

    const all = await Promise.all(
      doors.map((entryPoint) => recover(entryPoint, { observer: TRUSTED_OBSERVER })),
    )

    const applied = all.flatMap(({ verdicts }) => verdicts).filter((verdict) => verdict.applied)
    assert.deepEqual(applied.map(({ source, action }) => `${source} ${action}`).sort(), [
      'qualification fail',
      'work resume',
    ])
    assert.deepEqual(resumed.map(String), ['1'])
    const entries = await ctx.store.audit({ limit: 50 })
    assert.deepEqual(entries.map(({ action }) => action).sort(), ['fail', 'resume'])
    assert.deepEqual(await openIntents(ctx.store, -60_000, 10), [])
    const [row] = await ctx.rows('work')
    assert.deepEqual(
      [row!['status'], row!['owner'], row!['beat'], row!['pages']],
      ['waiting', null, null, 3],
    )
  })

  test(`P2 a write to a row between assessment and verdict wins, ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(
      engine,
      { work: { table: workRuns, rows: [{ id: 1, ...silentRow }] }, qualification: oldTable },
      stalePolicy,
    )
    const finishes = withConcurrentWrite(async () => {
      await ctx.sql(`UPDATE work_runs SET status = 'fine', why = 'by myself'`)
      await ctx.sql(`UPDATE qualification_runs SET status = 'COMPLETED'`)
    })
    const store = await ctx.openAnother(finishes)

    const { verdicts } = await recover(operatorContext(store, 'late'), {
      observer: TRUSTED_OBSERVER,
    })

    assert.deepEqual(
      verdicts.map(({ applied }) => applied),
      [false, false],
    )
    assert.equal((await ctx.rows('work'))[0]!['why'], 'by myself')
    assert.equal((await ctx.rows('qualification'))[0]!['status'], 'COMPLETED')
    assert.deepEqual(await store.audit({ limit: 5 }), [])
    assert.deepEqual(await openIntents(store, -60_000, 10), [], 'what was not done is forgotten')
  })

  test(`P9 a row with a newer heartbeat is not changed, even if other processes have read it meanwhile, ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, {
      work: { table: workRuns, rows: [{ id: 1, ...silentRow }] },
    })
    const beats = (own: Store): Store => ({
      ...own,
      // Between the look at the workers and the judgement of what they hold.
      now: async () => {
        await ctx.sql(`UPDATE work_runs SET beat = '${new Date().toISOString()}'`)
        return own.now()
      },
    })
    const store = await ctx.openAnother(beats)
    const options = operatorContext(store, 'hasty')
    const roll = store.observations()
    const overlooking = {
      ...store,
      observations: async () => {
        const seen = await roll
        await store.now()
        await store.observations()
        return seen
      },
    }

    const verdicts = await sweep(overlooking, options)

    assert.deepEqual(
      verdicts.map(({ applied }) => applied),
      [false],
    )
    assert.equal((await ctx.rows('work'))[0]!['status'], 'busy')
  })
}

test('P2 a row that changed since it was assessed is not changed', async () => {
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    { qualification: oldTable },
    stalePolicy,
  )
  const { id, status, lastActivityAt } = await ctx.run('qualification', 'old')
  await ctx.sql(`UPDATE qualification_runs SET "createdAt" = ${Date.now()}`)
  const moved = await ctx.store.moveRun({
    run: id,
    to: 'failed',
    action: 'fail',
    because: 'it was old',
    evidence: null,
    actor: 'late',
    expected: { status, lastActivityAt, isUnclaimed: true },
  })

  assert.equal(moved, false)
  assert.equal((await ctx.rows('qualification'))[0]!['status'], 'PROCESSING')
})

test('P2 a row without a known owner is ended only if every mapped column is as it was assessed', async () => {
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    { qualification: oldTable },
    stalePolicy,
  )
  let hasWritten = false
  const policyOf = ((run) => {
    // After the look, before any verdict is carried out: its age and its word stay the same.
    if (!hasWritten) writeAsUser(ctx.url, `UPDATE qualification_runs SET completed = 1`)
    hasWritten = true
    return run.policy
  }) as PolicyOf

  const late = await recover({ ...ctx.operator, policyOf }, { observer: TRUSTED_OBSERVER })

  assert.deepEqual(
    late.verdicts.map(({ action, applied }) => [action, applied]),
    [['fail', false]],
  )
  assert.equal((await ctx.rows('qualification'))[0]!['status'], 'PROCESSING')
  const again = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  assert.equal(again.verdicts[0]?.applied, true, 'as it is now it may be ended')
})

test('one sweep calls `alive` once, and a verdict holds for evidence that was copied', async () => {
  const asked: unknown[] = []
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    work: {
      table: workRuns,
      rows: [
        { id: 1, ...silentRow },
        { id: 2, ...silentRow },
      ],
      options: { alive: (row) => void asked.push(row['id']) },
    },
  })
  const { store } = ctx
  const copying: Store = {
    ...store,
    applyVerdicts: (judgements, actor) => store.applyVerdicts(structuredClone(judgements), actor),
  }

  const { verdicts } = await recover(operatorContext(copying, 'a copier'), {
    observer: TRUSTED_OBSERVER,
  })

  assert.deepEqual(
    verdicts.map(({ applied }) => applied),
    [true, true],
  )
  assert.deepEqual(asked.map(String).sort(), ['1', '2'])
  const [entry] = await store.audit({ limit: 1 })
  assert.equal('rowHash' in (entry!.evidence as object), false)
})

test('P8 applying verdicts reads no rows again: it uses the assessed ones', async (context) => {
  const find = context.mock.method(RowLocator.prototype, 'find')
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    {
      work: {
        table: workRuns,
        rows: Array.from({ length: isLong ? 40_000 : 250 }, (_, id) => ({ id, ...silentRow })),
      },
      targets: {
        table: ypTargets,
        rows: ['a', 'b'].map((slug) => ({
          slug,
          status: 'IN_PROGRESS',
          claimed_at: minutesAgo(90),
        })),
      },
      qualification: oldTable,
    },
    stalePolicy,
  )

  const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

  assert.deepEqual(
    verdicts.filter(({ applied }) => !applied),
    [],
  )
  const busy = (await ctx.rows('work')).filter(({ status }) => status === 'busy')
  assert.deepEqual([verdicts.length, busy.length], [(isLong ? 40_000 : 250) + 3, 0])
  assert.equal(find.mock.callCount(), 0)
})

test('a row that the database refuses to change stops no other, is logged once, and leaves no intent', async () => {
  const guarded: UserTable = {
    ...workRuns,
    ddl: {
      ...workRuns.ddl,
      sqlite: workRuns.ddl.sqlite.replace(/\)$/, `, CHECK (id NOT IN (2, 5) OR status = 'busy'))`),
    },
  }
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    {
      work: {
        table: guarded,
        rows: [
          ...[1, 2, 3].map((id) => ({ id, ...silentRow })),
          // No owner of these is known.
          ...[4, 5, 6].map((id) => ({ id, ...silentRow, beat: null, ended: minutesAgo(20) })),
        ],
      },
    },
    stalePolicy,
  )
  for (const _ of ['once', 'twice']) await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

  const words = (await ctx.rows('work')).map((row) => `${row['id']} ${row['status']}`)
  assert.deepEqual(words.sort(), [
    '1 waiting',
    '2 busy',
    '3 waiting',
    '4 broken',
    '5 busy',
    '6 broken',
  ])
  assert.equal(ctx.lines.length, 2)
  assert.match(ctx.lines.join('\n'), /row 2 of work: .*refused[^]*row 5 of work: .*refused/)
  assert.deepEqual(await openIntents(ctx.store, -60_000, 10), [])
})

/** The user's database takes a change to row 1, and does nothing. */
const IGNORE_UPDATE = {
  sqlite: [
    `CREATE TRIGGER keep BEFORE UPDATE ON work_runs WHEN OLD.id = 1 BEGIN SELECT RAISE(IGNORE); END`,
  ],
  postgres: [
    `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    `CREATE TRIGGER keep BEFORE UPDATE ON work_runs FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION keep()`,
  ],
}
for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a change that the database accepts but does not make is reported as such, not as a concurrent change, ${engine.name}`, async () => {
    const statuses = { ...workRunsOptions().statuses, cancelled: 'stopped' }
    await using ctx = await createAdoptedTestContext(engine, {
      work: {
        table: workRuns,
        rows: [1, 2].map((id) => ({ id, ...silentRow })),
        options: { statuses },
      },
    })
    for (const text of IGNORE_UPDATE[engineOf(ctx.url)]) await ctx.sql(text)
    const { id } = await ctx.run('work', 1)

    await assert.rejects(
      cancel(ctx.operator, id),
      /^RefusedError: Row 1 of work has not changed, although the database accepted the change: check the table for a trigger/,
    )
    const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

    assert.deepEqual(verdicts.map(({ applied }) => applied).sort(), [false, true])
    assert.match(ctx.lines.join('\n'), /^resume of row 1 of work: Row 1 of work has not changed/)
    const words = (await ctx.rows('work')).map(({ status }) => status)
    assert.deepEqual(words.sort(), ['busy', 'waiting'])
    assert.deepEqual(await openIntents(ctx.store), [])
    assert.equal((await ctx.store.audit({ limit: 5 })).length, 1)
  })
}
