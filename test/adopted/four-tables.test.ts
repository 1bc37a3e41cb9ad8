import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOrphan } from '../../src/features/metrics/orphan.ts'
import { iso } from '../../src/core/model/time.ts'
import { clean, cleanAll, sumUp } from '../../src/core/recovery/clean.ts'
import { explainRun, explainTarget } from '../../src/presenters/explanation.ts'
import { adviseStart } from '../../src/core/recovery/advise-start.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import {
  cancel,
  park,
  resetFailed,
  resume,
  retry,
  revert,
  unpark,
} from '../../src/core/recovery/operator-actions.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import {
  crawlRuns,
  qualificationRuns,
  tenderRuns,
  ypTargets,
} from '../../src/testing/users-tables.ts'
import { ago, setStage, type Stage } from './stage.ts'

const HOUR = 60
/** By the name of the run's source: what is to become of it, and whether it was done. */
const told = ({ verdicts }: Awaited<ReturnType<typeof recover>>) =>
  verdicts.map(({ source, action, applied }) => ({ source, action, applied }))

/** The same row but for these columns. */
function assertOnly(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
  changed: Record<string, unknown>,
): void {
  assert.deepEqual({ ...after }, { ...before, ...changed })
}

async function byId(stage: Stage, name: string): Promise<Map<string, Record<string, unknown>>> {
  return new Map((await stage.rows(name)).map((row) => [String(row['id']), row]))
}

