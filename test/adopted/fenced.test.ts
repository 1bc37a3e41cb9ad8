import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { AdoptedOptions } from '../../src/adopted/mapping.ts'
import { Whereabouts } from '../../src/adopted/runs/whereabouts.ts'
import { STEADY } from '../../src/decide/sign.ts'
import { newId } from '../../src/model/id.ts'
import type { Run } from '../../src/model/run.ts'
import { sumUp } from '../../src/runtime/cleaning.ts'
import { explainRun } from '../../src/runtime/explain.ts'
import { recover, type Door } from '../../src/runtime/recovery.ts'
import { sweep } from '../../src/runtime/sweep.ts'
import { cancel, revert } from '../../src/runtime/steering.ts'
import type { Store } from '../../src/store/store.ts'
import { isLong } from '../../src/testing/length.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import {
  engineOf,
  fill,
  qualificationRuns,
  ypTargets,
  type UsersTable,
} from '../../src/testing/users-tables.ts'
import { ago, setStage, type Scene, type Stage } from './stage.ts'

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
