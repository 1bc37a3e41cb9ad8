import { Client, type ClientConfig } from 'pg'
import { CONNECTIONS_MISTAKE, isConnections } from '../../model/limits.ts'
import { messageOf, UsageError } from '../../model/errors.ts'

/** One server of an address. */
export type Host = {
  readonly config: ClientConfig
  /** Host and port. */
  readonly name: string
}

/** Where the servers are, and how they are talked to. */
export type Address = {
  /** In the order in which they are tried. */
  readonly hosts: readonly [Host, ...Host[]]
  /** For display: without user and password. */
  readonly where: string
  /** `connection_limit` of the address. */
  readonly connections: number | undefined
}

const CONNECT_MS = 5_000
// Without it a query to a server that went silent would hang for ever.
const QUERY_MS = 10_000
const KEEPALIVE_MS = 10_000

/** Scheme, login, hosts, and the rest. A password may hold a comma or an @. */
const PARTS = /^(postgres(?:ql)?:\/\/)([^/?#]*@)?([^/?#@]*)(.*)$/s

export function parseAddress(address: string): Address {
  const [, scheme = '', login = '', names = '', rest = ''] = PARTS.exec(address) ?? []
  const parameters = new URLSearchParams(/\?([^#]*)/.exec(rest)?.[1] ?? '')
  const connections = connectionLimit(parameters.get('connection_limit'))
  checkSessionAttributes(parameters.get('target_session_attrs'))
  if (!names.includes(',')) {
    const [host, database] = parseHost(address)
    return { hosts: [host], where: `postgres://${host.name}/${database}`, connections }
  }
  const [first, ...others] = names.split(',').map((name) => {
    if (name === '') throw unreadable('a comma without a host')
    return parseHost(`${scheme}${login}${name}${rest}`)
  })
  const [host, database] = first!
  const hosts = [host, ...others.map(([other]) => other)] as const
  const where = `postgres://${hosts.map(({ name }) => name).join(',')}/${database}`
  return { hosts, where, connections }
}

/** The same servers and login, another database. */
export function withDatabase(address: string, name: string): string {
  parseAddress(address)
  return address.replace(/^(postgres(?:ql)?:\/\/[^/?#]*)(?:\/[^?#]*)?/, `$1/${name}`)
}

function parseHost(connectionString: string): [Host, string] {
  const config: ClientConfig = {
    connectionString,
    fallback_application_name: 'unstuck',
    connectionTimeoutMillis: CONNECT_MS,
    query_timeout: QUERY_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEPALIVE_MS,
  }
  try {
    const { host, port, database } = new Client(config)
    const name = host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
    return [{ config, name }, database ?? '']
  } catch (error) {
    throw unreadable(messageOf(error), error)
  }
}

function unreadable(why: string, cause?: unknown): UsageError {
  return new UsageError(
    `The database address cannot be read: ${why}. It looks like postgres://user:password@host:5432/database, ` +
      'or postgres://user:password@first:5432,second:5432/database.',
    { cause },
  )
}

function connectionLimit(given: string | null): number | undefined {
  if (given === null) return undefined
  const limit = Number(given)
  if (given !== '' && isConnections(limit)) return limit
  throw new UsageError(`connection_limit in the database address ${CONNECTIONS_MISTAKE}.`)
}

/** Only the primary can be written to, so that one is always looked for. */
function checkSessionAttributes(wanted: string | null): void {
  if (wanted === null || ['any', 'read-write', 'primary'].includes(wanted)) return
  throw new UsageError(
    'target_session_attrs in the database address must be read-write or primary: unstuck works on the primary alone.',
  )
}
