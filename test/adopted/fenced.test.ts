import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Whereabouts } from '../../src/features/adopted/runs/row-locator.ts'
import { STEADY } from '../../src/core/decide/liveness.ts'
import type { Run } from '../../src/core/model/run.ts'
import { recover, type Door } from '../../src/core/recovery/recover.ts'
import { sweep } from '../../src/core/recovery/sweep.ts'
import { cancel } from '../../src/core/recovery/operator-actions.ts'
import type { Store } from '../../src/core/store/store.ts'
import { isLong } from '../../src/testing/length.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { engineOf, ypTargets, type UsersTable } from '../../src/testing/users-tables.ts'
import { ago, setStage } from './stage.ts'
import { beating, old, silent, stale, workRuns } from './work-runs.ts'

/** A write of the user's own program, now. */
function usersWrite(url: string, text: string): void {
  using db = new DatabaseSync(url.replace('sqlite:', ''))
  db.exec(text)
}

/** The store of somebody who is overtaken right before each write to the user's table. */
const overtakenBy =
  (writer: () => Promise<unknown>) =>
  (own: Store): Store => ({
    ...own,
    intend: async (intents) => {
      await writer()
      await own.intend(intents)
    },
  })

const engines = [sqliteEngine, postgresEngine]
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

test('P2 a row that nobody is known to own is ended only as it was judged, in every mapped column', async () => {
  await using stage = await setStage(sqliteEngine, { qualification: old }, stale)
  let hasWritten = false
  const policyOf = (run: Run) => {
    // After the look, before any verdict is carried out: its age and its word stay the same.
    if (!hasWritten) usersWrite(stage.url, `UPDATE qualification_runs SET completed = 1`)
    hasWritten = true
    return run.policy
  }

  const late = await recover({ ...stage.door, policyOf }, { judge: STEADY })

  assert.deepEqual(
    late.verdicts.map(({ action, applied }) => [action, applied]),
    [['fail', false]],
  )
  assert.equal((await stage.rows('qualification'))[0]!['status'], 'PROCESSING')
  const again = await recover(stage.door, { judge: STEADY })
  assert.equal(again.verdicts[0]?.applied, true, 'as it is now it may be ended')
})

test('one look asks `alive` once, and a verdict holds for evidence that was copied', async () => {
  const asked: unknown[] = []
  await using stage = await setStage(sqliteEngine, {
    work: {
      table: workRuns,
      rows: [
        { id: 1, ...silent },
        { id: 2, ...silent },
      ],
      options: { alive: (row) => void asked.push(row['id']) },
    },
  })
  const { store } = stage
  const copying: Store = {
    ...store,
    applyJudgements: (judgements, actor) =>
      store.applyJudgements(structuredClone(judgements), actor),
  }

  const { verdicts } = await recover({ store: copying, actor: 'a copier' }, { judge: STEADY })

  assert.deepEqual(
    verdicts.map(({ applied }) => applied),
    [true, true],
  )
  assert.deepEqual(asked.map(String).sort(), ['1', '2'])
  const [entry] = await store.audit({ limit: 1 })
  assert.equal('seal' in (entry!.evidence as object), false)
})

test('P8 verdicts on any number of rows look for none of them: they go by what was judged', async (context) => {
  const find = context.mock.method(Whereabouts.prototype, 'find')
  await using stage = await setStage(
    sqliteEngine,
    {
      work: {
        table: workRuns,
        rows: Array.from({ length: isLong ? 40_000 : 250 }, (_, id) => ({ id, ...silent })),
      },
      targets: {
        table: ypTargets,
        rows: ['a', 'b'].map((slug) => ({ slug, status: 'IN_PROGRESS', claimed_at: ago(90) })),
      },
      qualification: old,
    },
    stale,
  )

  const { verdicts } = await recover(stage.door, { judge: STEADY })

  assert.deepEqual(
    verdicts.filter(({ applied }) => !applied),
    [],
  )
  const busy = (await stage.rows('work')).filter(({ status }) => status === 'busy')
  assert.deepEqual([verdicts.length, busy.length], [(isLong ? 40_000 : 250) + 3, 0])
  assert.equal(find.mock.callCount(), 0)
})

test('a row that the database refuses to change stops no other, is said once, and leaves no intent', async () => {
  const guarded: UsersTable = {
    ...workRuns,
    ddl: {
      ...workRuns.ddl,
      sqlite: workRuns.ddl.sqlite.replace(/\)$/, `, CHECK (id NOT IN (2, 5) OR status = 'busy'))`),
    },
  }
  await using stage = await setStage(
    sqliteEngine,
    {
      work: {
        table: guarded,
        rows: [
          ...[1, 2, 3].map((id) => ({ id, ...silent })),
          // Nobody is known to have these.
          ...[4, 5, 6].map((id) => ({ id, ...silent, beat: null, ended: ago(20) })),
        ],
      },
    },
    stale,
  )
  for (const _ of ['once', 'twice']) await recover(stage.door, { judge: STEADY })

  const words = (await stage.rows('work')).map((row) => `${row['id']} ${row['status']}`)
  assert.deepEqual(words.sort(), [
    '1 waiting',
    '2 busy',
    '3 waiting',
    '4 broken',
    '5 busy',
    '6 broken',
  ])
  assert.equal(stage.lines.length, 2)
  assert.match(stage.lines.join('\n'), /row 2 of work: .*refused[^]*row 5 of work: .*refused/)
  assert.deepEqual(await stage.store.openIntents(-60_000, 10), [])
})

/** The user's database takes a change to row 1, and does nothing. */
const LETS_PASS = {
  sqlite: [
    `CREATE TRIGGER keep BEFORE UPDATE ON work_runs WHEN OLD.id = 1 BEGIN SELECT RAISE(IGNORE); END`,
  ],
  postgres: [
    `CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'`,
    `CREATE TRIGGER keep BEFORE UPDATE ON work_runs FOR EACH ROW WHEN (OLD.id = 1) EXECUTE FUNCTION keep()`,
  ],
}
for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a change that the user's database takes and does not make is told as such, and nobody is said to have been faster, ${engine.name}`, async () => {
    const statuses = { ...beating().statuses, cancelled: 'stopped' }
    await using stage = await setStage(engine, {
      work: {
        table: workRuns,
        rows: [1, 2].map((id) => ({ id, ...silent })),
        options: { statuses },
      },
    })
    for (const text of LETS_PASS[engineOf(stage.url)]) await stage.sql(text)
    const { id } = await stage.run('work', 1)

    await assert.rejects(
      cancel(stage.door, id),
      /^Refused: Row 1 of work is as it was, although the database took the change: does a trigger/,
    )
    const { verdicts } = await recover(stage.door, { judge: STEADY })

    assert.deepEqual(verdicts.map(({ applied }) => applied).sort(), [false, true])
    assert.match(stage.lines.join('\n'), /^resume of row 1 of work: Row 1 of work is as it was/)
    const words = (await stage.rows('work')).map(({ status }) => status)
    assert.deepEqual(words.sort(), ['busy', 'waiting'])
    assert.deepEqual(await stage.store.openIntents(-60_000, 5), [])
    assert.equal((await stage.store.audit({ limit: 5 })).length, 1)
  })
}
