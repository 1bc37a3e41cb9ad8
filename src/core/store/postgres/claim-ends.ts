import type { Claim, Outcome } from '../../model/claim.ts'
import { messageOf, UsageError } from '../../model/errors.ts'
import type { TargetStatus } from '../../model/target.ts'
import { cleanJson } from '../../model/text.ts'
import { serializeCursor } from '../new-targets.ts'
import { isSameClaim, leaseLost } from '../claim-state.ts'
import type { Store } from '../store.ts'
import { sql, type Database, type Sql } from './database.ts'
import { isDataError } from './errors.ts'
import { countRefused, claimStates, type ClaimStateRow } from './claim-state.ts'
import { stripNul } from './strip-nul.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

/** How a claim ends: what its target becomes, and what is written beside it. */
type Ending = {
  readonly claim: Claim
  readonly status: TargetStatus
  /** Handed back untouched: the attempt does not count. */
  readonly untouched?: boolean
  readonly failed?: boolean
  readonly error?: string
  /** When it is in line again; null: at once. */
  readonly retryInMs?: number | null
  readonly forefront?: boolean | undefined
  readonly cursor?: unknown
}

// The fence: a worker that lost the claim matches no row and changes nothing. The crash that was counted when the claim was
// made is subtracted. `held` replaces a literal, with which the planner would read the index of all claims instead of
// looking up one target.
const END = /* sql */ `
  WITH ending AS MATERIALIZED (
    SELECT *, 'in_progress' AS held FROM json_to_recordset($2::json) AS e (
      n int, target uuid, epoch int, claim_id uuid, status text, untouched boolean, failed boolean,
      error text, retry_in_ms float8, forefront boolean, cursor jsonb)
  ),
  ended AS (
    UPDATE unstuck.target t
       SET status = e.status,
           -- As what is planned in front of all others.
           ready_at = CASE WHEN e.forefront THEN 'epoch'::timestamptz - interval '1 microsecond'
                             * (round(date_part('epoch', statement_timestamp()) * 1e6) + e.n)
                           -- Handed back, it goes before all that was never claimed, or to its place at the front.
                           WHEN e.untouched THEN least(t.ready_at, 'epoch')
                           ELSE clock_timestamp() + e.retry_in_ms * interval '1 millisecond' END,
           finished_at = CASE WHEN e.status <> 'planned' THEN clock_timestamp() END,
           last_activity_at = CASE WHEN e.untouched THEN t.last_activity_at ELSE clock_timestamp() END,
           last_error = coalesce(e.error, t.last_error),
           cursor = coalesce(e.cursor, t.cursor),
           attempts = greatest(t.attempts - e.untouched::int, 0),
           errors = CASE WHEN e.status = 'done' THEN 0 ELSE t.errors + e.failed::int END,
           crashes = CASE WHEN e.status = 'done' THEN 0 ELSE greatest(t.crashes - 1, 0) END,
           crashes_alone = CASE WHEN e.status = 'done' THEN 0
                                ELSE greatest(t.crashes_alone - t.claimed_alone::int, 0) END
      FROM ending e
     WHERE t.id = e.target AND t.epoch = e.epoch AND t.claim_id = e.claim_id AND t.status = e.held
    RETURNING e.n, e.failed, t.run_id, t.group_name, t.status
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, in_progress, planned, done, failed, parked, errors)
    SELECT run_id, group_name, $1, -count(*),
           count(*) FILTER (WHERE status = 'planned'), count(*) FILTER (WHERE status = 'done'),
           count(*) FILTER (WHERE status = 'failed'), count(*) FILTER (WHERE status = 'parked'),
           count(*) FILTER (WHERE failed OR status = 'parked')
      FROM ended GROUP BY run_id, group_name ORDER BY run_id, group_name
    ${ADD_ON_CONFLICT}
  )
  SELECT n FROM ended
`
const FINISH = sql('finish')`${END}`
const FAIL = sql('fail')`${END}`
const RELEASE = sql('release')`${END}`

// The run first, then its target: as in every move of a run. Progress resets errors and crashes.
const ACTIVE = (isProgress: string): string => /* sql */ `
  WITH fence AS MATERIALIZED (
    SELECT 'in_progress' AS held, CASE WHEN ${isProgress} THEN 0 END AS struck FROM unstuck.run
     WHERE id = (SELECT run_id FROM unstuck.target WHERE id = $2) FOR NO KEY UPDATE
  ),
  held AS (
    UPDATE unstuck.target
       SET last_activity_at = clock_timestamp(), errors = coalesce(struck, errors),
           crashes = coalesce(struck, crashes), crashes_alone = coalesce(struck, crashes_alone),
           crashes_since_epoch = CASE WHEN struck = 0 THEN epoch ELSE crashes_since_epoch END
      FROM fence
     WHERE id = $2 AND epoch = $3 AND claim_id = $4 AND status = fence.held
    RETURNING run_id, group_name
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer) SELECT run_id, group_name, $1 FROM held
    ${ADD_ON_CONFLICT}
  )
`
const PROGRESS = sql('progress')`
  ${ACTIVE('coalesce(progress_done, 0) < $5')}
  UPDATE unstuck.run r SET progress_done = $5, progress_total = $6
    FROM held WHERE r.id = held.run_id
  RETURNING r.id
`
const TOUCH = sql('activity')`
  ${ACTIVE('artifacts < $5')},
  grown AS (
    UPDATE unstuck.run r SET artifacts = $5 FROM held
     WHERE r.id = held.run_id AND r.artifacts < $5
  )
  SELECT run_id FROM held
`

