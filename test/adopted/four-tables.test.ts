import type { PolicyOptions } from '../../src/lib/validate/policy-options.ts'
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { orphanOf } from '../../src/features/metrics/orphan.ts'
import { iso } from '../../src/core/model/time.ts'
import { cleanRuns, classifyRuns } from '../../src/core/recovery/clean.ts'
import { explainRun, explainTarget } from '../../src/presenters/explain.ts'
import { adviseStart } from '../../src/presenters/check.ts'
import { selectRuns } from '../../src/presenters/cleaning.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import {
  cancel,
  park,
  resetFailed,
  resume,
  retry,
  revert,
  unpark,
} from '../../src/operator/actions.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import {
  crawlRuns,
  qualificationRuns,
  tenderRuns,
  ypTargets,
} from '../../src/testing/user-tables.ts'
import { minutesAgo, createAdoptedTestContext, type AdoptedTestContext } from './test-context.ts'

const HOUR = 60
/** By the name of the run's source: what is to become of it, and whether it was done. */
const verdictSummary = ({ verdicts }: Awaited<ReturnType<typeof recover>>) =>
  verdicts.map(({ source, action, applied }) => ({ source, action, applied }))

/** The same row but for these columns. */
function assertOnlyChanged(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  changed: Record<string, unknown>,
): void {
  assert.deepEqual({ ...after }, { ...before, ...changed })
}

async function rowsById(
  ctx: AdoptedTestContext,
  name: string,
): Promise<Map<string, Record<string, unknown>>> {
  return new Map((await ctx.rows(name)).map((row) => [String(row['id']), row]))
}

