import { hostname } from 'node:os'
import { findProcess } from '../../../core/host/identity.ts'
import type { Millis } from '../../../core/model/time.ts'
import type { Evidence } from '../../../core/model/worker.ts'
import { startedAgoMs } from '../../../lib/process/process-info.ts'
import type { AdoptedRow } from '../table/table.ts'
import { latestOf } from './times.ts'

/** Times of a row and of a process come from two clocks. */
const CLOCK_TOLERANCE_MS = 60_000

/**
 * Returns whether the process of a row exists; `unknown` on another host. `alive` means that a process has this id, not
 * that it is the worker. A process that started after the last time in the row has taken the id over.
 */
export function rowProcessState(
  row: Pick<AdoptedRow, 'host' | 'pid' | 'startedAt' | 'heartbeatAt' | 'activityAt'>,
  now: Millis,
): Evidence['process'] {
  const { host, pid } = row
  if (host === null || pid === null || host.trim().toLowerCase() !== hostname().toLowerCase())
    return 'unknown'
  const found = findProcess(pid)
  if (found === null) return 'gone'
  // A row without a heartbeat has no better evidence of its worker.
  if (found === 'hidden') return 'alive'
  const lastWrittenAt = latestOf([row.startedAt, row.heartbeatAt, row.activityAt])
  const processStartedAt = now - startedAgoMs(found.startTicks)
  const isAnother = lastWrittenAt !== null && processStartedAt > lastWrittenAt + CLOCK_TOLERANCE_MS
  return isAnother ? 'gone' : 'alive'
}