export function claimEndMethods(db: Database) {
  return {
    finish: (claims) => end(db, FINISH, claims, (claim) => ({ claim, status: 'done' })),
    release: (claims) =>
      end(db, RELEASE, claims, ({ forefront, ...claim }) => {
        return { claim, status: 'planned', untouched: true, forefront }
      }),
    fail: (failures) =>
      end(db, FAIL, failures, ({ error, becomes, nextCursor, ...claim }) => {
        if (becomes === 'parked') return { claim, status: 'parked', error }
        // Throws for one that cannot be kept.
        const json = serializeCursor({ key: claim.target, cursor: nextCursor })
        const failed = { claim, failed: true, error, cursor: json === null ? null : nextCursor }
        return becomes === 'failed'
          ? { ...failed, status: 'failed' }
          : { ...failed, status: 'planned', ...becomes }
      }),

    reportActivity: (claim, artifacts) => note(db, TOUCH, claim, [artifacts]),
    reportProgress: (claim, { done, total }) => note(db, PROGRESS, claim, [done, total]),
  } satisfies Partial<Store>
}

/** A sign of activity of one that still holds its claim, and what comes with it. */
async function note(
  db: Database,
  statement: Sql,
  claim: Claim,
  values: readonly number[],
): Promise<Outcome<void>> {
  const { target, epoch, claimId } = claim
  const rows = await db.writeCounts(statement, [target, epoch, claimId, ...values])
  if (rows.length > 0) return { ok: true, value: undefined }
  const standing = (await claimStates(db, [claim])).get(target)
  await countRefused(db, [claim])
  return { ok: false, error: leaseLost(claim, standing) }
}

/** Ends claims that still hold. Returns an outcome for each. */
async function end<T extends Claim>(
  db: Database,
  statement: Sql,
  claims: readonly T[],
  how: (claim: T) => Ending,
): Promise<Outcome<void>[]> {
  if (claims.length === 0) return []
  const endings = claims.map(how)
  const rows = await ended(db, statement, endings)
  const done = new Set(rows.map((row) => row.n))
  const late = endings.filter((_, n) => !done.has(n))
  if (late.length === 0) return endings.map(() => ({ ok: true, value: undefined }))

  const standing = await claimStates(
    db,
    late.map((ending) => ending.claim),
  )
  const isAsItShouldBe = (ending: Ending): boolean => {
    const stands = standing.get(ending.claim.target)
    return stands !== undefined && isAlready(stands, ending)
  }
  const refused = late.filter((ending) => !isAsItShouldBe(ending)).map((ending) => ending.claim)
  await countRefused(db, refused)
  return endings.map(({ claim }) =>
    refused.includes(claim)
      ? { ok: false, error: leaseLost(claim, standing.get(claim.target)) }
      : { ok: true, value: undefined },
  )
}

async function ended(
  db: Database,
  statement: Sql,
  endings: readonly Ending[],
): Promise<{ n: number }[]> {
  try {
    const rows = cleanJson(JSON.stringify(endings.map(toRow))).json
    return await db.writeCounts<{ n: number }>(statement, [rows])
  } catch (error) {
    if (!isDataError(error)) throw error
    throw new UsageError(
      `PostgreSQL cannot store this cursor: ${messageOf(error)}. Clean it, then try again.`,
      { cause: error },
    )
  }
}

/** A repeated call after a reply got lost. A verdict leaves the same state, but with its own reason. */
function isAlready(stands: ClaimStateRow, { claim, status, error }: Ending): boolean {
  const sameReason = error === undefined || stands.last_error === stripNul(error)
  return isSameClaim(stands, claim) && stands.status === status && sameReason
}

function toRow(ending: Ending, n: number): Record<string, unknown> {
  const { claim, status, untouched = false, failed = false, error, retryInMs } = ending
  const { forefront = false, cursor } = ending
  const { target, epoch, claimId } = claim
  return {
    n,
    target,
    epoch,
    claim_id: claimId,
    status,
    untouched,
    failed,
    error: error === undefined ? null : stripNul(error),
    retry_in_ms: retryInMs ?? null,
    forefront,
    cursor: cursor ?? null,
  }
}
