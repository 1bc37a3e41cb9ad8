const KB = 1_024

/**
 * What is stored and returned at most, in bytes of UTF-8. A reason is cut, with a note; what the user's code needs back
 * unchanged is refused instead.
 */
export const LIMITS = {
  /** The message of anything thrown, before it is redacted and cut for the store. */
  message: 64 * KB,
  /** Errors of targets and ends of commands: cut. */
  error: 16 * KB,
  /** Reasons in the audit trail, alerts and what came of HTTP calls: cut. Lists return them whole. */
  reason: 2 * KB,
  /** Evidence of an audit entry, a command line, the body of an HTTP call that was carried out: replaced by a summary. */
  evidence: 8 * KB,
  /** What is kept of the body of an HTTP call that was refused. */
  refusedBody: 1 * KB,
  /** Characters of each long text in a list. */
  listed: 1 * KB,
  /** Refused. */
  cursor: 256 * KB,
  url: 8 * KB,
  lastItemId: 1 * KB,
  targetKey: 1_000,
  targetData: 64 * KB,
  group: 1_000,
} as const

/** The largest value of PostgreSQL's integer; counts and page numbers are rejected above it on both engines. */
export const INTEGER_MAX = 2 ** 31 - 1

/** Connections of one process to the database. */
export const CONNECTIONS_MAX = 1_000
export const CONNECTIONS_MISTAKE = `must be a whole number from 1 to ${CONNECTIONS_MAX}`

export function isConnections(given: unknown): given is number {
  return Number.isInteger(given) && Number(given) >= 1 && Number(given) <= CONNECTIONS_MAX
}
