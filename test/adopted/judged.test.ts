import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { STEADY } from '../../src/core/decide/liveness.ts'
import { sumUp } from '../../src/core/recovery/clean.ts'
import { adviseStart } from '../../src/core/recovery/advise-start.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { cancel, revert } from '../../src/core/recovery/operator-actions.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { crawlRuns, type UsersTable } from '../../src/testing/users-tables.ts'
import { ago, setStage } from './stage.ts'

/** Of a table that tells when its rows were begun, when they last moved, and when they last beat; each may be left out. */
const jobs: UsersTable = {
  sql: { sqlite: 'jobs', postgres: 'jobs' },
  ddl: {
    sqlite: `CREATE TABLE jobs (id INTEGER PRIMARY KEY, site TEXT, state TEXT, began TEXT, moved TEXT, beat TEXT)`,
    postgres: `CREATE TABLE jobs (id int PRIMARY KEY, site text, state text, began timestamptz, moved timestamptz, beat timestamptz)`,
  },
  options: { sqlite: jobsOptions(), postgres: jobsOptions() },
  sqliteTime: (at) => at.toISOString(),
}

function jobsOptions(): AdoptedOptions {
  return {
    table: 'jobs',
    columns: { id: 'id', source: 'site', status: 'state', startedAt: 'began', heartbeatAt: 'beat' },
    statuses: { active: 'busy', failed: 'broken', cancelled: 'ended' },
  }
}

const targets = (columns: Partial<AdoptedOptions['columns']>): Partial<AdoptedOptions> => ({
  kind: 'targets',
  columns: { id: 'id', status: 'state', ...columns },
  statuses: { active: 'busy', planned: 'open' },
})

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`P9 a target whose table has no beats is taken from nobody, on ${engine.name}`, async () => {
    for (const columns of [{}, { startedAt: 'began', activityAt: 'moved' }]) {
      await using stage = await setStage(engine, {
        jobs: {
          table: jobs,
          rows: [{ id: 1, state: 'busy', began: ago(20), moved: ago(0) }],
          options: targets(columns),
        },
      })

      const { verdicts } = await recover(stage.door, { judge: STEADY })

      assert.deepEqual(verdicts, [])
      assert.equal((await stage.rows('jobs'))[0]!['state'], 'busy')
    }
  })

  test(`P15 what the user's own program wrote after an ending is not taken back with it, on ${engine.name}`, async () => {
    const id = '0199a0c8-0000-7000-8000-000000000001'
    await using stage = await setStage(engine, {
      courses: { table: crawlRuns, rows: [{ id, course_id: 'x', started_at: ago(30) }] },
    })
    const { id: run } = await stage.run('courses', id)
    await cancel(stage.door, run)
    const name = crawlRuns.sql[engine.name === 'sqlite' ? 'sqlite' : 'postgres']
    await stage.sql(`UPDATE ${name} SET error = 'HTTP 500'`)
    const [before] = await stage.rows('courses')

    await assert.rejects(revert(stage.door, run), /your own program has written to its row since/)

    assert.deepEqual((await stage.rows('courses'))[0], before)
  })
}

// On SQLite alone: the server of the tests has just started, and who was silent until then is not judged yet.

test('P9 a target that has not beaten yet lives while it moves', async () => {
  const columns = { startedAt: 'began', activityAt: 'moved', heartbeatAt: 'beat' }
  await using stage = await setStage(sqliteEngine, {
    jobs: {
      table: jobs,
      rows: [
        { id: 1, state: 'busy', began: ago(20), moved: ago(0) },
        { id: 2, state: 'busy', began: ago(20), moved: ago(10) },
      ],
      options: targets(columns),
    },
  })

  await recover(stage.door, { judge: STEADY })

  const states = (await stage.rows('jobs')).map(({ state }) => state)
  assert.deepEqual(states, ['busy', 'open'])
})

test('whoever asks before a start hears of the row that somebody is at, not of a newer dead one', async () => {
  await using stage = await setStage(sqliteEngine, {
    jobs: {
      table: jobs,
      rows: [
        { id: 1, site: 'a', state: 'busy', began: ago(90), beat: ago(0) },
        { id: 2, site: 'a', state: 'busy', began: ago(85), beat: ago(80) },
      ],
    },
  })

  const { action, run } = await adviseStart(stage.door, 'a')

  assert.deepEqual([action, run?.adopted?.key], ['wait', '1'])
})

test('a run that has only skipped what it knew is not dead, however old', async () => {
  await using stage = await setStage(sqliteEngine, {
    courses: {
      table: crawlRuns,
      rows: [
        { id: 'skipped', course_id: 'skipped', started_at: ago(30 * 60), skipped_total: 5 },
        { id: 'nothing', course_id: 'nothing', started_at: ago(30 * 60), skipped_total: 0 },
      ],
    },
  })

  const { resumable, dead } = await sumUp(stage.door)

  const sources = (runs: typeof dead) => runs.map(({ run }) => run.source)
  assert.deepEqual([sources(resumable), sources(dead)], [['skipped'], ['nothing']])
})

test('a run of which nothing tells but alive() never stands still', async () => {
  await using stage = await setStage(sqliteEngine, {
    jobs: {
      table: jobs,
      rows: [{ id: 1, site: 'a', state: 'busy', began: ago(300) }],
      options: {
        columns: { id: 'id', source: 'site', status: 'state', startedAt: 'began' },
        alive: () => true,
        policy: { onStalled: 'fail', maxSilence: '15m' },
      },
    },
  })

  const { verdicts } = await recover(stage.door, { judge: STEADY })

  assert.deepEqual(verdicts, [])
  assert.equal((await stage.rows('jobs'))[0]!['state'], 'busy')
})
