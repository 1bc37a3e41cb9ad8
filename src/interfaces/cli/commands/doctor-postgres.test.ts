import assert from 'node:assert/strict'
import { createServer, type AddressInfo, type Socket } from 'node:net'
import { test } from 'node:test'
import pg from 'pg'
import { startPooler } from '../../../../test/pooler.ts'
import { newId, shortId } from '../../../core/model/id.ts'
import { runDoctor, type DoctorReport } from '../../../testing/doctor-report.ts'
import { startServer } from '../../../testing/postgres.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'

/** What `unstuck doctor` tells of a server: its settings, the way to it, and its absence. */

async function runDoctorOn(url: string, env: NodeJS.ProcessEnv = {}): Promise<DoctorReport> {
  using folder = temporaryFolder()
  return await runDoctor(['--db', url], { cwd: folder.path, env })
}

function nameOf(db: TestDatabase): string {
  return new URL(db.url).pathname.slice(1)
}

test('synchronous_commit off is a warning: unstuck turns it on for itself', async () => {
  await using db = await postgresEngine.fresh()
  await db.raw(`ALTER DATABASE ${nameOf(db)} SET synchronous_commit = off`)

  const said = await runDoctorOn(db.url)

  assert.equal(said.code, 3)
  const { result, details, fix } = said.getCheck('durability')
  assert.equal(result, 'warning')
  assert.deepEqual(details, ["on unstuck's own connections: synchronous_commit = on"])
  assert.match(fix ?? '', /ALTER DATABASE/)
  assert.equal(said.getCheck('counters').result, 'ok')
})

test('a pooler is noted; with synchronous_commit off behind it, nothing works', async () => {
  await using db = await postgresEngine.fresh()
  await using pooler = await startPooler(db.url)

  const pooled = await runDoctorOn(pooler.url)
  assert.equal(pooled.getCheck('pooler').result, 'note')
  assert.equal(pooled.getCheck('counters').result, 'ok')
  assert.equal((await runDoctorOn(db.url)).getCheck('pooler').result, 'ok')

  await db.raw(`ALTER DATABASE ${nameOf(db)} SET synchronous_commit = off`)
  await using lossy = await startPooler(db.url)
  const said = await runDoctorOn(lossy.url)
  assert.equal(said.code, 7)
  assert.equal(said.getCheck('durability').result, 'problem')
  assert.match(said.getCheck('opening').found, /can lose pages that it acknowledged/)
  assert.equal(said.has('counters'), false)
})

test('too few connections left are a warning', async () => {
  await using db = await postgresEngine.fresh()
  await db.raw(`ALTER DATABASE ${nameOf(db)} CONNECTION LIMIT 4`)

  const said = await runDoctorOn(db.url)

  assert.equal(said.code, 3)
  assert.equal(said.getCheck('connections').result, 'warning')
  assert.match(
    said.getCheck('connections').found,
    /^\d of 4 connections are free: enough for 0 more worker processes\.$/,
  )
})

test('a clock that is off is a warning, and nothing else is', async () => {
  await using db = await postgresEngine.fresh()
  // The clock of a server cannot be moved here; that of the command can.
  const shift = (ms: number): string =>
    `--import data:text/javascript,${encodeURIComponent(`const now = Date.now; Date.now = () => now() + ${ms}`)}`

  const hour = await runDoctorOn(db.url, { NODE_OPTIONS: shift(3_600_000) })
  assert.equal(hour.getCheck('clock').result, 'warning')
  assert.match(hour.getCheck('clock').found, /^The server's clock is 60 min behind this host's/)
  assert.equal(hour.getCheck('workers').result, 'ok')
  assert.equal(hour.code, 3)
  const second = await runDoctorOn(db.url, { NODE_OPTIONS: shift(-1_000) })
  assert.equal(second.getCheck('clock').result, 'ok')
})

