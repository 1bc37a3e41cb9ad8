import type { Client } from 'pg'
import { StoreReadOnlyError, UnusableStoreError } from '../../model/errors.ts'
import type { Address } from './address.ts'
import { connectTo, type Accepts } from './connect.ts'
import { Connection, sql } from './database.ts'
import { storeError } from './errors.ts'
import { migrate, SCHEMA_VERSION, version } from './migrate.ts'
import { closeClient } from './timeouts.ts'
import { refuseOldServer, SERVER_VERSION, type ServerVersion } from './server-version.ts'

const SERVER = sql('open:server')`
  SELECT pg_backend_pid() AS pid,
         current_setting('transaction_read_only') = 'on' AS read_only,
         current_setting('synchronous_commit') = 'off' AS is_lossy,
         ${SERVER_VERSION}
`
const MAY_WRITE = sql('open:rights')`
  SELECT has_table_privilege('unstuck.target', 'UPDATE') AS may_write
`

type ServerProbe = ServerVersion & { pid: number; read_only: boolean; is_lossy: boolean }

/** Checks that the server can be used, brings the schema up to date unless it is only read, and detects a connection pooler. */
export async function probeServer(
  address: Address,
  readOnly: boolean,
): Promise<{ pooled: boolean }> {
  let client: Client | undefined
  try {
    client = await connectTo(address, acceptable(address, readOnly))
    const connection = new Connection(client, '', false)
    const first = await readServer(connection)
    refuseOldServer(first)
    const second = await readServer(connection)
    const pooled = isPooled(client, [first.pid, second.pid])
    if (readOnly) {
      await refuseOutdated(connection, address)
      return { pooled }
    }
    if (first.read_only || second.read_only) throw new StoreReadOnlyError(address.where)
    if (pooled && first.is_lossy) {
      throw new UnusableStoreError(
        `The server of ${address.where} has synchronous_commit off: it can lose pages that it acknowledged. Behind a pooler ` +
          'unstuck cannot turn it on for itself. Set it on for this database: ALTER DATABASE … SET synchronous_commit = on.',
      )
    }
    await migrate(connection)
    const [rights] = await connection.all<{ may_write: boolean }>(MAY_WRITE)
    if (!rights!.may_write) throw new StoreReadOnlyError(address.where)
    return { pooled }
  } catch (error) {
    throw storeError(error, address.where)
  } finally {
    if (client) await closeClient(client)
  }
}

/** The one server of an address is refused for good where it takes no writes; of many, another may be promoted soon. */
function acceptable({ hosts }: Address, readOnly: boolean): Accepts {
  return readOnly || hosts.length === 1 ? 'any' : 'writable'
}

/** A session of our own has one server process, and it is the one that greeted us. */
export function isPooled(client: Client, pids: readonly number[]): boolean {
  const greeted = (client as unknown as { processID: number | null }).processID
  return pids.some((pid) => pid !== greeted)
}

async function readServer(connection: Connection): Promise<ServerProbe> {
  return (await connection.all<ServerProbe>(SERVER))[0]!
}

/** A login that may only read cannot bring the schema up to date either. */
async function refuseOutdated(connection: Connection, { where }: Address): Promise<void> {
  const number = await version(connection)
  if (number === SCHEMA_VERSION) return
  throw new UnusableStoreError(
    `The schema of ${where} is of version ${number}, and this program reads version ${SCHEMA_VERSION}. ` +
      'Run `unstuck migrate` with a login that may change it.',
  )
}
