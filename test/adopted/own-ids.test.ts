import assert from 'node:assert/strict'
import { test } from 'node:test'
import { open } from '../../src/index.ts'
import { makeSettings } from '../../src/app/config.ts'
import { openAll } from '../../src/app/open-database.ts'
import { TextWriter } from '../../src/lib/terminal/text-writer.ts'
import { loadOverview, presentOverview } from '../../src/presenters/overview.ts'
import { listRuns, presentRuns } from '../../src/presenters/runs.ts'
import { operatorContext } from '../../src/testing/fixtures.ts'
import { createAdoptedProject } from '../../src/testing/adopted-project.ts'
import { createApiClient } from '../../src/testing/api-client.ts'
import { makeAlertService, webhookTo } from '../../src/testing/alert-test-service.ts'
import { httpSink } from '../../src/testing/test-receivers.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ENGINES } from '../../src/testing/open-test-table.ts'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'

/** The user's own id of a row works wherever a run is named, and is what is printed. */

const UUID = '0198c0de-4a7b-7cc3-9d2e-6f1b2a3c4d5e'
const ago = new Date(Date.now() - 3 * 86_400_000).toISOString()

function mapping(table: string): AdoptedOptions {
  return {
    table,
    columns: { id: 'id', status: 'state', source: 'portal', startedAt: 'started', error: 'why' },
    statuses: { queued: 'waiting', active: 'busy', failed: 'broken', cancelled: 'off' },
    policy: { staleAfter: '1h', onStale: 'fail' },
  }
}

for (const engine of ENGINES) {
  test(`rows go by the user's own ids in commands, calls and output, on ${engine.name}`, async () => {
    const adopted = { jobs: mapping('jobs'), crawls: mapping('crawls'), files: mapping('files') }
    const columns = 'state text, portal text, started text, why text'
    await using project = await createAdoptedProject(
      engine,
      `CREATE TABLE jobs (id integer PRIMARY KEY, ${columns});
       CREATE TABLE crawls (id integer PRIMARY KEY, ${columns});
       CREATE TABLE files (id ${engine.name === 'sqlite' ? 'text' : 'uuid'} PRIMARY KEY, ${columns});
       INSERT INTO jobs VALUES (4711, 'busy', 'a-portal-with-a-rather-long-name-in-europe', '${ago}', NULL), (7, 'busy', 'b', '${ago}', NULL);
       INSERT INTO crawls VALUES (7, 'busy', 'c', '${ago}', NULL);
       INSERT INTO files VALUES ('${UUID}', 'busy', 'd', '${ago}', NULL);`,
      adopted,
    )
    const { cli, json } = project

    const shown = await cli('show', '4711')
    assert.match(shown.stdout, /^Run jobs:4711 of a-portal/)
    for (const name of ['jobs:4711', '4711'])
      assert.equal((await json('explain', name)).run.origin.key, '4711')
    assert.equal((await json('show', UUID)).run.origin.key, UUID)
    if (engine.name === 'postgres')
      assert.equal((await json('show', UUID.toUpperCase())).run.origin.key, UUID)

    const both = await cli('show', '7')
    assert.equal(both.code, 2)
    assert.match(both.stderr, /Several runs have the id 7/)
    const commands = [...both.stderr.matchAll(/`unstuck (show \S+)`/g)].map(([, one]) => one!)
    assert.deepEqual(commands.toSorted(), ['show crawls:7', 'show jobs:7'])
    for (const command of commands) assert.equal((await cli(...command.split(' '))).code, 0)

    const settings = await makeSettings({ db: project.url, adopted }, null)
    const store = await openAll({ settings, address: project.url, log: () => {} })
    await using _closing = { [Symbol.asyncDispose]: () => store.close() }
    const context = operatorContext(store)
    const screens = [
      presentRuns(await listRuns(context, { limit: 10 })),
      presentOverview(await loadOverview(context)),
    ]
    for (const { sections } of screens) {
      const writer = new TextWriter(80, false)
      writer.sections(sections ?? [])
      const lines = String(writer).split('\n')
      for (const id of ['4711', UUID])
        assert.ok(
          lines.some((line) => line.startsWith(`${id} `)),
          `${id} in ${lines.join('\n')}`,
        )
    }

    const dry = await cli('recover', '--dry-run')
    assert.match(dry.stdout, /fail run jobs:4711 of a-portal/)
    assert.doesNotMatch(dry.stdout, /run [0-9a-f]{8} of/)
    assert.match((await cli('progress', '4711')).stdout, /^a-portal\S+ jobs:4711, running/)
    assert.match((await cli('logs', '4711')).stderr, /no log of run jobs:4711 /)
    const done = await cli('recover', '--yes')
    assert.match(done.stdout, /`unstuck revert jobs:4711`/)
    assert.equal((await cli('revert', '4711')).code, 0)
    assert.match((await cli('cancel', 'jobs:4711')).stdout, /Run jobs:4711 of .* is cancelled/)
    const again = await cli('retry', '4711', '--dry-run')
    assert.match(again.stdout, /would be queued again\. This cannot be reverted: /)
    const row = async () => (await project.sql('SELECT state, why FROM jobs WHERE id = 4711'))[0]!
    assert.deepEqual(
      [(await row())['state'], (await row())['why']?.toString().slice(0, 8)],
      ['off', 'Unstuck:'],
    )
    const retried = await json('retry', 'jobs:4711')
    assert.deepEqual(
      [retried.undo.label, { ...(await row()) }],
      ['Cancel it', { state: 'waiting', why: null }],
    )
    assert.match((await cli('retry', '4711')).stderr, /is queued: only what ended without success/)
    assert.equal((await cli(...retried.undo.command.split(' ').slice(1))).code, 0)
    const history = await cli('history')
    assert.match(history.stdout, /cancel run jobs:4711 of a-portal/)
    assert.match(history.stdout, new RegExp(`fail run files:${UUID} of d`))
    assert.match((await cli('history', '4711')).stdout, /cancel/)
    const offered = await cli('complete', 'fish', '--', 'unstuck', 'show', 'jobs:')
    assert.match(offered.stdout, /^jobs:4711\t/m)
    const marked = await cli('acknowledge', 'crawls:7')
    assert.match(marked.stdout, /`unstuck acknowledge crawls:7 --undo`/)
    assert.equal((await cli('acknowledge', 'crawls:7', '--undo')).code, 0)
    assert.match((await cli('history')).stdout, /acknowledge run crawls:7 of c[,:] /)
    assert.equal((await json('history')).items[0].subject, 'run crawls:7')

    await using unstuck = await open({
      db: project.url,
      config: `${project.folder}/unstuck.config.ts`,
    })
    assert.equal((await unstuck.run('4711')).run.origin?.key, '4711')
    assert.equal((await unstuck.resume('jobs:4711')).run?.status, 'queued')

    await using api = await createApiClient({
      app: { open: async () => store, settings: async () => settings },
    })
    for (const name of ['4711', 'jobs:4711', 'jobs%3A4711'])
      assert.equal((await api.get(`/api/runs/${name}`)).run.origin.key, '4711')
    const { error } = await api.get('/api/runs/7', 400)
    assert.match(error.message, /crawls:7.*\n.*jobs:7|jobs:7.*\n.*crawls:7/)
    const { summary } = await api.post('/api/runs/4711/cancel')
    await api.post('/api/acknowledge', { runs: ['crawls:7'], dryRun: true })
    assert.match(summary, /^Run jobs:4711 of /)
    await api.get('/api/runs/4712', 404)
  })
}

