/** What is wrong with the address of a database, or null. Never repeats it: it may hold a password. */
export function addressMistake(address: string): string | null {
  if (/^sqlite:\/\/[^/]/.test(address)) return 'has two slashes after sqlite:; write sqlite:PATH'
  if (/^(postgres(ql)?:\/\/|sqlite:)./.test(address)) return null
  const isFile = /^[^:@]+\.(db|sqlite3?)$/.test(address)
  const hint = isFile ? `; did you mean sqlite:${address}?` : ', as in sqlite:.unstuck/unstuck.db'
  return `must be sqlite:PATH or postgres://HOST/NAME${hint}`
}

/** The address with a number of connections for each process, unless it names one itself. SQLite needs none. */
export function withConnections(address: string, connections: number | undefined): string {
  if (connections === undefined || !/^postgres(ql)?:/.test(address)) return address
  if (/[?&]connection_limit=/.test(address)) return address
  return `${address}${address.includes('?') ? '&' : '?'}connection_limit=${connections}`
}

/** Scheme, login, hosts, database and parameters. A password may hold an @ or a comma. */
const SERVER = /^postgres(?:ql)?:\/\/(?:([^/?#]*)@)?([^/?#@]*)(?:\/([^?#]*))?(?:\?([^#]*))?/s
/** Parameters that the programs of PostgreSQL know and that hold no secret. */
const SHARED_PARAMETERS = ['host', 'port', 'sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'options']

/** Returns the address of a server as `pg_dump` and `psql` take it, without its password: `host=h dbname=x user=me`. */
export function toConnectionString(address: string): string {
  const [, login = '', names = '', database = '', query = ''] = SERVER.exec(address) ?? []
  const hosts = names.split(',').map((name) => /^(\[[^\]]*\]|[^:]*):?(.*)$/.exec(name)!)
  const parameters = new URLSearchParams(query)
  const parts = {
    host: hosts.map(([, host = '']) => host.replace(/^\[|\]$/g, '')).join(','),
    port: hosts.some(([, , port]) => port)
      ? hosts.map(([, , port]) => port || '5432').join(',')
      : '',
    dbname: decodeURIComponent(database),
    user: decodeURIComponent(login.split(':', 1)[0]!),
    ...Object.fromEntries([...parameters].filter(([name]) => SHARED_PARAMETERS.includes(name))),
  }
  return Object.entries(parts)
    .filter(([, value]) => value !== '')
    .map(([name, value]) => `${name}=${quoted(value)}`)
    .join(' ')
}

function quoted(value: string): string {
  return /^[\w.,:/-]+$/.test(value) ? value : `'${value.replace(/[\\']/g, '\\$&')}'`
}
