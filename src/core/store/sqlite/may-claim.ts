import { sessionGraceMs } from '../../model/worker.ts'
import { bootId, uptimeMs } from '../../host/identity.ts'
import { sql, type Connection } from './database.ts'

const WORKER = sql('claim:worker')`
  SELECT heartbeat_ms, lease_ms, boot_id, heartbeat_uptime FROM worker WHERE id = :worker AND ended_at IS NULL
`

/**
 * Returns true if the worker's last heartbeat is recent. One that could be taken for lost must not claim: a heartbeat has
 * to be accepted first, or what it claims would be taken from it again at once.
 */
export function mayClaim(tx: Connection, worker: string): boolean {
  const row = tx.get<{
    heartbeat_ms: number
    lease_ms: number
    boot_id: string | null
    heartbeat_uptime: number
  }>(WORKER, { worker })
  if (!row || row.boot_id !== bootId()) return row !== undefined
  const graceMs = sessionGraceMs({ heartbeatMs: row.heartbeat_ms, leaseMs: row.lease_ms })
  return uptimeMs() - row.heartbeat_uptime <= graceMs
}
