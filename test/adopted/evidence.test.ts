import assert from 'node:assert/strict'
import { assess } from '../../src/core/recovery/assess.ts'
import { workerViews } from '../../src/presenters/workers.ts'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { classifyRuns } from '../../src/core/recovery/clean.ts'
import { adviseStart } from '../../src/presenters/check.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { crawlRuns, tenderRuns, ypTargets } from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext } from './test-context.ts'

const HOUR = 60

test('a checkpoint file with data in it, or a file in the output folder, keeps a run for ever, and so does what cannot be looked at; an empty one does not', async () => {
  using folder = temporaryFolder()
  const path = (name: unknown): string => join(folder.path, String(name))
  writeFileSync(path('full.json'), '{"page":7}')
  writeFileSync(path('empty.json'), '')
  mkdirSync(path('folder.json'))
  mkdirSync(path('out-full'))
  writeFileSync(path('out-full/page-1.html'), '')
  mkdirSync(path('out-empty'))
  const portals = ['full', 'empty', 'none', 'folder', 'throws', 'out-full', 'out-empty']
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    tenders: {
      table: tenderRuns,
      rows: portals.map((portal_name) => ({
        portal_name,
        status: 'running',
        started_at: minutesAgo(30 * HOUR),
      })),
      options: {
        checkpoint: ({ portal_name: name }) => {
          if (name === 'throws') throw new Error('who knows')
          return path(`${String(name)}.json`)
        },
        outputDir: ({ portal_name: name }) => path(name),
      },
    },
  })

  const { active, dead, resumable } = await classifyRuns(ctx.operator)

  const names = (runs: typeof dead) => runs.map(({ run }) => run.source).sort()
  assert.deepEqual(names(active), ['full', 'out-full'], 'their files were written just now')
  assert.deepEqual(names(resumable), ['folder', 'throws'])
  assert.deepEqual(names(dead), ['empty', 'none', 'out-empty'])
  assert.match(
    ctx.lines.join('\n'),
    /^checkpoint\(\) of row [45] of tenders: .*(folder\.json is not a file|who knows) \(and for 1 more row\)$/,
  )
  assert.equal((await adviseStart(ctx.operator, 'full')).action, 'wait')
  for (const name of ['full.json', 'out-full/page-1.html', 'out-full'])
    utimesSync(path(name), minutesAgo(26 * HOUR), minutesAgo(26 * HOUR))
  const later = await classifyRuns(ctx.operator)
  assert.deepEqual(names(later.active), [])
  assert.deepEqual(names(later.resumable), ['folder', 'full', 'out-full', 'throws'])
  const { action, run } = await adviseStart(ctx.operator, 'full')
  assert.equal(action, 'resume')
  assert.equal(Math.round((Date.now() - run!.lastActivityAt) / 3_600_000), 26)
})

