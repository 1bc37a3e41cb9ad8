import { registerOwnSecrets, unknownAddress } from '../../../core/store/open.ts'

/** A database as found. Nothing is created, migrated or written to read it. */
export type DatabaseInfo = {
  /** Without secrets. */
  readonly where: string
  /** Of the schema; 0: it has none of our tables. */
  readonly version: number
  /** The version that this program knows. */
  readonly known: number
  /** The migrations between the two, in the order they will be applied. */
  readonly pending: readonly string[]
  /** Null where there is no database yet. */
  readonly engine: EngineFacts | null
}

export type EngineFacts = SqliteFacts | PostgresFacts

export type SqliteFacts = {
  readonly name: 'sqlite'
  readonly path: string
  /** How long it took to open and read it. */
  readonly roundTripMs: number
  /** As the file has it, before a store opens it. */
  readonly journalMode: string
  /** The system's error when file or folder is not writable; else null. */
  readonly readOnly: string | null
  /** The network file system it lies on, if it does. */
  readonly network: string | null
  readonly bytes: number
  readonly walBytes: number
}

export type PostgresFacts = {
  readonly name: 'postgres'
  readonly serverVersion: string
  readonly roundTripMs: number
  /** The server's clock less this host's. Right to half a round trip. */
  readonly clockAheadMs: number
  readonly pooled: boolean
  readonly inRecovery: boolean
  readonly readOnly: boolean
  /** The login may write to our tables, or make them where there are none. */
  readonly mayWrite: boolean
  /** As in a new session; null where a compatible engine has no such setting. */
  readonly synchronousCommit: string | null
  readonly fsync: string | null
  readonly fullPageWrites: string | null
  /** The tighter of the limits of the server and of this database; null where unknown. */
  readonly connections: ConnectionFacts | null
  /** Connections that a worker process opens from this address, at most. */
  readonly perWorker: number
  readonly bytes: number | null
}

export type ConnectionFacts = {
  /** For logins without special rights. */
  readonly max: number
  readonly used: number
  /** Those of `used` that are connections of Unstuck, as far as this login sees. */
  readonly own: number
}

/** Reads a database without creating, migrating or changing anything. */
export async function readDatabaseInfo(address: string): Promise<DatabaseInfo> {
  registerOwnSecrets(address)
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { readPostgresInfo } = await import('./postgres-info.ts')
    return readPostgresInfo(address)
  }
  if (address.startsWith('sqlite:')) {
    const { readSqliteInfo } = await import('./sqlite-info.ts')
    return readSqliteInfo(address.slice('sqlite:'.length))
  }
  throw unknownAddress()
}
