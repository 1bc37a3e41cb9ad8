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
