import { StoreUnavailableError, UsageError } from '../model/errors.ts'
import { isSecretVariable, registerSecrets, passwordsIn } from '../model/redact.ts'
import { cleanInput } from './clean-input.ts'
import type { Store } from './store.ts'

export type OpenOptions = {
  /** The writer of the counters: the worker's id, or none for a command of an operator. */
  readonly writer?: string
  /** PostgreSQL: connections at most. */
  readonly connections?: number
  /** PostgreSQL: for a login that may only read, or a replica. Nothing is migrated. */
  readonly readOnly?: boolean
}

/** Opens the store at an address, bringing its schema up to date. Engines are loaded only when asked for. */
export async function openStore(address: string, options: OpenOptions = {}): Promise<Store> {
  registerOwnSecrets(address)
  return cleanInput(await openEngine(address, options))
}

async function openEngine(address: string, options: OpenOptions): Promise<Store> {
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { openPostgres } = await import('./postgres/open.ts')
    return openPostgres(address, options)
  }
  if (address.startsWith('sqlite:')) {
    const { openSqlite } = await import('./sqlite/open.ts')
    return openSqlite(address.slice('sqlite:'.length))
  }
  throw unknownAddress()
}

/** Registers the password of the database and the secrets of the environment for redaction. */
export function registerOwnSecrets(address: string): void {
  const { UNSTUCK_DB: db = '', PGPASSWORD: password = '' } = process.env
  const named = Object.entries(process.env).filter(([name]) => isSecretVariable(name))
  registerSecrets([...passwordsIn(address), ...passwordsIn(db), password])
  registerSecrets(named.map(([, value]) => value ?? ''))
}

export function unknownAddress(): UsageError {
  return new UsageError(
    // Not repeated here: it may hold a password.
    'The database address is neither sqlite:PATH nor postgres://…. Try sqlite:.unstuck/unstuck.db',
  )
}

const RETRY_FIRST_MS = 50
const RETRY_MAX_MS = 1_000

/**
 * Repeats a store call while the database cannot be reached, and calls `onError` before each pause. Every method may be
 * repeated. Ends when the call succeeds, fails for another reason, or the signal fires.
 */
export async function withRetry<T>(
  call: () => Promise<T>,
  signal?: AbortSignal,
  onError: (error: StoreUnavailableError) => void = () => {},
): Promise<T> {
  for (let pauseMs = RETRY_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, RETRY_MAX_MS)) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof StoreUnavailableError)) throw error
      signal?.throwIfAborted()
      onError(error)
      await new Promise<void>((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random())))
      signal?.throwIfAborted()
    }
  }
}
