import {
  messageOf,
  missingTables,
  StoreReadOnlyError,
  StoreUnavailableError,
  UnstuckError,
  UnusableStoreError,
} from '../../model/errors.ts'

/** SQLSTATE of a server's error, or Node's code of a socket's. */
export function codeOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  return typeof code === 'string' ? code : ''
}

/** Deadlock or serialisation failure: the same transaction, tried again, will probably go through. */
export function isContention(error: unknown): boolean {
  const code = codeOf(error)
  return code === '40001' || code === '40P01' || isOutdatedWrite(error)
}

/** Another run of the source started between a read and a write: a second attempt reads it. */
function isOutdatedWrite(error: unknown): boolean {
  const { constraint, schema } = (error ?? {}) as { constraint?: unknown; schema?: unknown }
  return codeOf(error) === '23505' && schema === 'unstuck' && constraint === 'run_live'
}

/** The content is at fault (a NUL in JSON, a lone surrogate, too big, too deep): trying again will not help. */
export function isDataError(error: unknown): boolean {
  return /^(22|54)...$/.test(codeOf(error))
}

// Connection lost, resources short (disk full, too many clients), shut down, cancelled, killed while idle, and the
// standby that a failover left behind at the other end of an open connection.
const CONNECTION_ERROR_STATES = /^(08...|53...|57P..|57014|58030|25P0[34]|25006|55P03)$/
const CONNECTION_ERROR_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ENOENT',
])
// What `pg` throws without a code.
const CONNECTION_ERROR_MESSAGES =
  /^(Query read timeout|Connection terminated|timeout e|Client (has encountered|was closed))/

/** The connection is of no use any more, or the server cannot serve now. The outcome may be unknown. */
export function isConnectionError(error: unknown): boolean {
  if (error instanceof UnstuckError) return error instanceof StoreUnavailableError
  const code = codeOf(error)
  if (code !== '') return CONNECTION_ERROR_STATES.test(code) || CONNECTION_ERROR_CODES.has(code)
  return CONNECTION_ERROR_MESSAGES.test(messageOf(error))
}

/** A table of ours, or its schema, is not there. The message names it in any language; a table of the user's is their matter. */
function isMissingTable(error: unknown): boolean {
  return /^(42P01|3F000)$/.test(codeOf(error)) && /\bunstuck\b/.test(messageOf(error))
}

/** All connections of the pool are in use, and none came free in time. */
export function isPoolBusy(error: unknown): boolean {
  return messageOf(error) === 'timeout exceeded when trying to connect'
}

/** PostgreSQL's error as advice. What is not about the store comes back as it is. */
export function storeError(error: unknown, where: string): unknown {
  if (error instanceof UnstuckError) return error
  const options = { cause: error }
  switch (codeOf(error)) {
    case '3D000':
      return new UnusableStoreError(
        `There is no such database: ${where}. Create it (\`createdb\`), or correct the address in --db or UNSTUCK_DB.`,
        options,
      )
    case '28P01':
    case '28000':
      return new UnusableStoreError(
        `The server refused the login to ${where}: ${reasonOf(error)}. Check user and password in the address.`,
        options,
      )
    case '42501':
      return new StoreReadOnlyError(where, options)
  }
  if (isMissingTable(error)) return missingTables(where, error)
  if (isConnectionError(error)) {
    return new StoreUnavailableError(
      `The database ${where} does not answer: ${reasonOf(error)}. ` +
        'Check that the server runs and can be reached from here; running workers continue when it is back.',
      options,
    )
  }
  if (isContention(error)) {
    return new StoreUnavailableError(
      `The database ${where} is too busy: ${reasonOf(error)}, again and again. Work is tried again by itself.`,
      options,
    )
  }
  return error
}

/** What went wrong, in a few words. */
export function reasonOf(error: unknown): string {
  // Node gathers the failures of several addresses of one host in an error without a message.
  return messageOf(error) || codeOf(error) || 'no reason given'
}
