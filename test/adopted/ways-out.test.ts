import assert from 'node:assert/strict'
import { test } from 'node:test'
import { acknowledge } from '../../src/presenters/acknowledge.ts'
import { loadOverview } from '../../src/presenters/overview.ts'
import { loadRunReport } from '../../src/presenters/run.ts'
import { cancel, fail, resume } from '../../src/presenters/run-actions.ts'
import { open } from '../../src/index.ts'
import { createAdoptedProject } from '../../src/testing/adopted-project.ts'
import { createApiClient } from '../../src/testing/api-client.ts'
import { makeSettings } from '../../src/app/config.ts'
import { openAll } from '../../src/app/open-database.ts'
import { explainRun } from '../../src/presenters/explain.ts'
import { TRUSTED_OBSERVER } from '../../src/core/decide/liveness.ts'
import { assess, type AssessedRun } from '../../src/core/recovery/assess.ts'
import { classifyRuns, cleanRuns } from '../../src/core/recovery/clean.ts'
import { recover } from '../../src/core/recovery/recover.ts'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { insertRows, type NewRow, type UserTable } from '../../src/testing/user-tables.ts'
import { createAdoptedTestContext, minutesAgo, type AdoptedTestContext } from './test-context.ts'

/** Whatever is stuck in a table of your own has a way out, whatever its mapping. */

const STATUSES: Record<string, AdoptedOptions['statuses']> = {
  active: { active: 'busy' },
  queued: { active: 'busy', queued: 'waiting' },
  failed: { active: 'busy', failed: 'broken' },
  cancelled: { active: 'busy', cancelled: 'off', interrupted: 'paused' },
  all: { active: 'busy', queued: 'waiting', failed: 'broken', cancelled: 'off', abandoned: 'gone' },
}
const ACTIONS = { cancel, fail, resume }
const SETTING =
  /policy of adopted\.|adopted\.\w+\.statuses|onResume|`alive`|unstuck serve|`unstuck clean`/
const DAY = 24 * 60
const EVIDENCE: Record<string, Partial<AdoptedOptions['columns']>> = {
  none: {},
  beats: { heartbeatAt: 'beat' },
  'beats and activity': { heartbeatAt: 'beat', activityAt: 'moved' },
  alive: {},
}
const POLICIES: Record<string, AdoptedOptions['policy']> = {
  plain: {},
  stale: { onStale: 'fail', staleAfter: '30m' },
  cleaning: { autoClean: true, abandonAfter: '2d' },
  // The lease is longer than its database server has been up.
  young: { lease: '12h' },
}
const ROWS: readonly NewRow[] = [
  { id: 1, place: 'page 7', started: minutesAgo(5 * 60) },
  { id: 2, place: 'page 7', started: minutesAgo(3 * DAY) },
  { id: 3, started: minutesAgo(3 * DAY) },
  { id: 4, place: 'page 7', started: minutesAgo(9), beat: minutesAgo(8), moved: minutesAgo(8) },
  { id: 5, place: 'page 7', started: minutesAgo(200), beat: new Date(), moved: minutesAgo(190) },
  { id: 6, started: minutesAgo(2) },
  { id: 7, status: 'paused', place: 'page 7', started: minutesAgo(3 * DAY) },
]

function tableOf(name: string, time: string): UserTable {
  const ddl = (type: string) =>
    `CREATE TABLE ${name} (id integer PRIMARY KEY, status text, place text, beat ${type}, moved ${type}, started ${type}, ended ${type}, why text)`
  return {
    sql: { sqlite: name, postgres: name },
    ddl: { sqlite: ddl('text'), postgres: ddl(time) },
    options: {} as UserTable['options'],
    sqliteTime: (at) => at.toISOString(),
  }
}

const rowsOf = () => ROWS.map((row): NewRow => ({ status: 'busy', ...row }))

/** A table for each mapping. */
function fixtures(evidence: string, policies: readonly string[]) {
  const found: Record<
    string,
    { table: UserTable; options: AdoptedOptions; rows: ReturnType<typeof rowsOf> }
  > = {}
  for (const [statuses, values] of Object.entries(STATUSES)) {
    for (const policy of policies) {
      const name = `${evidence}_${statuses}_${policy}`.replaceAll(' ', '_')
      found[name] = {
        table: tableOf(name, 'timestamptz'),
        rows: rowsOf(),
        options: {
          table: name,
          columns: {
            id: 'id',
            status: 'status',
            startedAt: 'started',
            finishedAt: 'ended',
            error: 'why',
            checkpoint: 'place',
            ...EVIDENCE[evidence],
          },
          statuses: values,
          policy: POLICIES[policy],
          ...(evidence === 'alive' && {
            alive() {
              throw new Error('the scheduler does not respond')
            },
          }),
        },
      }
    }
  }
  return found
}

