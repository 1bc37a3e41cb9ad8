import assert from 'node:assert/strict'
import {
  existsSync,
  readdirSync,
  readFileSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { thisProcess } from '../../../core/host/identity.ts'
import { newId } from '../../../core/model/id.ts'
import { claim, registerWorker, enqueueCrawl } from '../../../testing/fixtures.ts'
import { schemaFinding } from '../doctor/database.ts'
import { runDoctor, type DoctorReport } from '../../../testing/doctor-report.ts'
import { startStoreProcess } from '../../../testing/store-process.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { createPreRelease } from '../../../testing/pre-release.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import type { Engine, TestDatabase } from '../../../testing/test-database.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'

/** `unstuck doctor` on databases and files as people have them. */

/** Looks at a test's database, from a folder without a config. */
async function runDoctorOn(db: TestDatabase): Promise<DoctorReport> {
  using folder = temporaryFolder()
  return await runDoctor(['--db', db.url], { cwd: folder.path })
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => testDatabase(engine))
}

function testDatabase(engine: Engine): void {
  test('a sound database has nothing but good results', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 3)
    await claim(store, await registerWorker(store), 1)

    const said = await runDoctorOn(db)

    said.assertOnlyProblems()
    const isBad = said.data.checks.some(({ result }) => /warning|problem/.test(result))
    assert.equal(said.code, isBad ? 3 : 0)
    assert.match(said.getCheck('counters').found, /^The counters of 1 run match/)
    assert.match(said.getCheck('workers').found, /^1 worker running/)
  })

  test('an empty database is reported as such, and stays empty', async () => {
    await using db = await engine.empty()

    const said = await runDoctorOn(db)

    const check = said.getCheck(engine.name === 'sqlite' ? 'database' : 'schema')
    assert.equal(check.result, 'note')
    assert.match(check.fix ?? '', /`unstuck demo`/)
    said.assertOnlyProblems(check.check)
    assert.ok(!said.has('counters'))
    if (engine.name === 'sqlite') assert.equal(existsSync(db.url.slice('sqlite:'.length)), false)
    else assert.deepEqual(await db.raw(`SELECT FROM pg_namespace WHERE nspname = 'unstuck'`), [])
  })

  test('broken promises are found in the data, each by its own check', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const worker = await registerWorker(store)
    const run = await enqueueCrawl(store, 4)
    await claim(store, worker, 1)
    const ended = await enqueueCrawl(store, 1, { source: 'ended' })
    const [runs, counters] = [db.table('run'), db.table('run_counters')]
    await db.raw(`DELETE FROM ${db.table('worker')}`)
    await db.raw(`UPDATE ${counters} SET planned = planned + 1 WHERE run_id = '${run}'`)
    await db.raw(`UPDATE ${runs} SET status = 'cancelled' WHERE id = '${ended}'`)
    await db.raw(`DROP INDEX ${db.table('run_live')}`)
    await db.raw(
      `INSERT INTO ${runs} (id, source, kind, status, policy, created_at)
       SELECT '${newId()}', source, kind, 'queued', policy, created_at FROM ${runs} WHERE id = '${run}'`,
    )

    const said = await runDoctorOn(db)

    assert.equal(said.code, 3)
    assert.equal(said.data.result, 'problem')
    for (const [check, result, detail] of [
      ['counters', 'problem', /^shop [0-9a-f]{8}: 4 planned recorded, 3 counted$/],
      ['one-live-run', 'problem', /^shop: [0-9a-f]{8}, [0-9a-f]{8}$/],
      ['claims', 'problem', /^shop .*, target [0-9a-f]{8}: its worker is unknown$/],
      ['ended-runs', 'warning', /^ended [0-9a-f]{8}$/],
    ] as const) {
      assert.equal(said.getCheck(check).result, result, check)
      assert.match(said.getCheck(check).details[0]!, detail)
      assert.ok(said.getCheck(check).why && said.getCheck(check).fix, check)
    }
    said.assertOnlyProblems('counters', 'one-live-run', 'claims', 'ended-runs', 'runs')
  })

  test('a lost worker with something in hand is a warning that names the way out', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 2)
    await claim(store, await registerWorker(store), 2)
    ;(await runDoctorOn(db)).assertOnlyProblems()

    await db.advanceClock(60_000)

    const said = await runDoctorOn(db)
    assert.equal(said.code, 3)
    assert.equal(said.getCheck('workers').found, '1 lost worker still owning 2 targets.')
    assert.match(said.getCheck('workers').fix ?? '', /`unstuck recover`/)
    said.assertOnlyProblems('workers', 'runs')
  })

  test('a worker that was killed a moment ago is reported, as by `status`', async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    await enqueueCrawl(store, 1)
    const killed = { ...thisProcess(), pid: 2 ** 22 - 7, startTicks: 1 }
    await claim(store, await registerWorker(store, { process: killed }), 1)

    const said = await runDoctorOn(db)
    const status = await unstuck(['status', '--json', '--db', db.url], { cwd: '/' })

    assert.deepEqual([said.code, status.code], [3, 3])
    // The two are called one after the other.
    const ageless = (text: string): string => text.replace(/for .*/, '')
    const { summary } = JSON.parse(status.stdout) as { summary: string }
    assert.equal(ageless(said.getCheck('runs').found), ageless(summary))
    assert.equal(said.getCheck('workers').found, '1 lost worker still owning 1 target.')
  })

  test('a database of a pre-release ends with 9, and is left as it is', async () => {
    await using db = await engine.empty()
    const contents = await createPreRelease(db, engine)
    const before = await contents()

    const report = await runDoctorOn(db)

    assert.equal(report.code, 9)
    assert.match(report.getCheck('schema').found, /^It was made by a pre-release of unstuck/)
    assert.match(report.getCheck('schema').fix ?? '', /rename this one/)
    assert.deepEqual(await contents(), before)
  })

  test('a newer schema ends with 9, after all the other checks', async () => {
    await using db = await engine.fresh()
    const now = engine.name === 'sqlite' ? '0' : 'now()'
    await db.raw(
      `INSERT INTO ${db.table('migration')} (number, min_program_version, applied_at) VALUES (999, 999, ${now})`,
    )

    const said = await runDoctorOn(db)

    assert.equal(said.code, 9)
    assert.match(said.getCheck('schema').found, /version 999; this unstuck knows up to \d+/)
    for (const check of ['runtime', 'durability', 'size', 'disk', 'signals']) said.getCheck(check)
    said.assertOnlyProblems('schema')
  })
}

