import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeSettings } from '../../src/app/config.ts'
import { openAll } from '../../src/app/open-database.ts'
import { ADOPTED_STORE } from '../../src/features/adopted/store/store.ts'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { checkAdoptedTables } from '../../src/features/adopted/check.ts'
import { createAdoptedProject } from '../../src/testing/adopted-project.ts'
import { createApiClient } from '../../src/testing/api-client.ts'
import { operatorContext } from '../../src/testing/fixtures.ts'
import { ENGINES } from '../../src/testing/open-test-table.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import type { UserTable } from '../../src/testing/user-tables.ts'
import { deleteRun } from '../../src/operator/actions.ts'
import { acknowledge } from '../../src/presenters/acknowledge.ts'
import { loadRunReport } from '../../src/presenters/run.ts'
import { createAdoptedTestContext, openIntents, replaceAdopted } from './test-context.ts'

/** Ended rows of a table of your own are deleted where its mapping and the database allow it. */

const DDL = `
  CREATE TABLE jobs (id integer PRIMARY KEY, state text, portal text, why text);
  CREATE TABLE pages (job integer REFERENCES jobs (id));
  INSERT INTO jobs VALUES (1, 'broken', 'a', 'timeout'), (2, 'busy', 'b', NULL), (3, 'fine', 'c', NULL),
    (4, 'odd', 'd', NULL), (5, 'broken', 'e', 'x'), (6, 'broken', 'f', 'y');
  INSERT INTO pages VALUES (3);
`
const JOBS = {
  table: 'jobs',
  columns: { id: 'id', status: 'state', source: 'portal', error: 'why' },
  statuses: { queued: 'waiting', active: 'busy', failed: 'broken', succeeded: 'fine' },
} satisfies AdoptedOptions
const jobs: UserTable = {
  sql: { sqlite: 'jobs', postgres: 'jobs' },
  ddl: { sqlite: DDL, postgres: DDL },
  options: { sqlite: { ...JOBS, delete: true }, postgres: { ...JOBS, delete: true } },
  sqliteTime: (at) => at.toISOString(),
}