for (const engine of ENGINES) {
  test(`an id with spaces and other letters is shown, and the commands that name it are accepted, on ${engine.name}`, async () => {
    const key = 'order/7 ä?=%~#'
    const old = new Date(Date.now() - 60 * 86_400_000).toISOString()
    await using project = await createAdoptedProject(
      engine,
      `CREATE TABLE jobs (id text PRIMARY KEY, state text, portal text, started text, beat text, why text);
       INSERT INTO jobs VALUES ('${key}', 'busy', 'b', '${old}', NULL, NULL), ('${UUID}', 'busy', 'c', '${old}', '${ago}', NULL),
         ('it''s', 'busy', 'd', '${ago}', NULL, NULL)`,
      {
        jobs: {
          ...mapping('jobs'),
          columns: { ...mapping('jobs').columns, heartbeatAt: 'beat' },
          policy: { lease: '150ms', heartbeat: '50ms' },
        },
      },
    )
    const { cli, json } = project
    const quoted = `'jobs:${key}'`
    const { attention } = await json('status')
    const commands = attention.map(({ command }: any) => command)
    assert.ok(commands.includes(`unstuck clean ${quoted}`), commands.join('\n'))
    assert.match((await cli('summary')).stdout, /^order\/7 ä\?=%~# +b/m)
    const { dead } = await json('clean', '--dry-run')
    const [action] = dead.find(({ origin }: any) => origin.key === key).actions
    assert.equal(action.command, `unstuck clean ${quoted} --yes`)
    for (const name of [key, `jobs:${key}`])
      assert.equal((await json('show', name)).run.origin.key, key)
    // A quote would have to be escaped.
    assert.match((await cli('show', "it's")).stdout, /^Run [\da-f]{8} of d/)

    const listed = (await cli('workers')).stdout
    assert.match(listed, new RegExp(`^row ${UUID} of`, 'm'))
    assert.match(listed, new RegExp(`^row ${UUID} of jobs is silent: `, 'm'))
    assert.doesNotMatch(listed, /PROCESS/)
    const { checks } = await json('doctor')
    const { details } = checks.find(({ check }: any) => check === 'workers')
    assert.ok(
      details.some((one: string) => one.startsWith(`row ${UUID} of jobs `)),
      details,
    )
  })
}

test("sent alerts and `alerts list` name a row by the user's own id", async () => {
  const jobs = { ...mapping('jobs'), policy: {} }
  await using project = await createAdoptedProject(
    sqliteEngine,
    `CREATE TABLE jobs (id integer PRIMARY KEY, state text, portal text, started text, why text);
     INSERT INTO jobs VALUES (4711, 'busy', 'a', '${ago}', NULL);`,
    { jobs },
  )
  const settings = await makeSettings({ db: project.url, adopted: { jobs } }, null)
  const store = await openAll({ settings, address: project.url, log: () => {} })
  await using _closing = { [Symbol.asyncDispose]: () => store.close() }
  await using sink = await httpSink()
  const service = makeAlertService(store, [webhookTo(sink)])
  await service.check()
  const [{ body }] = (await sink.wait(1)) as [any]
  assert.equal(body.headline, 'dead run jobs:4711 of a')
  const { stdout } = await project.cli('alerts', 'list')
  assert.match(stdout, /^dead +a +jobs:4711 /m)
  await service.stop()
})