const nameOf = ({ run }: AssessedRun) => `${run.traits.origin!.table}:${run.traits.origin!.key}`

/** What is stuck, by row. */
async function stuckRows({ operator }: AdoptedTestContext) {
  const { runs } = await assess(operator)
  const stuck = runs.filter(({ health }) => health.severity !== 'ok')
  return new Map(stuck.map((one) => [nameOf(one), one]))
}

const CASES = [
  // On PostgreSQL a row is as silent as its server is old.
  { engine: postgresEngine, evidence: 'none', policies: ['plain'] },
  { engine: sqliteEngine, evidence: 'none', policies: ['stale', 'cleaning'] },
  { engine: sqliteEngine, evidence: 'beats', policies: ['plain'] },
  { engine: sqliteEngine, evidence: 'beats and activity', policies: ['stale'] },
  { engine: sqliteEngine, evidence: 'alive', policies: ['plain'] },
]

for (const { engine, evidence, policies } of CASES) {
  test(`whatever is stuck has an offered action, and each one ends it: evidence ${evidence}, on ${engine.name}`, async () => {
    const tables = fixtures(evidence, policies)
    await using ctx = await createAdoptedTestContext(engine, tables)
    const { operator } = ctx
    const before = await stuckRows(ctx)
    assert.ok(before.size >= 10, `${before.size} are stuck`)

    const overview = await loadOverview(operator)
    const offered = new Map<string, string[]>()
    for (const [name, { run, health }] of before) {
      const report = await loadRunReport(operator, run)
      const names = report.actions.map((action) => action.name as string)
      if (/^unstuck (recover|clean)\b/.test(health.command))
        names.push(health.command.split(' ')[1]!)
      offered.set(name, names)
      assert.ok(names.length > 0, `${name} (${health.state}) has a way out`)
      const item = overview.attention.find(({ run: id }) => id === run.id)!
      for (const verb of item.commands ?? [])
        assert.ok(names.includes(verb.split(' ')[1]!), `${name}: ${verb} is accepted`)
      // The setting that would do it, or what does it.
      const { outlook } = await explainRun(operator, run)
      assert.match(outlook.changes.join('\n'), SETTING, name)
      if (evidence !== 'none') assert.doesNotMatch(outlook.changes.join('\n'), /Nothing shows/)
    }

    for (const verb of ['recover', 'clean', 'resume', 'fail', 'cancel', 'acknowledge']) {
      const chosen = [...before].filter(([name]) => offered.get(name)!.includes(verb))
      if (verb === 'recover') await recover(operator, { observer: TRUSTED_OBSERVER })
      else if (verb === 'clean') await cleanRuns(operator, (await classifyRuns(operator)).dead)
      else {
        for (const [name, { run }] of chosen) {
          const act = () =>
            verb === 'acknowledge'
              ? acknowledge(operator, { runs: [run] }, { undo: false, dryRun: false })
              : ACTIONS[verb as keyof typeof ACTIONS](operator, run, { dryRun: false })
          await act().catch((error: unknown) => assert.fail(`${verb} ${name}: ${String(error)}`))
        }
      }
      const after = chosen.length > 0 ? await stuckRows(ctx) : new Map()
      assert.deepEqual(
        chosen.map(([name]) => name).filter((name) => after.has(name)),
        [],
        `stuck after ${verb}`,
      )
      for (const [name, { table, rows }] of Object.entries(tables)) {
        await ctx.sql(`DELETE FROM ${name}`)
        await insertRows(ctx.url, table, rows)
      }
    }
  })
}

test('no setting is named for a row whose heartbeat is older than its database is up', async () => {
  await using ctx = await createAdoptedTestContext(postgresEngine, {
    beats: {
      ...fixtures('beats', ['young'])['beats_all_young']!,
      rows: [
        { id: 1, status: 'busy', place: 'page 7', started: minutesAgo(DAY), beat: minutesAgo(DAY) },
      ],
    },
  })
  const [run] = (await ctx.store.runs({ limit: 1 })).items
  const { health, outlook } = await explainRun(ctx.operator, run!)
  assert.equal(health?.state, 'unknown')
  assert.doesNotMatch(outlook.changes.join('\n'), /shows whether/)
})

