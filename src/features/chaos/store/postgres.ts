import type { Client, QueryConfig } from 'pg'
import { UnusableStoreError } from '../../../core/model/errors.ts'
import {
  closeClient,
  codeOf,
  connectTo,
  parseAddress,
  storeError,
  withDatabase,
} from '../../../core/store/postgres/kit.ts'

/** An empty database for one trial. */
export type Scratch = {
  readonly name: string
  readonly address: string
  readonly drop: () => Promise<void>
}

/** Names are not quoted in statements. */
const NAME = /^[a-z][a-z0-9_]{0,62}$/
/** Creating a database copies a template. */
const QUERY_TIMEOUT_MS = 60_000
const NOT_PERMITTED = '42501'

/** Makes an empty database beside the one at the address, on the same server and with the same login. */
export async function createScratch(server: string, name: string): Promise<Scratch> {
  if (!NAME.test(name)) throw new Error(`${name} is no name for a scratch database`)
  const address = withDatabase(server, name)
  await ask(server, `CREATE DATABASE ${name}`)
  return {
    name,
    address,
    // FORCE ends connections that are still open.
    drop: () => ask(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

async function ask(server: string, statement: string): Promise<void> {
  const address = parseAddress(server)
  const { where } = address
  let client: Client | undefined
  try {
    client = await connectTo(address, 'writable')
    await client.query({ text: statement, query_timeout: QUERY_TIMEOUT_MS } as QueryConfig)
  } catch (error) {
    throw codeOf(error) === NOT_PERMITTED ? notPermitted(where, error) : storeError(error, where)
  } finally {
    if (client) await closeClient(client)
  }
}

function notPermitted(where: string, cause: unknown): UnusableStoreError {
  return new UnusableStoreError(
    `The login to ${where} may not make databases, and nothing is tried out in yours. ` +
      'Let it (`ALTER ROLE name CREATEDB`), name another server, or leave --db out: a SQLite file needs no rights.',
    { cause },
  )
}
