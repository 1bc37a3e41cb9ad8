import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { classifyRuns } from '../../src/core/recovery/clean.ts'
import { adviseStart } from '../../src/presenters/check.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { cancel, revert } from '../../src/operator/actions.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { crawlRuns, type UserTable } from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext } from './test-context.ts'

/** Of a table that tells when its rows were begun, when they last moved, and when they last beat; each may be left out. */
const jobs: UserTable = {
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
  test(`P9 a target whose table has no heartbeat is never taken, on ${engine.name}`, async () => {
    for (const columns of [{}, { startedAt: 'began', activityAt: 'moved' }]) {
      await using ctx = await createAdoptedTestContext(engine, {
        jobs: {
          table: jobs,
          rows: [{ id: 1, state: 'busy', began: minutesAgo(20), moved: minutesAgo(0) }],
          options: targets(columns),
        },
      })

      const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

      assert.deepEqual(verdicts, [])
      assert.equal((await ctx.rows('jobs'))[0]!['state'], 'busy')
    }
  })

  test(`P15 a revert keeps what the user's own program wrote after the ending, on ${engine.name}`, async () => {
    const id = '0199a0c8-0000-7000-8000-000000000001'
    await using ctx = await createAdoptedTestContext(engine, {
      courses: { table: crawlRuns, rows: [{ id, course_id: 'x', started_at: minutesAgo(30) }] },
    })
    const { id: run } = await ctx.run('courses', id)
    await cancel(ctx.operator, run)
    const name = crawlRuns.sql[engine.name === 'sqlite' ? 'sqlite' : 'postgres']
    await ctx.sql(`UPDATE ${name} SET error = 'HTTP 500'`)
    const [before] = await ctx.rows('courses')

    await assert.rejects(revert(ctx.operator, run), /your own program has written to its row since/)

    assert.deepEqual((await ctx.rows('courses'))[0], before)
  })
}

// On SQLite alone: the server of the tests has just started, and who was silent until then is not judged yet.

test('P9 a target without a heartbeat is alive while it progresses', async () => {
  const columns = { startedAt: 'began', activityAt: 'moved', heartbeatAt: 'beat' }
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    jobs: {
      table: jobs,
      rows: [
        { id: 1, state: 'busy', began: minutesAgo(20), moved: minutesAgo(0) },
        { id: 2, state: 'busy', began: minutesAgo(20), moved: minutesAgo(10) },
      ],
      options: targets(columns),
    },
  })

  await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

  const states = (await ctx.rows('jobs')).map(({ state }) => state)
  assert.deepEqual(states, ['busy', 'open'])
})

test('check reports the row with a live owner, not a newer dead one', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    jobs: {
      table: jobs,
      rows: [
        { id: 1, site: 'a', state: 'busy', began: minutesAgo(90), beat: minutesAgo(0) },
        { id: 2, site: 'a', state: 'busy', began: minutesAgo(85), beat: minutesAgo(80) },
      ],
    },
  })

  const { action, run } = await adviseStart(ctx.operator, 'a')

  assert.deepEqual([action, run?.traits.origin?.key], ['wait', '1'])
})

test('a run that has only skipped what it knew is not dead, however old', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    courses: {
      table: crawlRuns,
      rows: [
        { id: 'skipped', course_id: 'skipped', started_at: minutesAgo(30 * 60), skipped_total: 5 },
        { id: 'nothing', course_id: 'nothing', started_at: minutesAgo(30 * 60), skipped_total: 0 },
      ],
    },
  })

  const { resumable, dead } = await classifyRuns(ctx.operator)

  const sources = (runs: typeof dead) => runs.map(({ run }) => run.source)
  assert.deepEqual([sources(resumable), sources(dead)], [['skipped'], ['nothing']])
})

test('a run whose only evidence is alive() is never stalled', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    jobs: {
      table: jobs,
      rows: [{ id: 1, site: 'a', state: 'busy', began: minutesAgo(300) }],
      options: {
        columns: { id: 'id', source: 'site', status: 'state', startedAt: 'began' },
        alive: () => true,
        policy: { onStalled: 'fail', maxSilence: '15m' },
      },
    },
  })

  const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

  assert.deepEqual(verdicts, [])
  assert.equal((await ctx.rows('jobs'))[0]!['state'], 'busy')
})
