import type { Claim, Outcome } from '../../model/claim.ts'
import type { TargetStatus } from '../../model/target.ts'
import { serializeCursor } from '../new-targets.ts'
import { isSameClaim } from '../claim-state.ts'
import type { Store } from '../store.ts'
import { sql, type Connection, type Database, type Params, type Sql } from './database.ts'
import { refuseWrite, claimState } from './claim-state.ts'
import { firstPosition } from './runs.ts'
import { addCounts } from './counters.ts'

const FENCE = `WHERE id = :target AND epoch = :epoch AND claim_id = :claimId AND status = 'in_progress' RETURNING run_id, group_name`
const FINISH = sql('finish')`
  UPDATE target SET status = 'done', finished_at = :now, last_activity_at = :now,
                    crashes = 0, crashes_alone = 0, errors = 0
  ${FENCE}
`
export const RELEASE = sql('release')`
  UPDATE target SET status = 'planned', ready_at = coalesce(:readyAt, min(ready_at, 0), 0),
                    last_activity_at = :now, attempts = max(attempts - 1, 0),
                    crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - claimed_alone, 0)
  ${FENCE}
`
const RETRY = sql('fail:retry')`
  UPDATE target SET status = 'planned', ready_at = coalesce(:readyAt, :now + :retryInMs), errors = errors + 1,
                    last_error = :error, last_activity_at = :now, cursor = coalesce(:cursor, cursor),
                    crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - claimed_alone, 0)
  ${FENCE}
`
const GIVE_UP = sql('fail:give-up')`
  UPDATE target SET status = 'failed', errors = errors + 1, last_error = :error,
                    last_activity_at = :now, finished_at = :now, cursor = coalesce(:cursor, cursor),
                    crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - claimed_alone, 0)
  ${FENCE}
`
const RUN_OF = sql('fail:run-of')`SELECT run_id FROM target WHERE id = :target`
const PARK = sql('fail:park')`
  UPDATE target SET status = 'parked', last_error = :error, finished_at = :now,
                    crashes = max(crashes - 1, 0), crashes_alone = max(crashes_alone - claimed_alone, 0)
  ${FENCE}
`
const FAILURES: readonly Sql[] = [RETRY, GIVE_UP, PARK]
const ACTIVE = sql('active')`
  UPDATE target SET last_activity_at = :now
  ${FENCE}
`
const STRIKE_OFF = sql('active:strike-off')`
  UPDATE target SET errors = 0, crashes = 0, crashes_alone = 0, crashes_since_epoch = epoch
   WHERE id = :target
`
const RUN_DONE = sql('progress:done')`SELECT progress_done AS done FROM run WHERE id = :run`
const RUN_PROGRESS = sql('progress:run')`
  UPDATE run SET progress_done = :done, progress_total = :total WHERE id = :run
`
const RUN_ARTIFACTS = sql('activity:run')`
  UPDATE run SET artifacts = :artifacts WHERE id = :run AND artifacts < :artifacts
`

export function claimEndMethods(db: Database) {
  /** Ends claims that still hold. Returns an outcome for each. */
  const end = <T extends Claim>(
    name: string,
    claims: readonly T[],
    how: (claim: T, tx: Connection) => { statement: Sql; becomes: TargetStatus; params?: Params },
  ): Promise<Outcome<void>[]> =>
    db.write(name, (tx) =>
      claims.map((claim) => {
        const { statement, becomes, params } = how(claim, tx)
        return endClaim(tx, claim, statement, becomes, params)
      }),
    )

  /** Records activity of a target whose claim is still held. `isProgress`: whether it also made progress. */
  const note = (
    name: string,
    claim: Claim,
    isProgress: (tx: Connection, run: string) => boolean,
  ): Promise<Outcome<void>> =>
    db.write(name, (tx) => {
      const now = tx.now()
      const row = tx.get<{ run_id: string; group_name: string }>(ACTIVE, { ...fence(claim), now })
      if (!row) return { ok: false, error: refuseWrite(tx, claim, claimState(tx, claim)) }
      addCounts(tx, row.run_id, row.group_name, {}, now)
      // Progress strikes off errors and crashes.
      if (isProgress(tx, row.run_id)) tx.run(STRIKE_OFF, { target: claim.target })
      return { ok: true, value: undefined }
    })

  return {
    finish: (claims) => end('finish', claims, () => ({ statement: FINISH, becomes: 'done' })),
    release: (claims) =>
      end('release', claims, ({ target, forefront }, tx) => ({
        statement: RELEASE,
        becomes: 'planned',
        params: { readyAt: forefront ? beforeAll(tx, target) : null },
      })),
    fail: (failures) =>
      end('fail', failures, ({ error, becomes, target, nextCursor }, tx) => {
        if (becomes === 'parked') return { statement: PARK, becomes: 'parked', params: { error } }
        const params = { error, cursor: serializeCursor({ key: target, cursor: nextCursor }) }
        if (becomes === 'failed') return { statement: GIVE_UP, becomes: 'failed', params }
        const { retryInMs, forefront } = becomes
        const readyAt = forefront ? beforeAll(tx, target) : null
        return { statement: RETRY, becomes: 'planned', params: { ...params, retryInMs, readyAt } }
      }),
    reportActivity: (claim, artifacts) =>
      note('activity', claim, (tx, run) => tx.run(RUN_ARTIFACTS, { run, artifacts }) > 0),
    reportProgress: (claim, { done, total }) =>
      note('progress', claim, (tx, run) => {
        const before = tx.get<{ done: number | null }>(RUN_DONE, { run })?.done ?? 0
        tx.run(RUN_PROGRESS, { run, done, total })
        return done > before
      }),
  } satisfies Partial<Store>
}

function beforeAll(tx: Connection, target: string): number | null {
  const row = tx.get<{ run_id: string }>(RUN_OF, { target })
  return row ? firstPosition(tx, row.run_id, tx.now()) - 1 : null
}

function fence({ target, epoch, claimId }: Claim): Params {
  return { target, epoch, claimId }
}

export function endClaim(
  tx: Connection,
  claim: Claim,
  statement: Sql,
  becomes: TargetStatus,
  params: Params = {},
): Outcome<void> {
  const now = tx.now()
  const row = tx.get<{ run_id: string; group_name: string }>(statement, {
    ...fence(claim),
    now,
    ...params,
  })
  if (row) {
    const errors = Number(FAILURES.includes(statement))
    addCounts(tx, row.run_id, row.group_name, { in_progress: -1, [becomes]: 1, errors }, now)
    return { ok: true, value: undefined }
  }
  const stands = claimState(tx, claim)
  // A repeated call after a reply got lost: nothing is left to do.
  if (stands && isSameClaim(stands, claim) && stands.status === becomes) {
    return { ok: true, value: undefined }
  }
  return { ok: false, error: refuseWrite(tx, claim, stands) }
}