test('many stuck rows are acknowledged by one read of all workers', async () => {
  await using ctx = await createAdoptedTestContext(sqliteEngine, fixtures('none', ['stale']))
  const stuck = [...(await stuckRows(ctx)).values()].map(({ run }) => run)
  assert.ok(stuck.length >= 10, `${stuck.length} are stuck`)
  const { store } = ctx.operator
  let reads = 0
  const observations = () => (reads++, store.observations())
  const context = { ...ctx.operator, store: { ...store, observations } }
  const { items } = await acknowledge(context, { runs: stuck }, { undo: false, dryRun: false })
  assert.deepEqual([items.length, reads], [stuck.length, 1])
})

test('a stuck row with progress is moved by the command, the API and the library, and each names what applies', async () => {
  const columns = {
    id: 'id',
    status: 'state',
    checkpoint: 'place',
    startedAt: 'started',
    error: 'why',
  }
  const ago = minutesAgo(2 * DAY).toISOString()
  const jobs: AdoptedOptions = {
    table: 'jobs',
    columns,
    statuses: { queued: 0, active: 1, failed: 3 },
  }
  await using project = await createAdoptedProject(
    sqliteEngine,
    `CREATE TABLE jobs (id integer PRIMARY KEY, state integer, place text, started text, why text);
     INSERT INTO jobs VALUES (1, 1, 'page 7', '${ago}', NULL), (2, 1, 'page 7', '${ago}', NULL), (3, 1, 'page 7', '${ago}', NULL);`,
    { jobs },
  )
  const { folder: cwd } = project
  const states = async () =>
    (await project.sql('SELECT state FROM jobs ORDER BY id')).map(({ state }) => Number(state))
  const { attention, severity } = await project.json('status')
  assert.equal(severity, 'stuck')
  const verbs = attention[0].commands.map((command: string) => command.split(' ')[1])
  assert.deepEqual(verbs, ['resume', 'fail', 'acknowledge'])
  const command = (verb: string, of: any) =>
    of.commands
      .find((one: string) => one.split(' ')[1] === verb)
      .split(' ')
      .slice(1)
  assert.match((await project.cli('status')).stdout, /What moves it: `unstuck resume /)

  const planned = await project.cli(...command('resume', attention[0]), '--dry-run')
  assert.match(planned.stdout, /would be put back in the queue of jobs\. This cannot be reverted: /)
  assert.deepEqual(await states(), [1, 1, 1])
  assert.equal((await project.cli(...command('resume', attention[0]))).code, 0)
  assert.deepEqual((await states()).toSorted(), [0, 1, 1])

  await using unstuck = await open({ db: project.url, config: `${cwd}/unstuck.config.ts` })
  const left = (await unstuck.status()).attention
  assert.equal(left.length, 2)
  const failed = await unstuck.fail(left[0]!.run!, { because: 'the site is gone' })
  assert.deepEqual(failed.undo?.label, 'Revert')
  assert.deepEqual((await states()).toSorted(), [0, 1, 3])
  const [row] = await project.sql('SELECT why FROM jobs WHERE state = 3')
  assert.equal(row!['why'], 'Unstuck: the site is gone')

  const settings = await makeSettings({ db: project.url, adopted: { jobs } }, null)
  const store = await openAll({ settings, address: project.url, log: () => {} })
  await using _closing = { [Symbol.asyncDispose]: () => store.close() }
  await using api = await createApiClient({
    app: { open: async () => store, settings: async () => settings },
  })
  const overview = await api.get('/api/overview')
  assert.deepEqual(
    overview.actions.map(({ name }: any) => name),
    ['resume', 'fail', 'acknowledge'],
  )
  const { call } = overview.actions.at(-1)
  const { undo } = await api.post(call.path, call.body)
  const after = await api.get('/api/overview')
  assert.deepEqual([after.state, after.actions], ['well', []])
  for (const { path, body } of undo.calls) await api.post(path, body)
  assert.equal((await api.get('/api/overview')).severity, 'stuck')
  const explained = await project.cli('explain', command('resume', left[1])[1])
  assert.match(
    explained.stdout,
    /`onStale: 'fail'` and `staleAfter` in the policy of adopted\.jobs/,
  )
  assert.deepEqual((await states()).toSorted(), [0, 1, 3])
})
