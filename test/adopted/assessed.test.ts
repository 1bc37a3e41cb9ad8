import assert from 'node:assert/strict'
import { test } from 'node:test'
import { adviseStart } from '../../src/presenters/check.ts'
import { loadOverview, presentOverview } from '../../src/presenters/overview.ts'
import { loadRunReport } from '../../src/presenters/run.ts'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { assess } from '../../src/core/recovery/assess.ts'
import { classifyRuns } from '../../src/core/recovery/clean.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { tenderRuns, ypTargets, type NewRow } from '../../src/testing/user-tables.ts'
import { createAdoptedTestContext, minutesAgo, type AdoptedTestContext } from './test-context.ts'

/** What is reported about rows: a table of targets by all of its rows, a run by one decision. */

const working = (id: number, minutes: number): NewRow => ({
  id,
  slug: `s-${id}`,
  status: 'IN_PROGRESS',
  claimed_by: `w-${id}`,
  claimed_at: minutesAgo(200 - id),
  heartbeat_at: minutesAgo(minutes),
  page_current: 4,
})

async function overviewOf({ operator }: AdoptedTestContext) {
  const overview = await loadOverview(operator)
  return { overview, presented: presentOverview(overview) }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a table of targets with one dead row among live ones is stuck, and the row is named, on ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, {
      yp: {
        table: ypTargets,
        // The row that started last is the dead one.
        rows: [working(1, 0), working(2, 0), working(3, 0), working(4, 130)],
        options: { policy: { lease: '150ms', heartbeat: '50ms', maxSilence: '15m' } },
      },
    })
    // No other row may be silent, so that the one with the lease of the table is.
    await ctx.sql(
      `UPDATE yp_targets SET heartbeat_at = '${minutesAgo(-1).toISOString()}' WHERE id < 4`,
    )

    const { overview, presented } = await overviewOf(ctx)

    const [live] = overview.live
    assert.deepEqual([live!.health.state, presented.severity], ['orphaned', 'stuck'])
    assert.match(live!.health.because, /1 of 4 rows in progress is stuck: row 4 of yp \(w-4\)/)
    assert.doesNotMatch(live!.health.because, /row [123] of yp/)
    const shown = (await loadRunReport(ctx.operator, live!.run)).assessed.health
    assert.deepEqual(
      [shown.state, shown.because.slice(0, 40)],
      [live!.health.state, live!.health.because.slice(0, 40)],
    )
    const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER, dryRun: true })
    assert.deepEqual(
      verdicts.map(({ target }) => target !== null),
      [true],
    )
  })
}

test('a row that just moved is not called stalled because another has not moved for hours', async () => {
  const activity = { columns: { ...ypTargets.options.sqlite.columns, activityAt: 'finished_at' } }
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: [
        { ...working(1, 0), finished_at: minutesAgo(0) },
        { ...working(2, 0), finished_at: minutesAgo(120) },
      ],
      options: activity,
    },
  })

  const { overview } = await overviewOf(ctx)

  const [live] = overview.live
  assert.equal(live!.health.state, 'stalled')
  assert.match(live!.health.because, /1 of 2 rows in progress is stuck: row 2 of yp/)
  assert.doesNotMatch(live!.health.because, /row 1 of yp/)
  assert.ok(overview.assessment.now - live!.run.lastActivityAt < 60_000)
})

test('a table of many stuck rows names the first of them, and how many there are', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    yp: { table: ypTargets, rows: Array.from({ length: 20 }, (_, n) => working(n + 1, 120)) },
  })

  const { overview } = await overviewOf(ctx)

  const { because } = overview.live[0]!.health
  assert.match(because, /^20 of 20 rows in progress are stuck: row \d+ of yp \(w-\d+\) is silent: /)
  assert.match(because, /; also (row \d+ of yp \(w-\d+\), ){2}row \d+ of yp \(w-\d+\) and 16 more$/)
})

test('a table with activity but no heartbeat lists the rows that do not progress, and takes none', async () => {
  const { heartbeatAt: _, ...columns } = ypTargets.options.sqlite.columns
  const rows = [1, 2, 3, 4].map((id) => ({ ...working(id, 120), finished_at: minutesAgo(120) }))
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    yp: {
      table: ypTargets,
      rows: [{ ...rows[0]!, finished_at: minutesAgo(0) }, ...rows.slice(1)],
      options: { columns: { ...columns, activityAt: 'finished_at' } },
    },
  })

  const { overview } = await overviewOf(ctx)

  const { health } = overview.live[0]!
  assert.deepEqual([health.state, health.severity], ['stalled', 'stuck'])
  assert.match(
    health.because,
    /^3 of 4 rows in progress are stuck: row \d of yp \(w-\d\): last activity 2 h ago, but no progress for 2 h; also/,
  )
  const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  assert.deepEqual(
    verdicts.map(({ action, applied }) => [action, applied]),
    Array.from({ length: 3 }, () => ['alert', false]),
  )
})

const tender = (minutes: number, more: NewRow = {}): NewRow => ({
  portal_name: 'portal',
  status: 'running',
  started_at: minutesAgo(minutes),
  ...more,
})

test('check, summary and status report the same of a row with progress that has not moved for hours', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    tenders: { table: tenderRuns, rows: [tender(5 * 60, { extracted_total_tenders: 7 })] },
  })

  const { action } = await adviseStart(ctx.operator, 'portal')
  const { active, resumable } = await classifyRuns(ctx.operator)
  const { overview } = await overviewOf(ctx)

  assert.deepEqual(
    [action, active.length, resumable.length, overview.live[0]!.health.state],
    ['wait', 1, 0, 'healthy'],
  )
})

test('a row that its policy fails is reported with the time that applies, not the one of dead runs', async () => {
  const policy = { staleAfter: '5m', onStale: 'fail' } as const
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    tenders: {
      table: tenderRuns,
      rows: [tender(3), tender(4, { extracted_total_tenders: 7 })],
      options: { policy },
    },
  })

  const { runs } = await assess(ctx.operator)

  for (const { decision } of runs) {
    assert.match(decision.because, /^no owner is known; unchanged for \d min, failed after 5 min$/)
    assert.doesNotMatch(decision.because, /24 h|kept/)
  }
})
