import type { ClaimedTarget } from '../../model/claim.ts'
import { targetColumns, toClaimed, type ClaimedRow } from '../rows.ts'
import type { ClaimRequest, Store } from '../store.ts'
import { sql, type Connection, type Database } from './database.ts'
import { mayClaim } from './may-claim.ts'
import { LIVE, NOT_PAUSED } from './runs.ts'
import { addCounts } from './counters.ts'

const CLAIM_COLUMNS = /* sql */ `
  ${targetColumns('target')}, target.next_url, target.cursor, target.data
`
const RUN = sql('claim:run')`
  SELECT id, status, reopened_at FROM run
   WHERE source = :source AND kind = 'crawl' AND status IN ${LIVE} AND ${NOT_PAUSED}
`
/** What this worker already holds under the ids of the call: the reply to an earlier call got lost. */
export const HELD = sql('claim:held')`
  SELECT ${CLAIM_COLUMNS}, r.source FROM target JOIN run r ON r.id = target.run_id
   WHERE worker_id = :worker AND target.status = 'in_progress'
     AND claim_id IN (SELECT value FROM json_each(:claimIds))
`
const CRASHED_BEFORE = sql('claim:crashed')`
  SELECT id FROM target
   WHERE run_id = :run AND status = 'planned' AND crashes > 0 AND (ready_at IS NULL OR ready_at <= :now)
   ORDER BY ready_at, id LIMIT 1
`
const DUE = sql('claim:due')`
  SELECT id FROM target
   WHERE run_id = :run AND status = 'planned' AND crashes = 0 AND ready_at <= :now
   ORDER BY ready_at, id LIMIT :limit
`
const FRESH = sql('claim:fresh')`
  SELECT id FROM target
   WHERE run_id = :run AND status = 'planned' AND crashes = 0 AND ready_at IS NULL
   ORDER BY id LIMIT :limit
`
// A crash is counted here and struck off when the claim ends any other way.
export const CLAIM_TARGET = sql('claim:take')`
  UPDATE target
     SET status = 'in_progress', epoch = epoch + 1, claim_id = :claimId, worker_id = :worker,
         claimed_at = :now, last_activity_at = :now, claimed_alone = :claimedAlone,
         attempts = attempts + 1, crashes = crashes + 1, crashes_alone = crashes_alone + :claimedAlone
   WHERE id = :id AND status = 'planned'
  RETURNING ${CLAIM_COLUMNS}
`
export const MARK_RUNNING = sql('claim:run-running')`
  UPDATE run SET status = 'running', started_at = coalesce(started_at, :now), reopened_at = NULL,
                 resumed_at = CASE WHEN status = 'interrupted' THEN :now ELSE resumed_at END,
                 resumes = resumes + (status = 'interrupted')
   WHERE id = :run AND (status IN ('queued', 'interrupted') OR reopened_at IS NOT NULL)
`
const PARK_UNREADABLE = sql('claim:unreadable')`
  UPDATE target SET status = 'parked', last_error = :reason, finished_at = :now,
                    crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - claimed_alone, 0)
   WHERE id = :id
`

export function claimMethods(db: Database): Pick<Store, 'claim'> {
  return {
    claim: async (request) => {
      // A worker with nothing to claim asks often: it must not fight for the write lock.
      if (!db.read((tx) => isAnythingToClaim(tx, request))) return []
      return db.write('claim', (tx) => claim(tx, request))
    },
  }
}

function isAnythingToClaim(tx: Connection, request: ClaimRequest): boolean {
  const run = tx.get<{ id: string }>(RUN, { source: request.source })
  const now = tx.now()
  const { worker, claimIds } = request
  return Boolean(
    (run &&
      (tx.get(FRESH, { run: run.id, limit: 1 }) ||
        tx.get(DUE, { run: run.id, now, limit: 1 }) ||
        (request.isIdle && tx.get(CRASHED_BEFORE, { run: run.id, now })))) ||
    tx.get(HELD, { worker, claimIds: JSON.stringify(claimIds) }),
  )
}

function claim(tx: Connection, request: ClaimRequest): ClaimedTarget[] {
  const { worker, source, claimIds, isIdle, singleSlot } = request
  const held = tx.all<SqliteClaimedRow>(HELD, { worker, claimIds: JSON.stringify(claimIds) })
  if (held.length > 0) return held.map((row) => readClaimed(row, source))
  const run = tx.get<{ id: string; status: string; reopened_at: number | null }>(RUN, { source })
  if (!run || !mayClaim(tx, worker)) return []

  const now = tx.now()
  const crashed = isIdle ? tx.all<{ id: string }>(CRASHED_BEFORE, { run: run.id, now }) : []
  const picked = crashed.length > 0 ? crashed : pickReady(tx, run.id, claimIds.length, now)
  const counted = singleSlot || crashed.length > 0 ? 1 : 0
  const claimed: ClaimedTarget[] = []
  for (const [n, { id }] of picked.entries()) {
    const row = tx.get<SqliteClaimedRow>(CLAIM_TARGET, {
      id,
      claimId: claimIds[n]!,
      worker,
      now,
      claimedAlone: counted,
    })!
    if (countClaim(tx, row, now)) claimed.push(readClaimed(row, source))
  }
  const isNews = run.status !== 'running' || run.reopened_at !== null
  if (claimed.length > 0 && isNews) tx.run(MARK_RUNNING, { run: run.id, now })
  return claimed
}

/** Counts a target that was just claimed; one that cannot be read is parked, so that it does not stop the others. */
export function countClaim(tx: Connection, row: SqliteClaimedRow, now: number): boolean {
  const unreadable = isUnreadable(row.cursor) || isUnreadable(row.data)
  const becomes = unreadable ? 'parked' : 'in_progress'
  addCounts(tx, row.run_id, row.group_name, { planned: -1, [becomes]: 1 }, now)
  if (unreadable) {
    const reason = 'its cursor or data is not valid JSON: it was changed in the database by hand'
    tx.run(PARK_UNREADABLE, { id: row.id, now, reason })
  }
  return !unreadable
}

function pickReady(tx: Connection, run: string, limit: number, now: number): { id: string }[] {
  const due = tx.all<{ id: string }>(DUE, { run, now, limit })
  if (due.length === limit) return due
  return [...due, ...tx.all<{ id: string }>(FRESH, { run, limit: limit - due.length })]
}

export type SqliteClaimedRow = Omit<ClaimedRow, 'cursor' | 'data'> & {
  cursor: string | null
  data: string | null
}

export function readClaimed(row: SqliteClaimedRow, source: string): ClaimedTarget {
  const cursor: unknown = row.cursor === null ? null : JSON.parse(row.cursor)
  const data: unknown = row.data === null ? null : JSON.parse(row.data)
  return toClaimed({ ...row, cursor, data }, source)
}

function isUnreadable(json: string | null): boolean {
  if (json === null) return false
  try {
    JSON.parse(json)
    return false
  } catch {
    return true
  }
}
