import { Client, type ClientConfig } from 'pg'
import { messageOf, UsageError } from '../../model/errors.ts'

/** Where the server is, and how it is talked to. */
export type Address = {
  readonly config: ClientConfig
  /** For people: without user and password. */
  readonly where: string
}

const CONNECT_MS = 5_000
// Without it a query to a server that went silent would hang for ever.
const QUERY_MS = 10_000
const KEEPALIVE_MS = 10_000

export function parseAddress(address: string): Address {
  const config: ClientConfig = {
    connectionString: address,
    fallback_application_name: 'unstuck',
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
  }
  try {
    const { host, port, database } = new Client(config)
    return { config, where: `postgres://${host}:${port}/${database ?? ''}` }
  } catch (error) {
    throw new UsageError(
      `The database address cannot be read: ${messageOf(error)}. It looks like postgres://user:password@host:5432/database.`,
      { cause: error },
    )
  }
}
