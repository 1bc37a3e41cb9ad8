import { StoreUnavailable, UsageError } from '../model/errors.ts'
import { isSecretVariable, keepSecrets, passwordsIn } from '../model/redact.ts'
import { cleanInput } from './clean-input.ts'
import type { Look } from './inspection.ts'
import type { Store } from './store.ts'

export type OpenOptions = {
  /** Whose name the books are kept under: the worker's id, or none for a command of a person. */
  readonly writer?: string
  /** PostgreSQL: connections at most. */
  readonly connections?: number
  /** PostgreSQL: for a login that may only read, or a replica. Nothing is migrated. */
  readonly readOnly?: boolean
}

/** Opens the store at an address, bringing its schema up to date. Engines are loaded only when asked for. */
export async function openStore(address: string, options: OpenOptions = {}): Promise<Store> {
  keepOwnSecrets(address)
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

/** Looks at a database without making, migrating or changing anything. */
export async function lookAtDatabase(address: string): Promise<Look> {
  keepOwnSecrets(address)
  if (/^postgres(ql)?:\/\//.test(address)) {
    const { lookAtPostgres } = await import('./postgres/inspect-server.ts')
    return lookAtPostgres(address)
  }
  if (address.startsWith('sqlite:')) {
    const { lookAtSqlite } = await import('./sqlite/inspect-file.ts')
    return lookAtSqlite(address.slice('sqlite:'.length))
  }
  throw unknownAddress()
}

/** The password of the database, and what the environment holds for Unstuck alone. */
function keepOwnSecrets(address: string): void {
  const { UNSTUCK_DB: db = '', PGPASSWORD: password = '' } = process.env
  const named = Object.entries(process.env).filter(([name]) => isSecretVariable(name))
  keepSecrets([...passwordsIn(address), ...passwordsIn(db), password])
  keepSecrets(named.map(([, value]) => value ?? ''))
}

function unknownAddress(): UsageError {
  return new UsageError(
    // Not repeated here: it may hold a password.
    'The database address is neither sqlite:PATH nor postgres://…. Try sqlite:.unstuck/unstuck.db',
  )
}

const PATIENCE_FIRST_MS = 50
const PATIENCE_MAX_MS = 1_000

/**
 * Repeats a store call for as long as the database is away, and says so once. The verbs are safe to repeat.
 * Ends when the call succeeds, fails for another reason, or `giveUp` says the work is no longer wanted.
 */
export async function whenAvailable<T>(
  call: () => Promise<T>,
  giveUp?: AbortSignal,
  onTrouble: (error: StoreUnavailable) => void = () => {},
): Promise<T> {
  for (let pauseMs = PATIENCE_FIRST_MS; ; pauseMs = Math.min(pauseMs * 2, PATIENCE_MAX_MS)) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
      giveUp?.throwIfAborted()
      onTrouble(error)
      await new Promise<void>((resolve) => setTimeout(resolve, pauseMs * (0.5 + Math.random())))
      giveUp?.throwIfAborted()
    }
  }
}