test('a schema with pending migrations is a warning', () => {
  const pending = { where: 'db', version: 101, known: 102, pending: ['next'], engine: null }
  const { result, found, fix } = schemaFinding(pending)
  assert.deepEqual([result, found], ['warning', 'It has schema version 101 of 102.'])
  assert.match(fix ?? '', /`unstuck migrate`/)
})

describe('a file', () => {
  test('that is no database ends with 7, after all the other checks', async () => {
    using folder = temporaryFolder()
    const path = join(folder.path, 'text.db')
    writeFileSync(path, 'This is not a database, it is a text of some length.\n'.repeat(100))

    const said = await runDoctor(['--db', `sqlite:${path}`], { cwd: folder.path })

    assert.equal(said.code, 7)
    assert.match(said.getCheck('database').found, /not a sound SQLite database/)
    for (const check of ['runtime', 'config', 'address', 'disk', 'signals']) said.getCheck(check)
    said.assertOnlyProblems('database')
  })

  test('that can be made nowhere ends with 7', async () => {
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'file'), '')

    const said = await runDoctor(['--db', 'sqlite:file/below.db'], { cwd: folder.path })

    assert.equal(said.code, 7)
    assert.match(said.getCheck('database').details[0]!, /file is not a folder$/)
  })

  test('that another program took out of WAL mode is reported', async () => {
    await using db = await sqliteEngine.empty()
    await (await db.open()).close()
    await db.raw('PRAGMA journal_mode = DELETE')

    const said = await runDoctorOn(db)

    assert.equal(said.code, 3)
    assert.equal(said.getCheck('durability').result, 'warning')
    assert.match(said.getCheck('durability').found, /journal mode delete, not WAL/)
    said.assertOnlyProblems('durability')
  })

  test('with a big -wal file that is copied back is well', async () => {
    await using db = await sqliteEngine.fresh()
    await db.open()
    truncateSync(`${db.url.slice('sqlite:'.length)}-wal`, 300_000_000)

    const said = await runDoctorOn(db)

    assert.equal(said.code, 0)
    assert.match(said.getCheck('size').found, /its -wal file 300 MB\.$/)
    assert.equal(said.getCheck('wal').result, 'ok')
  })

  test('with stale lock files is reported with their names, and they stay', async () => {
    await using db = await sqliteEngine.fresh()
    const store = await db.open()
    await using other = await startStoreProcess(db.url)
    const [ended, living, starting, unknown] = [newId(), newId(), newId(), newId()]
    for (const id of [ended, living]) {
      const presence = await other.acquirePresence(id)
      await other.call(0, 'registerWorker', {
        id,
        source: 'shop',
        process: { host: '', pid: 0, startTicks: null, bootId: null, pidNamespace: null },
        presence,
        version: '0',
        heartbeatMs: 1_000,
        leaseMs: 15_000,
      })
    }
    await db.raw(`UPDATE worker SET ended_at = 1 WHERE id = '${ended}'`)
    const folder = `${db.url.slice('sqlite:'.length)}-workers`
    for (const id of [starting, unknown]) writeFileSync(join(folder, `${id}.lock`), '')
    const longAgo = new Date(Date.now() - 3_600_000)
    for (const id of [unknown, living]) utimesSync(join(folder, `${id}.lock`), longAgo, longAgo)

    const held = (await runDoctorOn(db)).getCheck('lock-files')
    assert.deepEqual(held.details, [`${join(folder, unknown)}.lock: its worker is unknown`])

    await other.kill('SIGKILL')
    const free = (await runDoctorOn(db)).getCheck('lock-files')
    assert.equal(free.result, 'note')
    assert.deepEqual(
      new Set(free.details),
      new Set([
        `${join(folder, unknown)}.lock: its worker is unknown`,
        `${join(folder, ended)}.lock: its worker has ended`,
      ]),
    )
    assert.match(free.why ?? '', /harmless/)
    assert.equal(readdirSync(folder).length, 4)
    assert.equal((await store.observations()).length, 1)
  })
})