test('alive() decides at once: false is recovered, true is left alone, and so is an error', async () => {
  let asked = 0
  let hangs = 1
  const answers: Record<string, unknown> = {
    gone: false,
    lives: true,
    unknown: undefined,
    odd: 'yes',
  }
  await using ctx = await createAdoptedTestContext(
    sqliteEngine,
    {
      courses: {
        table: crawlRuns,
        rows: [...Object.keys(answers), 'throws', 'hangs'].map((id) => ({
          id,
          course_id: id,
          started_at: minutesAgo(6),
        })),
        options: {
          alive: async ({ id }) => {
            asked++
            if (id === 'throws') throw new Error('no answer')
            return id === 'hangs' && hangs-- > 0 ? new Promise(() => {}) : answers[String(id)]
          },
        },
      },
    },
    { staleAfterMs: 5 * 60_000, onStale: 'fail' },
  )

  const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

  assert.deepEqual(
    verdicts
      .map(({ source, action, liveness, applied }) => ({ source, action, liveness, applied }))
      .sort((a, b) => a.source.localeCompare(b.source)),
    [
      { source: 'gone', action: 'fail', liveness: 'gone', applied: true },
      // No owner is known, and the row is older than abandonAfter.
      { source: 'odd', action: 'fail', liveness: 'unknown', applied: true },
      { source: 'unknown', action: 'fail', liveness: 'unknown', applied: true },
    ],
  )
  const workers = workerViews(await assess(ctx.operator))
  assert.ok(workers.length > 0)
  assert.ok(
    workers.every(({ lastHeartbeatAt }) => lastHeartbeatAt === null),
    'no heartbeat is known',
  )
  const [gone] = verdicts.filter(({ source }) => source === 'gone')
  assert.match(gone!.because, /row gone of courses has ended: alive\(\) returned false/)
  assert.deepEqual((await ctx.store.observations()).map(({ worker }) => worker.source).sort(), [
    'lives',
    'throws',
  ])
  assert.deepEqual(ctx.lines, ['alive() of row throws of courses: no answer (and for 1 more row)'])
  assert.ok(asked >= 6)
  assert.equal((await adviseStart(ctx.operator, 'lives')).action, 'wait')
  assert.equal((await adviseStart(ctx.operator, 'throws')).action, 'wait')
})

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`however many rows alive() hangs for, a sweep takes 2 s; it is logged once until it works again, ${engine.name}`, async () => {
    const rows = Array.from({ length: 64 }, (_, n) => ({
      portal_name: `p${n}`,
      status: 'running',
      started_at: minutesAgo(600),
    }))
    let works = false
    const alive = (): unknown => (works ? true : new Promise(() => {}))
    await using ctx = await createAdoptedTestContext(
      engine,
      { tenders: { table: tenderRuns, rows, options: { alive } } },
      { staleAfterMs: 5 * 60_000, onStale: 'fail' },
    )

    const { verdicts } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
    await ctx.store.runs({ limit: 20 })

    assert.deepEqual(verdicts, [])
    assert.equal(ctx.lines.length, 1)
    assert.match(
      ctx.lines[0]!,
      /^alive\(\) of row \d+ of tenders: no result within 2 s \(and for 63/,
    )
    works = true
    await ctx.store.observations()
    works = false
    await ctx.store.observations()
    assert.equal(ctx.lines.length, 2)
  })
}

test('for a targets table only owners of its own rows count, whatever the sources of other tables', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    targets: {
      table: ypTargets,
      rows: [
        { slug: 'a', status: 'IN_PROGRESS', claimed_by: 'theirs', claimed_at: minutesAgo(90) },
      ],
    },
    tenders: {
      table: tenderRuns,
      rows: [{ portal_name: 'targets', status: 'running', started_at: minutesAgo(1) }],
      options: { alive: () => true },
    },
  })

  const { assessment } = await recover(ctx.operator, { observer: TRUSTED_OBSERVER, dryRun: true })

  const { runs: active } = assessment
  const owners = active.map(
    ({ run, owner }) => `${run.traits.origin?.table} ${owner?.assessment.liveness}`,
  )
  assert.deepEqual(owners.sort(), ['targets silent', 'tenders present'])
  const whole = active.find(({ run }) => run.traits.origin?.table === 'targets')
  assert.match(whole?.owner?.evidence.label ?? '', /^row 1 of targets/)
})

test('a failing onResume is logged, and a verdict blocked by an unmapped status is logged once', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, {
    tenders: {
      table: tenderRuns,
      rows: [
        {
          portal_name: 'a',
          status: 'running',
          started_at: minutesAgo(2),
          extracted_total_tenders: 1,
        },
      ],
      options: {
        alive: () => false,
        onResume: () => {
          throw new Error('no hands')
        },
      },
    },
    courses: {
      table: crawlRuns,
      rows: [{ id: '1', course_id: 'x', started_at: minutesAgo(2) }],
      options: { alive: () => false, statuses: { active: 'running' } },
    },
  })

  const first = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })
  const second = await recover(ctx.operator, { observer: TRUSTED_OBSERVER })

  const told = ({ verdicts }: typeof first) =>
    verdicts.map(({ source, action, applied }) => `${source} ${action} ${applied}`)
  assert.deepEqual(told(first).sort(), ['a resume true', 'x fail false'])
  assert.deepEqual(told(second), ['x fail false'])
  assert.deepEqual(ctx.lines.sort(), [
    'No status is mapped for fail on a run of courses: map adopted.courses.statuses.failed in the config',
    'onResume() of row 1 of tenders: no hands',
  ])
})
