import { Client, type ClientBase } from 'pg'
import type { Address, Host } from './address.ts'
import { isConnectionError, reasonOf } from './errors.ts'
import { closeClient } from './timeouts.ts'

/** Which servers are accepted: any that responds, the primary, or one that accepts writes. */
export type Accepts = 'any' | 'primary' | 'writable'

/** The host of an address that was found to serve last, for all connections of this thread. */
const current = new WeakMap<Address, number>()

export function currentHost(address: Address): Host {
  return address.hosts[current.get(address) ?? 0]!
}

/** Calls `connect`, and for each host that cannot serve calls it again for the next one. */
export async function tryHosts<T>(address: Address, connect: () => Promise<T>): Promise<T> {
  const failures: string[] = []
  for (;;) {
    const at = current.get(address) ?? 0
    try {
      return await connect()
    } catch (error) {
      if (!isConnectionError(error) || address.hosts.length === 1) throw error
      failures.push(`${address.hosts[at]!.name}: ${reasonOf(error)}`)
      if (failures.length === address.hosts.length) throw noneServes(failures)
      // Another connection may have gone on to the next host already.
      if ((current.get(address) ?? 0) === at) current.set(address, (at + 1) % address.hosts.length)
    }
  }
}

/** A connection of its own, outside of any pool. Its errors after this are those of its queries. */
export function connectTo(
  address: Address,
  accepts: Accepts,
  setUp: (client: Client) => Promise<void> = async () => {},
): Promise<Client> {
  return tryHosts(address, async () => {
    const client = new Client(currentHost(address).config)
    client.on('error', () => {})
    try {
      await client.connect()
      await refuseStandby(client, accepts)
      await setUp(client)
      return client
    } catch (error) {
      await closeClient(client)
      throw error
    }
  })
}

const ROLE = /* sql */ `
  SELECT pg_is_in_recovery() AS is_standby, current_setting('transaction_read_only') = 'on' AS is_read_only
`

/** What is read on a standby may be old: no worker is declared dead by it. */
export async function refuseStandby(client: ClientBase, accepts: Accepts): Promise<void> {
  if (accepts === 'any') return
  const { rows } = await client.query<{ is_standby: boolean; is_read_only: boolean }>(ROLE)
  const { is_standby: isStandby, is_read_only: isReadOnly } = rows[0]!
  if (isStandby) throw notServing('this server is a standby')
  if (isReadOnly && accepts === 'writable') throw notServing('this server takes no writes')
}

/** With the code that PostgreSQL gives a write on a standby. */
function notServing(message: string): Error {
  return Object.assign(new Error(message), { code: '25006' })
}

/** With the code for "no connection could be made". */
function noneServes(failures: readonly string[]): Error {
  return Object.assign(new Error(failures.join('; ')), { code: '08001' })
}
