import type { Client } from 'pg'
import {
  closeClient,
  Connection,
  CONNECTIONS_DEFAULT,
  connectTo,
  foundVersion,
  HEARTBEAT_CONNECTIONS,
  isConnectionError,
  isPooled,
  MIGRATIONS,
  ms,
  parseAddress,
  refuseOldServer,
  SCHEMA_VERSION,
  SERVER_VERSION,
  sql,
  storeError,
  type Address,
  type ServerVersion,
  type Sql,
} from '../../../core/store/postgres/kit.ts'
import { pendingAfter } from '../../../core/store/schema-version.ts'
import type { ConnectionFacts, DatabaseInfo, PostgresFacts } from './database-info.ts'

const PROBE = sql('info')`
  SELECT pg_backend_pid() AS pid,
         ${ms('clock_timestamp()')} AS now,
         current_setting('server_version') AS server_version,
         current_setting('transaction_read_only') = 'on' AS read_only,
         pg_is_in_recovery() AS in_recovery,
         current_setting('synchronous_commit', true) AS synchronous_commit,
         current_setting('fsync', true) AS fsync,
         current_setting('full_page_writes', true) AS full_page_writes,
         ${SERVER_VERSION}
`
const RIGHTS = sql('info:rights')`
  SELECT CASE WHEN to_regclass('unstuck.target') IS NULL
              THEN has_database_privilege(current_database(), 'CREATE')
              ELSE has_table_privilege('unstuck.target', 'UPDATE') END AS may_write
`
// A limit of -1 is none.
const CONNECTIONS = sql('info:connections')`
  SELECT current_setting('max_connections')::int
           - coalesce(current_setting('superuser_reserved_connections', true)::int, 0)
           - coalesce(current_setting('reserved_connections', true)::int, 0) AS server_max,
         (SELECT sum(numbackends)::int FROM pg_stat_database) AS server_used,
         d.datconnlimit AS database_max,
         s.numbackends AS database_used,
         (SELECT count(*)::int FROM pg_stat_activity
           WHERE datname = current_database() AND application_name = 'unstuck') AS own
    FROM pg_database d JOIN pg_stat_database s ON s.datid = d.oid
   WHERE d.datname = current_database()
`
const SIZE = sql('info:size')`SELECT pg_database_size(current_database())::float8 AS bytes`

type ProbeRow = ServerVersion & {
  pid: number
  now: number
  server_version: string
  read_only: boolean
  in_recovery: boolean
  synchronous_commit: string | null
  fsync: string | null
  full_page_writes: string | null
}
type ConnectionsRow = {
  server_max: number
  server_used: number
  database_max: number
  database_used: number
  own: number
}
type ProbeSample = {
  readonly row: ProbeRow
  readonly roundTripMs: number
  readonly clockAheadMs: number
}

const SAMPLES = 3

/** Reads the server and our schema without creating, migrating or changing anything. */
export async function readPostgresInfo(text: string): Promise<DatabaseInfo> {
  const address = parseAddress(text)
  let client: Client | undefined
  try {
    client = await connectTo(address, address.hosts.length === 1 ? 'any' : 'primary')
    const connection = new Connection(client, '', false)
    const number = await foundVersion(connection)
    return {
      where: address.where,
      version: number,
      known: SCHEMA_VERSION,
      pending: pendingAfter(number, MIGRATIONS),
      engine: await readServerInfo(address, client, connection),
    }
  } catch (error) {
    throw storeError(error, address.where)
  } finally {
    if (client) await closeClient(client)
  }
}

async function readServerInfo(
  address: Address,
  client: Client,
  connection: Connection,
): Promise<PostgresFacts> {
  const samples: ProbeSample[] = []
  for (let n = 0; n < SAMPLES; n++) samples.push(await probe(connection))
  refuseOldServer(samples[0]!.row)
  // The fastest sample has the smallest error.
  const { row, roundTripMs, clockAheadMs } = samples.reduce((best, sample) =>
    sample.roundTripMs < best.roundTripMs ? sample : best,
  )
  const [rights] = await connection.all<{ may_write: boolean }>(RIGHTS)
  const connections = await queryOptional<ConnectionsRow>(connection, CONNECTIONS)
  const size = await queryOptional<{ bytes: number }>(connection, SIZE)
  const pids = samples.map(({ row }) => row.pid)
  return {
    name: 'postgres',
    serverVersion: row.server_version,
    roundTripMs,
    clockAheadMs,
    pooled: isPooled(client, pids),
    inRecovery: row.in_recovery,
    readOnly: row.read_only,
    mayWrite: rights!.may_write,
    synchronousCommit: row.synchronous_commit,
    fsync: row.fsync,
    fullPageWrites: row.full_page_writes,
    connections: connections && tightestLimit(connections),
    perWorker: (address.connections ?? CONNECTIONS_DEFAULT) + HEARTBEAT_CONNECTIONS,
    bytes: size?.bytes ?? null,
  }
}

async function probe(connection: Connection): Promise<ProbeSample> {
  const [askedAt, startedAt] = [Date.now(), performance.now()]
  const [row] = await connection.all<ProbeRow>(PROBE)
  const roundTripMs = performance.now() - startedAt
  return { row: row!, roundTripMs, clockAheadMs: row!.now - (askedAt + roundTripMs / 2) }
}

/** Returns null for a statement that a compatible engine does not support. */
async function queryOptional<Row>(connection: Connection, statement: Sql): Promise<Row | null> {
  try {
    const [row] = await connection.all<Row>(statement)
    return row ?? null
  } catch (error) {
    if (isConnectionError(error)) throw error
    return null
  }
}

function tightestLimit({ own, ...row }: ConnectionsRow): ConnectionFacts {
  const server = { max: row.server_max, used: row.server_used, own }
  const database = { max: row.database_max, used: row.database_used, own }
  const isDatabase = database.max >= 0 && database.max - database.used < server.max - server.used
  return isDatabase ? database : server
}
