import { processState } from '../../host/identity.ts'
import { toProcess, type ProcessRow } from '../worker-rows.ts'
import type { Store } from '../store.ts'
import { ms, sql, type Database } from './database.ts'

const LEADER = sql('leader')`
  SELECT t.worker_id AS holder, ${ms('t.until - clock_timestamp()')} AS left_ms,
         w.ended_at IS NULL AS works, w.host, w.pid, w.start_ticks::float8 AS start_ticks, w.boot_id,
         w.pid_namespace
    FROM unstuck.leader t LEFT JOIN unstuck.worker w ON w.id = t.worker_id
   WHERE t.role = $1
`
// A compare-and-set: of all that saw the turn come free, one gets it.
const TAKE_LEADERSHIP = sql('leader:take')`
  INSERT INTO unstuck.leader (role, worker_id, until)
  VALUES ($4, $1, clock_timestamp() + $2 * interval '1 millisecond')
  ON CONFLICT (role) DO UPDATE SET worker_id = excluded.worker_id, until = excluded.until
   WHERE leader.worker_id = excluded.worker_id OR leader.worker_id = $3 OR leader.until < clock_timestamp()
  RETURNING worker_id
`

type LeaderRow = {
  holder: string
  left_ms: number
  works: boolean | null
  host: string | null
} & Omit<ProcessRow, 'host'>

export function leaderMethods(db: Database): Pick<Store, 'acquireLeadership'> {
  return {
    acquireLeadership: async (worker, forMs, role = 'sweep') => {
      const [leader] = await db.all<LeaderRow>(LEADER, [role])
      const running = leader !== undefined && leader.left_ms > 0
      if (running && leader.holder === worker && leader.left_ms > forMs / 2) return true
      // A process with a shorter interval takes over from one with a longer interval.
      const isFree = leader !== undefined && (leader.left_ms > forMs || isGone(leader))
      const gone = isFree ? leader.holder : null
      if (running && leader.holder !== worker && gone === null) return false
      return (await db.all(TAKE_LEADERSHIP, [worker, forMs, gone, role])).length > 0
    },
  }
}

/** Returns true if its worker has ended, or the kernel of this host proves that its process is gone. */
function isGone({ works, host, ...row }: LeaderRow): boolean {
  if (host === null || !works) return true
  return processState(toProcess({ host, ...row })) === 'gone'
}