test('sessions that start read-only end with 7, after all the other checks', async () => {
  await using db = await postgresEngine.fresh()
  await db.raw(`ALTER DATABASE ${nameOf(db)} SET default_transaction_read_only = on`)

  const said = await runDoctorOn(db.url)

  assert.equal(said.code, 7)
  assert.match(said.getCheck('writable').found, /sessions start read-only/)
  for (const check of ['schema', 'durability', 'clock', 'disk', 'signals']) said.getCheck(check)
})

test('a login without the rights ends with 7 and names them', async () => {
  await using db = await postgresEngine.fresh()
  const role = `reader_${shortId(newId())}`
  await db.raw(/* sql */ `
    CREATE ROLE ${role} LOGIN PASSWORD 'hunter2';
    GRANT USAGE ON SCHEMA unstuck TO ${role};
    GRANT SELECT ON ALL TABLES IN SCHEMA unstuck TO ${role};
  `)
  const url = new URL(db.url)
  url.username = role
  url.password = 'hunter2'
  try {
    const said = await runDoctorOn(url.href)
    assert.equal(said.code, 7)
    assert.match(said.getCheck('writable').found, /the login lacks the rights/)
    assert.doesNotMatch(said.stdout, /hunter2/)

    url.password = 'wrong-one'
    const refused = await runDoctorOn(url.href)
    assert.equal(refused.code, 7)
    assert.match(refused.getCheck('database').found, /refused the login/)
    assert.doesNotMatch(refused.stdout, /wrong-one/)
  } finally {
    await db.raw(`DROP OWNED BY ${role}; DROP ROLE ${role}`)
  }
})

test('a database that is not there ends with 7', async () => {
  await using db = await postgresEngine.empty()
  const url = new URL(db.url)
  url.pathname = '/nowhere'

  const said = await runDoctorOn(url.href)

  assert.equal(said.code, 7)
  assert.match(said.getCheck('database').found, /There is no such database/)
})

test('a server that accepts and never responds does not block doctor', async () => {
  const sockets = new Set<Socket>()
  const silent = createServer((socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const { port } = silent.address() as AddressInfo

  const said = await runDoctorOn(`postgres://me@127.0.0.1:${port}/x`)

  assert.equal(said.code, 7)
  assert.match(said.getCheck('database').found, /does not answer/)
  for (const check of ['runtime', 'config', 'address', 'disk', 'signals']) said.getCheck(check)
  for (const socket of sockets) socket.destroy()
  silent.close()
})

test('a server without fsync or full_page_writes is reported, and an unreachable one ends with 7', async () => {
  const server = await startServer({ inMemory: true })
  const set = async (setting: string, value: string): Promise<void> => {
    const client = new pg.Client({ connectionString: server.url })
    await client.connect()
    await client.query(`ALTER SYSTEM SET ${setting} = ${value}`)
    await client.query('SELECT pg_reload_conf()')
    // The reload reaches sessions in its own time.
    for (let seen = ''; seen !== value;) {
      const { rows } = await client.query<Record<string, string>>(`SHOW ${setting}`)
      seen = rows[0]![setting]!
    }
    await client.end()
  }
  try {
    const sound = await runDoctorOn(server.url)
    assert.equal(sound.getCheck('durability').result, 'ok')
    await set('full_page_writes', 'off')
    const torn = await runDoctorOn(server.url)
    assert.equal(torn.getCheck('durability').result, 'warning')
    await set('fsync', 'off')
    const said = await runDoctorOn(server.url)
    assert.equal(said.code, 3)
    assert.equal(said.getCheck('durability').result, 'problem')
    assert.match(said.getCheck('durability').found, /fsync off/)

    await server.stop()
    const away = await runDoctorOn(server.url)
    assert.equal(away.code, 7)
    assert.match(away.getCheck('database').found, /does not answer/)
    assert.doesNotMatch(away.stdout, /postgres:unstuck@/)
  } finally {
    await server.remove()
  }
})
