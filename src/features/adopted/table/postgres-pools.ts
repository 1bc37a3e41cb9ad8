import { parseAddress } from '../../../core/store/postgres/address.ts'
import { Database } from '../../../core/store/postgres/database.ts'

/** Of one process to one database of the user's, however many of its tables are adopted. */
const DEFAULT_CONNECTIONS = 2

export type SharedPool = { readonly db: Database; readonly close: () => Promise<void> }

type Pool = { readonly db: Database; refCount: number }
const pools = new Map<string, Pool>()

/** The connections to this address, which all its tables share. The last one that is done with them ends them. */
export function sharePool(address: string): SharedPool {
  const pool = pools.get(address) ?? { db: connect(address), refCount: 0 }
  pools.set(address, pool)
  pool.refCount++
  let isClosed = false
  const close = async (): Promise<void> => {
    if (isClosed) return
    isClosed = true
    pool.refCount--
    if (pool.refCount > 0) return
    pools.delete(address)
    await pool.db.close()
  }
  return { db: pool.db, close }
}

/** Nothing is set or prepared on them, so a pooler in between is no matter. */
function connect(address: string): Database {
  const parsed = parseAddress(address)
  const connections = parsed.connections ?? DEFAULT_CONNECTIONS
  return new Database(parsed, { writer: '', connections, pooled: true, accepts: 'primary' })
}