const BOTH = [sqliteEngine, postgresEngine]
const uuid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`

for (const engine of BOTH) {
  test(`crawl_runs, with neither heartbeat nor owner: age and progress decide, and a person cleans, ${engine.name}`, async () => {
    await using stage = await setStage(engine, {
      courses: {
        table: crawlRuns,
        rows: [
          { id: uuid(1), course_id: 'dead', started_at: ago(30 * HOUR) },
          { id: uuid(2), course_id: 'slow', started_at: ago(30 * HOUR), extracted_total: 5 },
          { id: uuid(3), course_id: 'young', started_at: ago(10) },
          {
            id: uuid(4),
            course_id: 'done',
            started_at: ago(9),
            status: 'SUCCESS',
            finished_at: ago(8),
          },
        ],
      },
    })
    const { store, door } = stage
    const before = await byId(stage, 'courses')

    const verdict = { source: 'dead', action: 'abandon', applied: false }
    assert.deepEqual(told(await recover(door, { dryRun: true })), [verdict])
    assert.deepEqual(told(await recover(door)), [verdict], 'dead by age is for a person to say')
    assert.deepEqual(await byId(stage, 'courses'), before)

    const { dead, resumable, active, total } = await sumUp(door)
    const sources = (runs: typeof dead) => runs.map(({ run }) => run.source)
    assert.deepEqual(
      [total, sources(dead), sources(resumable), sources(active)],
      [3, ['dead'], ['slow'], ['young']],
    )

    const advice = async (source: string) => (await adviseStart(door, source)).action
    assert.deepEqual(
      [await advice('dead'), await advice('slow'), await advice('young'), await advice('done')],
      ['clean', 'resume', 'wait', 'start'],
    )

    const slow = await stage.run('courses', uuid(2))
    await assert.rejects(
      clean(door, slow.id),
      /is not dead: nobody is known to work on it, but it has progress/,
    )
    const [cleaned] = await cleanAll(door, dead)
    assert.equal(cleaned?.applied, true)
    const now = await byId(stage, 'courses')
    assertOnly(before.get(uuid(1))!, now.get(uuid(1))!, {
      status: 'Timeout - Auto-cleaned',
      finished_at: now.get(uuid(1))!['finished_at'],
      error: cleaned.because,
    })
    for (const n of [2, 3, 4]) assert.deepEqual(now.get(uuid(n)), before.get(uuid(n)))

    const run = await stage.run('courses', uuid(1))
    assert.equal(run.status, 'abandoned')
    assert.partialDeepStrictEqual(run.adopted, { table: 'courses', key: uuid(1) })
    const [entry] = await store.audit({ run: run.id, limit: 5 })
    assert.deepEqual([entry?.action, entry?.actor, entry?.source], ['abandon', 'a test', 'dead'])
    const { wrote, ...after } = entry!.after as { wrote: { error: string; finishedAt: string } }
    assert.deepEqual(after, { status: 'abandoned', word: 'Timeout - Auto-cleaned' })
    assert.deepEqual([wrote.error, wrote.finishedAt], [cleaned.because, iso(run.finishedAt!)])
    assert.equal(readOrphan(entry!)?.reason, 'abandoned')

    const { undid } = await revert(door, run.id)
    assert.equal(undid, 'abandon')
    assert.deepEqual(await byId(stage, 'courses'), before, 'exactly what stood there')
    const explained = await explainRun(door, await stage.run('courses', uuid(1)))
    assert.deepEqual(explained.decision.action, 'leave')
    assert.match(explained.decision.because, /a person opened it again/)
    assert.deepEqual(
      explained.trail.map(({ action }) => action),
      ['revert', 'abandon'],
    )
    assert.deepEqual((await sumUp(door)).dead, [], 'nothing automatic touches it again')
    await assert.rejects(revert(door, run.id), /nothing was done to it since it was taken back/)
  })

  test(`qualification_runs: what is PROCESSING for longer than the preset allows is FAILED, the young one goes on, ${engine.name}`, async () => {
    await using stage = await setStage(
      engine,
      {
        qualification: {
          table: qualificationRuns,
          rows: [
            {
              id: 'old',
              status: 'PROCESSING',
              total: 1,
              createdAt: ago(10),
              results: '{"kept":true}',
            },
            { id: 'young', status: 'PROCESSING', total: 1, createdAt: ago(2) },
            { id: 'pending', status: 'PENDING', total: 4, completed: 3, createdAt: ago(7) },
            { id: 'done', status: 'COMPLETED', total: 1, completed: 1, createdAt: ago(60) },
          ],
        },
      },
      { staleAfterMs: 5 * 60_000, onStale: 'fail' },
    )
    const { door } = stage
    const before = await byId(stage, 'qualification')
    const failed = { source: 'qualification', action: 'fail' }

    const dry = await recover(door, { dryRun: true })
    assert.deepEqual(told(dry), [
      { ...failed, applied: false },
      { ...failed, applied: false },
    ])
    assert.deepEqual(await byId(stage, 'qualification'), before)
    assert.deepEqual(told(await recover(door)), [
      { ...failed, applied: true },
      { ...failed, applied: true },
    ])

    const now = await byId(stage, 'qualification')
    for (const id of ['old', 'pending']) {
      const { completedAt, errorMessage } = now.get(id)!
      assertOnly(before.get(id)!, now.get(id)!, { status: 'FAILED', completedAt, errorMessage })
      assert.match(
        String(errorMessage),
        /^no known owner for (10|7) min, longer than staleAfter 5 min$/,
      )
      assert.notEqual(completedAt, null)
    }
    for (const id of ['young', 'done']) assert.deepEqual(now.get(id), before.get(id))

    const old = await stage.run('qualification', 'old')
    await assert.rejects(
      cancel(door, (await stage.run('qualification', 'young')).id),
      /statuses\.cancelled/,
    )
    await assert.rejects(retry(door, old.id), /row old of qualification/)
    await assert.rejects(
      resume(door, old.id),
      /statuses\.interrupted or adopted\.qualification\.statuses\.queued/,
    )
    await revert(door, old.id)
    assert.deepEqual((await byId(stage, 'qualification')).get('old'), before.get('old'))
  })
}

for (const engine of BOTH) {
  test(`runs with numbers as ids: cancelled, resumed and taken back by a person, ${engine.name}`, async () => {
    const resumed: unknown[] = []
    await using stage = await setStage(engine, {
      tenders: {
        table: tenderRuns,
        rows: [
          { portal_name: 'a', status: 'running', started_at: ago(30) },
          { portal_name: 'b', status: 'Failed', started_at: ago(90), completed_at: ago(80) },
          { portal_name: 'c', status: 'weird', started_at: ago(100) },
        ],
        options: { onResume: (row) => resumed.push(row['portal_name']) },
      },
    })
    const { store, door } = stage
    const before = await byId(stage, 'tenders')
    const [a, b] = [await stage.run('tenders', 1), await stage.run('tenders', 2)]
    assert.deepEqual(
      [a.status, b.status, (await stage.run('tenders', 3)).status],
      ['running', 'failed', 'cancelled'],
    )

    assert.equal((await cancel(door, a.id)).status, 'cancelled')
    await assert.rejects(cancel(door, a.id), /has already ended/)
    await revert(door, a.id)
    assert.deepEqual((await byId(stage, 'tenders')).get('1'), before.get('1'))

    const { reopened, run } = await resume(door, b.id)
    assert.deepEqual([reopened, run.status, resumed], [true, 'interrupted', ['b']])
    assertOnly(before.get('2')!, (await byId(stage, 'tenders')).get('2')!, {
      status: 'interrupted',
      completed_at: null,
    })
    assert.equal((await store.run(b.id))?.reopenedAt === null, false)
    await stage.sql(`UPDATE runs SET status = 'running' WHERE id = 2`)
    assert.equal((await store.run(b.id))?.reopenedAt, null, 'it has moved on')
    await assert.rejects(
      store.deleteRun({ run: b.id, withItems: false, actor: '', because: '' }),
      /cannot be deleted/,
    )
  })

  test(`yp_targets: a beat older than 60 min, or none, puts a row back to PLANNED, and no other row is touched, ${engine.name}`, async () => {
    // While a server is up for less than the lease nobody is presumed dead: there the lease is shorter.
    const isServer = engine.name === 'postgres'
    const policy = isServer
      ? { lease: '150ms', heartbeat: '50ms' }
      : ypTargets.options.sqlite.policy
    const fresh = isServer ? ago(-1) : ago(59)
    await using stage = await setStage(engine, {
      yp: {
        table: ypTargets,
        rows: [
          {
            id: 1,
            slug: 'silent',
            state: 'CA',
            status: 'IN_PROGRESS',
            claimed_by: 'w-1',
            claimed_at: ago(70),
            heartbeat_at: ago(61),
            page_current: 4,
          },
          { id: 2, slug: 'never', state: 'CA', status: 'IN_PROGRESS', claimed_by: 'w-2' },
          {
            id: 3,
            slug: 'alive',
            state: 'TX',
            status: 'in_progress',
            claimed_by: 'w-3',
            claimed_at: ago(70),
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
            finished_at: ago(5),
            attempts: 4,
          },
          { id: 6, slug: 'stuck', state: 'TX', status: 'STUCK' },
          { id: 7, slug: 'done', state: 'TX', status: 'DONE', page_current: 9 },
        ],
        options: { policy },
      },
    })
    const { store, door } = stage
    const before = await byId(stage, 'yp')
    const dry = await recover(door, { dryRun: true })
    assert.deepEqual(
      told(dry)
        .map(({ action }) => action)
        .sort(),
      ['replan', 'resume'],
    )
    assert.deepEqual(await byId(stage, 'yp'), before)

    const { verdicts } = await recover(door)
    assert.ok(verdicts.every(({ applied }) => applied))
    const now = await byId(stage, 'yp')
    const free = { status: 'PLANNED', claimed_by: null, heartbeat_at: null }
    for (const id of ['1', '2']) assertOnly(before.get(id)!, now.get(id)!, free)
    for (const id of ['3', '4', '5', '6', '7']) assert.deepEqual(now.get(id), before.get(id))
    assert.deepEqual((await recover(door)).verdicts, [], 'once')

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
      (entry) => readOrphan(entry)?.reason,
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
    const parked = await park(door, [planned!.id])
    assert.deepEqual(parked, [{ target: planned!.id, run: run!.id, from: 'planned' }])
    assert.equal((await byId(stage, 'yp')).get('4')!['status'], 'PARKED')
    assert.deepEqual(await resetFailed(door, run!.id, { maxAttempts: 3 }), {
      targets: 0,
      reopened: false,
    })
    assert.equal((await resetFailed(door, run!.id)).targets, 1)
    assert.equal((await unpark(door, run!.id)).targets, 2)
    const { items } = await store.targets(run!.id, { statuses: ['planned'], limit: 3 })
    assert.equal(items.length, 3)
    const explained = await explainTarget(door, planned!.id)
    assert.deepEqual(
      explained?.trail.map(({ action }) => action),
      ['unpark', 'park'],
    )
    assert.deepEqual(
      (await store.workers()).map(({ worker }) => worker.process.host),
      ['w-3'],
    )
    assert.equal((await store.holdings()).length, 1)
  })
}
