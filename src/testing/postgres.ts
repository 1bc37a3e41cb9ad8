import { execFile, spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { once } from 'node:events'
import { appendFileSync, chmodSync, chownSync, cpSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { promisify } from 'node:util'
import { newId, shortId } from '../core/model/id.ts'
import { KeptConnection } from './kept-connection.ts'
import { changeOwner, makeServerFiles, type ServerFiles } from './postgres-files.ts'

/** A PostgreSQL server of the tests' own, which they may stop and start as they like. */
export type TestServer = {
  readonly url: string
  readonly folder: string
  start(): Promise<void>
  /** Ends its sessions and stops, in good order. */
  stop(): Promise<void>
  /** Ends it in the middle of everything. Returns when it has ended. */
  crash(): void
  /** Stops it for good and removes its files. */
  remove(): Promise<void>
}

const SETTINGS = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=500']

export type ServerOptions = {
  /** Files in memory: for tests that make hundreds of databases and never cut the power. */
  readonly inMemory?: boolean
  /** It follows this server, asynchronously, until it is promoted. That one is stopped for a moment to copy its files. */
  readonly standbyOf?: TestServer
}

/** Starts a server in a temporary folder on a free port. It syncs to disk, as a real one does. */
export async function startServer(options: ServerOptions = {}): Promise<TestServer> {
  const { inMemory = false, standbyOf: primary } = options
  const files = makeServerFiles(inMemory)
  const password = primary ? new URL(primary.url).password : randomBytes(16).toString('hex')
  let server: ChildProcess | null = null
  const start = async (): Promise<void> => {
    server = await launch(files, port)
  }
  const stop = async (): Promise<void> => {
    if (!isRunning(server)) return
    server.kill('SIGINT')
    await once(server, 'exit')
  }
  const removeFiles = (): void => rmSync(files.folder, { recursive: true, force: true })
  const port = await freePort()
  stopOnExit(() => {
    if (isRunning(server)) stopImmediately(files)
    removeFiles()
  })
  try {
    await (primary ? copyCluster(files, primary) : createCluster(files, password))
    await start()
  } catch (error) {
    removeFiles()
    throw error
  }
  return {
    url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
    folder: files.folder,
    start,
    stop,
    crash: () => stopImmediately(files),
    remove: async () => {
      await stop()
      removeFiles()
    },
  }
}

async function createCluster({ folder, bin, user }: ServerFiles, password: string): Promise<void> {
  const passwordFile = join(folder, 'password')
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 })
  if (user) chownSync(passwordFile, user.uid, user.gid)
  const args = [
    `--pgdata=${join(folder, 'data')}`,
    `--pwfile=${passwordFile}`,
    ...'--username=postgres --auth=password --encoding=UTF8 --locale=C --no-sync'.split(' '),
  ]
  await promisify(execFile)(join(bin, 'initdb'), args, { cwd: folder, ...user })
}

/** As `pg_basebackup -R` would do. */
async function copyCluster({ folder, user }: ServerFiles, primary: TestServer): Promise<void> {
  const data = join(folder, 'data')
  await primary.stop()
  cpSync(join(primary.folder, 'data'), data, { recursive: true })
  await primary.start()
  const { hostname, port, username, password } = new URL(primary.url)
  const from = `host=${hostname} port=${port} user=${username} password=${password}`
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${from}'\n`)
  writeFileSync(join(data, 'standby.signal'), '')
  chmodSync(data, 0o700)
  if (user) changeOwner(user, data)
}

const LOG_LENGTH_MAX = 2_000

/** Resolves when it accepts connections. */
async function launch({ folder, bin, user }: ServerFiles, port: number): Promise<ChildProcess> {
  const settings = SETTINGS.flatMap((setting) => ['-c', setting])
  const args = ['-D', join(folder, 'data'), '-p', String(port), ...settings]
  const server = spawn(join(bin, 'postgres'), args, {
    cwd: folder,
    stdio: ['ignore', 'ignore', 'pipe'],
    ...user,
  })
  let log = ''
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.once('exit', () => reject(new Error(`PostgreSQL did not start: ${log}`)))
    server.stderr.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-LOG_LENGTH_MAX)
      if (/ready to accept (read-only )?connections/.test(log)) resolve()
    })
  })
  return server
}

function isRunning(server: ChildProcess | null): server is ChildProcess {
  return server !== null && server.exitCode === null && server.signalCode === null
}

/** Returns when it has ended. */
function stopImmediately({ folder, bin, user }: ServerFiles): void {
  const args = ['stop', '-D', join(folder, 'data'), '-m', 'immediate']
  spawnSync(join(bin, 'pg_ctl'), args, { cwd: folder, ...user })
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const

/** A signal ends this process at once unless something else listens for it; then that decides. */
function stopOnExit(end: () => void): void {
  process.once('exit', end)
  for (const signal of SIGNALS) {
    process.once(signal, () => {
      if (process.listenerCount(signal) === 0) process.exit(1)
    })
  }
}

/** A database that goes when the test ends, on the server that `npm run unit` started. */
export async function createDatabase(
  server: string | undefined = process.env['UNSTUCK_TEST_PG'],
  /** The database that it begins as a copy of. */
  template = 'template1',
): Promise<{ url: string; drop(): Promise<void> }> {
  if (!server) {
    throw new Error('UNSTUCK_TEST_PG is not set. Run the tests with `npm run unit -- FILE`.')
  }
  const name = `test_${shortId(newId())}`
  const connection = connectionTo(server)
  await connection.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY FILE_COPY`)
  const url = new URL(server)
  url.pathname = name
  return {
    url: url.href,
    drop: async () => {
      await connection.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`)
    },
  }
}

const connections = new Map<string, KeptConnection>()

function connectionTo(server: string): KeptConnection {
  const connection = connections.get(server) ?? new KeptConnection(server)
  connections.set(server, connection)
  return connection
}

/** Below the ports that systems give to outgoing connections: one of those could take it while the server restarts. */
async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_000, 32_000)
    const probe = createServer().listen(port, '127.0.0.1')
    const isFree = await once(probe, 'listening').then(
      () => true,
      () => false,
    )
    probe.close()
    if (isFree) return port
  }
}