for (const engine of ENGINES) {
  test(`an ended row is deleted after the typed confirmation, on ${engine.name}`, async () => {
    const adopted = { jobs: { ...JOBS, delete: true } }
    await using project = await createAdoptedProject(engine, DDL, adopted)
    const { cli, json } = project
    const ids = async () =>
      (await project.sql('SELECT id FROM jobs ORDER BY id')).map(({ id }) => Number(id))
    const actions = async (id: string): Promise<string[]> =>
      (await json('show', id)).actions.map(({ name }: any) => name)
    for (const [id, isOffered] of [
      ['1', true],
      ['2', false],
      ['3', true],
      ['4', false],
    ] as const)
      assert.equal((await actions(id)).includes('delete'), isOffered, id)

    const preview = await cli('clean', '--delete', '1', '--dry-run')
    assert.match(
      preview.stdout,
      /This cannot be undone\.[^]*foreign keys[^]*- jobs:1 of a, failed: row 1 of jobs/,
    )
    const wrong = await cli('clean', '--delete', '1', '--confirm', 'delete it')
    assert.equal(wrong.code, 2)
    for (const [id, message] of [
      ['2', /Run jobs:2 is not dead/],
      ['4', /its status "odd" is not mapped/],
    ] as const)
      assert.match(
        (await cli('clean', '--delete', id, '--confirm', 'delete 1 run')).stderr,
        message,
      )
    // Without a name only runs of Unstuck's own are meant.
    const all = await cli('clean', '--delete', '--confirm', 'delete 3 runs')
    assert.match(all.stdout, /Nothing to delete/)
    const kept = await cli('clean', '--delete', '3', '--confirm', 'delete 1 run')
    assert.match(
      kept.stderr,
      /refused the change: .*foreign key.*Rows of other tables refer to it/i,
    )
    assert.deepEqual(await ids(), [1, 2, 3, 4, 5, 6])

    const done = await cli('clean', '--delete', 'jobs:1', '--confirm', 'delete 1 run')
    assert.match(done.stdout, /Run jobs:1 of a with row 1 of jobs is deleted\./)
    assert.deepEqual([done.code, await ids()], [0, [2, 3, 4, 5, 6]])
    assert.equal((await cli('show', 'jobs:1')).code, 2)
    const { items } = await json('history')
    const [{ action, before, after }] = items
    assert.deepEqual(
      [action, before.snapshot.why, after],
      ['delete', 'timeout', { status: 'deleted' }],
    )
    assert.match((await cli('history')).stdout, /delete run jobs:1 of a/)

    const settings = await makeSettings({ db: project.url, adopted }, null)
    const store = await openAll({ settings, address: project.url, log: () => {} })
    await using _closing = { [Symbol.asyncDispose]: () => store.close() }
    await using api = await createApiClient({
      app: { open: async () => store, settings: async () => settings },
    })
    const offered = (await api.get('/api/runs/jobs:5')).actions.find(
      ({ name }: any) => name === 'delete',
    )
    assert.match(offered.about, /from your table jobs, .* This cannot be undone\./)
    assert.deepEqual(offered.fields, [])
    await api.del(offered.call.path, { confirm: 'delete' }, 400)
    const dry = await api.del(offered.call.path, { dryRun: true })
    assert.match(
      dry.summary,
      /^Run jobs:5 of e with row 5 of jobs would be deleted for good\. This cannot/,
    )
    const gone = await api.del(offered.call.path, offered.call.body)
    assert.deepEqual([gone.origin, gone.undo], [{ table: 'jobs', key: '5' }, null])
    assert.deepEqual(await ids(), [2, 3, 4, 6])
  })

  test(`a row is not deleted where the mapping does not say so, on ${engine.name}`, async () => {
    await using project = await createAdoptedProject(engine, DDL, { jobs: JOBS })
    const refused = await project.cli('clean', '--delete', '1', '--confirm', 'delete 1 run')
    assert.match(refused.stderr, /set adopted\.jobs\.delete to true in the config/)
    const { actions } = await project.json('show', '1')
    assert.ok(!actions.some(({ name }: any) => name === 'delete'))
    assert.equal((await project.sql('SELECT id FROM jobs')).length, 6)
  })

  test(`P15 a deletion is fenced, forgets the row, and is audited once after a kill, on ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, { jobs: { table: jobs } })
    const { store, operator } = ctx
    const intents = engine.name === 'sqlite' ? 'adopted_intent' : 'unstuck.adopted_intent'
    const remembered = async (id: string) =>
      (await (await store.extend(ADOPTED_STORE)).rememberedRows([id])).length
    const ids = async () =>
      (await ctx.sql('SELECT id FROM jobs ORDER BY id')).map(({ id }) => Number(id))

    const first = await ctx.run('jobs', 1)
    const changing = await ctx.openAnother((own) =>
      replaceAdopted(own, (adopted) => ({
        recordIntents: async (all) => {
          await adopted.recordIntents(all)
          await ctx.sql(`UPDATE jobs SET why = 'read again' WHERE id = 1`)
        },
      })),
    )
    await assert.rejects(deleteRun(operatorContext(changing), first, false), {
      message: /changed meanwhile: nothing was deleted/,
    })
    assert.deepEqual([(await ids()).length, await openIntents(store)], [6, []])

    await acknowledge(operator, { runs: [first] }, { undo: false, dryRun: false })
    assert.equal(await remembered(first.id), 1)
    await deleteRun(operator, first, false)
    assert.deepEqual([await remembered(first.id), await store.run(first.id)], [0, null])

    // Killed before the row was deleted, and after it.
    const fifth = await ctx.run('jobs', 5)
    const sixth = await ctx.run('jobs', 6)
    const before = await ctx.openAnother((own) =>
      replaceAdopted(own, (adopted) => ({
        recordIntents: async (all) => {
          await adopted.recordIntents(all)
          throw new Error('killed')
        },
      })),
    )
    const after = await ctx.openAnother((own) =>
      replaceAdopted(own, () => ({ concludeIntents: () => Promise.reject(new Error('killed')) })),
    )
    await assert.rejects(deleteRun(operatorContext(before), fifth, false), /killed/)
    await assert.rejects(deleteRun(operatorContext(after), sixth, false), /killed/)
    assert.deepEqual([await ids(), (await openIntents(store)).length], [[2, 3, 4, 5], 2])
    const past = engine.name === 'sqlite' ? 'at - 31000' : `at - interval '31 seconds'`
    await ctx.sql(`UPDATE ${intents} SET at = ${past}`)
    await ctx.store.settle()
    const deleted = (await store.audit({ limit: 20 })).filter(({ action }) => action === 'delete')
    assert.deepEqual(
      deleted.map(({ before, after }) => [(before as { key: string }).key, after]),
      [
        ['1', { status: 'deleted' }],
        ['6', { status: 'deleted' }],
      ],
    )
    assert.deepEqual([await openIntents(store), await remembered(sixth.id)], [[], 0])
  })
}

test('a role without DELETE is refused with the GRANT, and may delete once it has the right', async () => {
  const adopted = { jobs: { ...JOBS, delete: true } }
  const login = `deleter_${process.pid}`
  await using ctx = await createAdoptedTestContext(postgresEngine, {})
  await ctx.sql(DDL)
  const theirs = new URL(ctx.url)
  theirs.username = login
  theirs.password = 'd'
  await ctx.sql(
    `CREATE ROLE ${login} LOGIN PASSWORD 'd'; GRANT SELECT, UPDATE ON jobs, pages TO ${login}`,
  )
  try {
    const db = theirs.href
    const settings = await makeSettings(
      { db: ctx.url, adopted: { jobs: { ...adopted.jobs, db } } },
      null,
    )
    const open = () => openAll({ settings, address: ctx.url, log: () => {} })
    {
      const store = await open()
      await using _closing = { [Symbol.asyncDispose]: () => store.close() }
      const operator = operatorContext(store)
      const { items } = await store.runs({ limit: 10 })
      const run = items.find(({ traits }) => traits.origin?.key === '1')!
      const grant = new RegExp(
        `may not delete rows of jobs: \`GRANT DELETE ON public\\.jobs TO ${login};\`\\.?$`,
      )
      assert.throws(() => deleteRun(operator, run, false), { message: grant })
      assert.match(store.warnings.join(), grant)
      const [finding] = await checkAdoptedTables({ settings, address: ctx.url })
      assert.match(finding!.why!, /^What needs a right that the login lacks is refused\./)
      const { actions } = await loadRunReport(operator, run)
      assert.ok(!actions.some(({ name }) => name === 'delete'))
    }
    await ctx.sql(`GRANT DELETE ON jobs TO ${login}`)
    const store = await open()
    await using _closing = { [Symbol.asyncDispose]: () => store.close() }
    const run = (await store.runs({ limit: 10 })).items.find(
      ({ traits }) => traits.origin?.key === '1',
    )!
    const { actions } = await loadRunReport(operatorContext(store), run)
    assert.ok(actions.some(({ name }) => name === 'delete'))
    await deleteRun(operatorContext(store), run, false)
    assert.equal((await ctx.sql('SELECT id FROM jobs')).length, 5)
  } finally {
    await ctx.sql(`DROP OWNED BY ${login}; DROP ROLE ${login}`)
  }
})
