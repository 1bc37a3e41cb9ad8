import { hostname } from 'node:os'
import process from 'node:process'
import { readProcessStat } from '../../../core/host/identity.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Evidence } from '../../../core/model/worker.ts'
import { startedAgoMs } from '../../../lib/process/process-info.ts'
import type { AdoptedRow } from '../table/table.ts'
import { latestOf } from './times.ts'

/** Times of a row and of a process come from two clocks. */
const CLOCK_TOLERANCE_MS = 60_000

/**
 * Whether the process that a row names exists. Only on its own host; `alive` means that a process has this id, not that
 * it is the worker. A process that started after the last time in the row has taken the id over.
 */
export function rowProcessState(
  row: Pick<AdoptedRow, 'host' | 'pid' | 'startedAt' | 'heartbeatAt' | 'activityAt'>,
  now: Millis,
): Evidence['process'] {
  const { host, pid } = row
  if (host === null || pid === null || host.trim().toLowerCase() !== hostname().toLowerCase())
    return 'unknown'
  const stat = readProcessStat(pid)
  if (!stat) return exists(pid) ? 'alive' : 'gone'
  const lastWrittenAt = latestOf([row.startedAt, row.heartbeatAt, row.activityAt])
  const processStartedAt = now - startedAgoMs(stat.startTicks)
  const isAnother = lastWrittenAt !== null && processStartedAt > lastWrittenAt + CLOCK_TOLERANCE_MS
  return stat.isDead || isAnother ? 'gone' : 'alive'
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: the process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}