test('prints one line for each check, within 80 columns, and the explanation below', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await db.open()
  await enqueueCrawl(store, 2, { source: 'evil\x1b[2J' })
  await db.raw('UPDATE run_counters SET done = 7')
  using folder = temporaryFolder()

  const { code, stdout } = await unstuck(['doctor', '--db', db.url], {
    cwd: folder.path,
    env: { COLUMNS: '80' },
  })

  assert.equal(code, 3)
  const lines = stdout.split('\n')
  assert.ok(lines.every((line) => line.length <= 80))
  assert.match(lines[0]!, /^\d+ checks: 1 problem/)
  assert.match(stdout, /^ok +runtime +Node /m)
  assert.match(stdout, /^problem +counters +The counters of 1 of 1 run are wrong\.$/m)
  assert.match(stdout, /^counters \(problem\)$/m)
  assert.match(stdout, /^- evil\\x1b\[2J [0-9a-f]{8}: 7 done recorded, 0 counted$/m)
  assert.match(stdout, /^Why it matters: /m)
  assert.match(stdout, /^What to do: /m)
  assert.doesNotMatch(stdout, /(?!\n)\p{Cc}/u)
})

test('docs/reference/json-output.md names every field and every check', async () => {
  const docs = readFileSync(
    new URL('../../../../docs/reference/json-output.md', import.meta.url),
    'utf8',
  )
  const section = docs.split('## `unstuck doctor`')[1]!.split(/^## /m)[0]!
  await using file = await sqliteEngine.fresh()
  await using server = await postgresEngine.fresh()
  for (const db of [file, server]) {
    const { data } = await runDoctorOn(db)
    const names = [...Object.keys(data), ...Object.keys(data.checks[0]!)]
    for (const name of [...names, ...data.checks.map(({ check }) => check)]) {
      assert.ok(section.includes(`\`${name}\``), `${name} is not documented`)
    }
  }
})
