import type { Client, QueryConfig } from 'pg'
import { UnusableStoreError } from '../../model/errors.ts'
import { parseAddress, withDatabase } from './address.ts'
import { connectTo } from './connect.ts'
import { codeOf, storeError } from './errors.ts'
import { closeClient } from './timeouts.ts'

/** A database that holds nothing of anybody: made for a trial, and gone after it. */
export type Scratch = {
  readonly name: string
  readonly address: string
  readonly drop: () => Promise<void>
}

/** Names are ours and go into statements as they are. */
const NAME = /^[a-z][a-z0-9_]{0,62}$/
/** A new database is a copy of a whole one. */
const PATIENCE_MS = 60_000
const NOT_PERMITTED = '42501'

/** Makes an empty database beside the one at the address, on the same server and with the same login. */
export async function createScratch(server: string, name: string): Promise<Scratch> {
  if (!NAME.test(name)) throw new Error(`${name} is no name for a scratch database`)
  const address = withDatabase(server, name)
  await ask(server, `CREATE DATABASE ${name}`)
  return {
    name,
    address,
    // Who is still connected must not keep it.
    drop: () => ask(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`),
  }
}

async function ask(server: string, statement: string): Promise<void> {
  const address = parseAddress(server)
  const { where } = address
  let client: Client | undefined
  try {
    client = await connectTo(address, 'writable')
    await client.query({ text: statement, query_timeout: PATIENCE_MS } as QueryConfig)
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