const ENGINES = [sqliteEngine, postgresEngine]
const uuid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`

for (const engine of ENGINES) {
  test(`crawl_runs, with neither heartbeat nor owner: age and progress decide, and an operator cleans, ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, {
      courses: {
        table: crawlRuns,
        rows: [
          { id: uuid(1), course_id: 'dead', started_at: minutesAgo(30 * HOUR) },
          { id: uuid(2), course_id: 'slow', started_at: minutesAgo(30 * HOUR), extracted_total: 5 },
          { id: uuid(3), course_id: 'young', started_at: minutesAgo(10) },
          {
            id: uuid(4),
            course_id: 'done',
            started_at: minutesAgo(9),
            status: 'SUCCESS',
            finished_at: minutesAgo(8),
          },
        ],
      },
    })
    const { store, operator } = ctx
    const before = await rowsById(ctx, 'courses')

    const verdict = { source: 'dead', action: 'abandon', applied: false }
    assert.deepEqual(verdictSummary(await recover(operator, { dryRun: true })), [verdict])
    assert.deepEqual(
      verdictSummary(await recover(operator)),
      [verdict],
      'dead by age is for a person to say',
    )
    assert.deepEqual(await rowsById(ctx, 'courses'), before)

    const classified = await classifyRuns(operator)
    const { dead, resumable, active, total } = classified
    const sources = (runs: typeof dead) => runs.map(({ run }) => run.source)
    assert.deepEqual(
      [total, sources(dead), sources(resumable), sources(active)],
      [3, ['dead'], ['slow'], ['young']],
    )

    const advice = async (source: string) => (await adviseStart(operator, source)).action
    assert.deepEqual(
      [await advice('dead'), await advice('slow'), await advice('young'), await advice('done')],
      ['clean', 'resume', 'wait', 'start'],
    )

    const slow = await ctx.run('courses', uuid(2))
    assert.throws(
      () => selectRuns(classified, [slow], false),
      /is not dead: no owner is known, but it has progress/,
    )
    const [cleaned] = await cleanRuns(operator, dead)
    assert.equal(cleaned?.applied, true)
    const now = await rowsById(ctx, 'courses')
    assertOnlyChanged(before.get(uuid(1))!, now.get(uuid(1))!, {
      status: 'Timeout - Auto-cleaned',
      finished_at: now.get(uuid(1))!['finished_at'],
      error: `Unstuck: ${cleaned.because}`,
    })
    for (const n of [2, 3, 4]) assert.deepEqual(now.get(uuid(n)), before.get(uuid(n)))

    const run = await ctx.run('courses', uuid(1))
    assert.equal(run.status, 'abandoned')
    assert.partialDeepStrictEqual(run.traits.origin, { table: 'courses', key: uuid(1) })
    const [entry] = await store.audit({ run: run.id, limit: 5 })
    assert.deepEqual([entry?.action, entry?.actor, entry?.source], ['abandon', 'a test', 'dead'])
    const { written, ...after } = entry!.after as { written: { error: string; finishedAt: string } }
    assert.deepEqual(after, { status: 'abandoned', statusValue: 'Timeout - Auto-cleaned' })
    assert.deepEqual(
      [written.error, written.finishedAt],
      [`Unstuck: ${cleaned.because}`, iso(run.finishedAt!)],
    )
    assert.equal(orphanOf(entry!)?.reason, 'abandoned')

    const { undid } = await revert(operator, run.id)
    assert.equal(undid, 'abandon')
    assert.deepEqual(await rowsById(ctx, 'courses'), before, 'exactly what stood there')
    const explained = await explainRun(operator, await ctx.run('courses', uuid(1)))
    assert.deepEqual(explained.decision.action, 'leave')
    assert.match(explained.decision.because, /an operator reopened it/)
    assert.deepEqual(
      explained.trail.map(({ action }) => action),
      ['revert', 'abandon'],
    )
    assert.deepEqual((await classifyRuns(operator)).dead, [], 'nothing automatic touches it again')
    await assert.rejects(revert(operator, run.id), /nothing was done to it since it was reverted/)
  })

  test(`qualification_runs: a row PROCESSING for longer than the preset allows is FAILED, a young one continues, ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(
      engine,
      {
        qualification: {
          table: qualificationRuns,
          rows: [
            {
              id: 'old',
              status: 'PROCESSING',
              total: 1,
              createdAt: minutesAgo(10),
              results: '{"kept":true}',
            },
            { id: 'young', status: 'PROCESSING', total: 1, createdAt: minutesAgo(2) },
            { id: 'pending', status: 'PENDING', total: 4, completed: 3, createdAt: minutesAgo(7) },
            { id: 'done', status: 'COMPLETED', total: 1, completed: 1, createdAt: minutesAgo(60) },
          ],
        },
      },
      { staleAfterMs: 5 * 60_000, onStale: 'fail' },
    )
    const { operator } = ctx
    const before = await rowsById(ctx, 'qualification')
    const failed = { source: 'qualification', action: 'fail' }

    const dry = await recover(operator, { dryRun: true })
    assert.deepEqual(verdictSummary(dry), [
      { ...failed, applied: false },
      { ...failed, applied: false },
    ])
    assert.deepEqual(await rowsById(ctx, 'qualification'), before)
    assert.deepEqual(verdictSummary(await recover(operator)), [
      { ...failed, applied: true },
      { ...failed, applied: true },
    ])

    const now = await rowsById(ctx, 'qualification')
    for (const id of ['old', 'pending']) {
      const { completedAt, errorMessage } = now.get(id)!
      assertOnlyChanged(before.get(id)!, now.get(id)!, {
        status: 'FAILED',
        completedAt,
        errorMessage,
      })
      assert.match(
        String(errorMessage),
        /^Unstuck: no known owner for (10|7) min, longer than staleAfter 5 min$/,
      )
      assert.notEqual(completedAt, null)
    }
    for (const id of ['young', 'done']) assert.deepEqual(now.get(id), before.get(id))

    const old = await ctx.run('qualification', 'old')
    await assert.rejects(
      cancel(operator, (await ctx.run('qualification', 'young')).id),
      /statuses\.cancelled/,
    )
    await assert.rejects(retry(operator, old.id), /row old of qualification/)
    await assert.rejects(
      resume(operator, old.id),
      /statuses\.interrupted or adopted\.qualification\.statuses\.queued/,
    )
    await revert(operator, old.id)
    assert.deepEqual((await rowsById(ctx, 'qualification')).get('old'), before.get('old'))
  })
}

for (const engine of ENGINES) {
  test(`runs with numeric ids: cancelled, resumed and reverted by an operator, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using ctx = await createAdoptedTestContext(engine, {
      tenders: {
        table: tenderRuns,
        rows: [
          { portal_name: 'a', status: 'running', started_at: minutesAgo(30) },
          {
            portal_name: 'b',
            status: 'Failed',
            started_at: minutesAgo(90),
            completed_at: minutesAgo(80),
          },
          { portal_name: 'c', status: 'weird', started_at: minutesAgo(100) },
        ],
        options: { onResume: (row) => resumed.push(row['portal_name']) },
      },
    })
    const { store, operator } = ctx
    const before = await rowsById(ctx, 'tenders')
    const [a, b] = [await ctx.run('tenders', 1), await ctx.run('tenders', 2)]
    assert.deepEqual(
      [a.status, b.status, (await ctx.run('tenders', 3)).status],
      ['running', 'failed', 'cancelled'],
    )

    assert.equal((await cancel(operator, a.id)).status, 'cancelled')
    await assert.rejects(cancel(operator, a.id), /has already ended/)
    await revert(operator, a.id)
    assert.deepEqual((await rowsById(ctx, 'tenders')).get('1'), before.get('1'))

    const { reopened, run } = await resume(operator, b.id)
    assert.deepEqual([reopened, run.status, resumed], [true, 'interrupted', ['b']])
    assertOnlyChanged(before.get('2')!, (await rowsById(ctx, 'tenders')).get('2')!, {
      status: 'interrupted',
      completed_at: null,
    })
    assert.equal((await store.run(b.id))?.reopenedAt === null, false)
    await ctx.sql(`UPDATE runs SET status = 'running' WHERE id = 2`)
    assert.equal((await store.run(b.id))?.reopenedAt, null, 'it has moved on')
    await assert.rejects(
      store.deleteRun({ run: b.id, withItems: false, actor: '', because: '' }),
      /are not deleted/,
    )
  })

  test(`yp_targets: a heartbeat older than 60 min, or none, resets a row to PLANNED, and no other row is changed, ${engine.name}`, async () => {
    // A server that is up for less than the lease presumes no worker dead, so the lease is shorter here.
    const isServer = engine.name === 'postgres'
    const policy: PolicyOptions | undefined = isServer
      ? { lease: '150ms', heartbeat: '50ms' }
      : ypTargets.options.sqlite.policy
    const fresh = isServer ? minutesAgo(-1) : minutesAgo(59)
    await using ctx = await createAdoptedTestContext(engine, {
      yp: {
        table: ypTargets,
        rows: [
          {
            id: 1,
            slug: 'silent',
            state: 'CA',
            status: 'IN_PROGRESS',
            claimed_by: 'w-1',
            claimed_at: minutesAgo(70),
            heartbeat_at: minutesAgo(61),
            page_current: 4,
          },
          { id: 2, slug: 'never', state: 'CA', status: 'IN_PROGRESS', claimed_by: 'w-2' },
          {
            id: 3,
            slug: 'alive',
            state: 'TX',
            status: 'in_progress',
            claimed_by: 'w-3',
            claimed_at: minutesAgo(70),
            heartbeat_at: fresh,
            page_current: 2,
          },
          { id: 4, slug: 'planned', state: 'TX' },
          {
            id: 5,
            slug: 'failed',
            state: 'TX',
            status: 'FAILED',
            last_error: 'boom',
            finished_at: minutesAgo(5),
            attempts: 4,
          },
          { id: 6, slug: 'stuck', state: 'TX', status: 'STUCK' },
          { id: 7, slug: 'done', state: 'TX', status: 'DONE', page_current: 9 },
        ],
        options: { policy },
      },
    })
    const { store, operator } = ctx
    const before = await rowsById(ctx, 'yp')
    const dry = await recover(operator, { dryRun: true })
    assert.deepEqual(
      verdictSummary(dry)
        .map(({ action }) => action)
        .sort(),
      ['replan', 'resume'],
    )
    assert.deepEqual(await rowsById(ctx, 'yp'), before)

    const { verdicts } = await recover(operator)
    assert.ok(verdicts.every(({ applied }) => applied))
    const now = await rowsById(ctx, 'yp')
    const free = { status: 'PLANNED', claimed_by: null, heartbeat_at: null }
    for (const id of ['1', '2']) assertOnlyChanged(before.get(id)!, now.get(id)!, free)
    for (const id of ['3', '4', '5', '6', '7']) assert.deepEqual(now.get(id), before.get(id))
    assert.deepEqual((await recover(operator)).verdicts, [], 'once')

    const [run] = (await store.runs({ limit: 5 })).items
    assert.deepEqual([run?.kind, run?.status, run?.source], ['crawl', 'running', 'yp'])
    const { targets } = run!.counts
    assert.deepEqual(targets, {
      planned: 3,
      in_progress: 1,
      done: 1,
      failed: 1,
      stuck: 1,
      parked: 0,
    })
    const groups = await store.countsByGroup(run!.id)
    assert.deepEqual(
      groups.map(({ group, counts }) => [group, counts.targets.planned]),
      [
        ['CA', 2],
        ['TX', 1],
      ],
    )
    assert.deepEqual((await store.targetTotals()).targets, targets)
    assert.deepEqual(await store.countsByPage(run!.id), [
      { page: 0, targets: 4 },
      { page: 2, targets: 1 },
      { page: 4, targets: 1 },
      { page: 9, targets: 1 },
    ])
    const reasons = (await store.audit({ run: run!.id, limit: 9 })).map(
      (entry) => orphanOf(entry)?.reason,
    )
    assert.deepEqual(reasons, ['silent', 'silent'])
    const letters = await store.deadLetters({ limit: 10 })
    assert.deepEqual(letters.items.map(({ key, status }) => [key, status]).sort(), [
      ['failed', 'failed'],
      ['stuck', 'stuck'],
    ])

    const {
      items: [planned],
    } = await store.targets(run!.id, { search: 'planned', statuses: ['planned'], limit: 1 })
    const parked = await park(operator, [planned!.id])
    assert.deepEqual(parked, [{ target: planned!.id, run: run!.id, from: 'planned' }])
    assert.equal((await rowsById(ctx, 'yp')).get('4')!['status'], 'PARKED')
    assert.deepEqual(await resetFailed(operator, run!.id, { maxAttempts: 3 }), {
      targets: 0,
      reopened: false,
    })
    assert.equal((await resetFailed(operator, run!.id)).targets, 1)
    assert.equal((await unpark(operator, run!.id)).targets, 2)
    const { items } = await store.targets(run!.id, { statuses: ['planned'], limit: 3 })
    assert.equal(items.length, 3)
    const explained = await explainTarget(operator, planned!.id)
    assert.deepEqual(
      explained?.trail.map(({ action }) => action),
      ['unpark', 'park'],
    )
    assert.deepEqual(
      (await store.observations()).map(({ worker }) => worker.process.host),
      ['w-3'],
    )
    assert.equal((await store.holdings()).length, 1)
  })
}
