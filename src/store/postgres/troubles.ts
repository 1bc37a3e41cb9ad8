import { TROUBLED_STATUSES } from '../../model/target.ts'
import { toListing, toTarget, type TargetRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { toTrouble, TROUBLES_MAX, type TroubleRow } from '../watching-rows.ts'
import { ms, sql, type Database } from './database.ts'
import { BEFORE_ALL, TARGET_COLUMNS } from './lists.ts'
import { storable } from './storable.ts'

const TROUBLED = `('failed', 'stuck', 'parked')`

export const TROUBLES = sql(
  'troubles',
  /* sql */ `
  SELECT (SELECT source FROM unstuck.run WHERE id = g.run_id) AS source,
         (SELECT key FROM unstuck.target WHERE id = g.sample_id) AS sample_key, g.*
    FROM (
      SELECT run_id, status, coalesce(last_error, '') AS error, count(*)::int AS count,
             ${ms('min(coalesce(finished_at, last_activity_at))')} AS first_at,
             ${ms('max(coalesce(finished_at, last_activity_at))')} AS last_at,
             min(id::text COLLATE "C")::uuid AS sample_id
        FROM unstuck.target
       WHERE status IN ${TROUBLED}
         AND ($1::text IS NULL OR run_id IN (SELECT id FROM unstuck.run WHERE source = $1))
       GROUP BY run_id, status, coalesce(last_error, '')
       ORDER BY count DESC, run_id DESC LIMIT $2
    ) AS g
   ORDER BY g.count DESC, g.run_id DESC
`,
  'anew',
)
export const TROUBLED_TARGETS = sql(
  'troubles:targets',
  /* sql */ `
  SELECT ${TARGET_COLUMNS} FROM unstuck.target t
   WHERE t.id > $1 AND t.status IN ${TROUBLED} AND t.status = ANY ($3::text[])
     AND ($4::text[] IS NULL OR coalesce(t.last_error, '') = ANY ($4))
     AND ($5::text IS NULL OR EXISTS (SELECT FROM unstuck.run r WHERE r.id = t.run_id AND r.source = $5))
   ORDER BY t.id LIMIT $2
`,
  'anew',
)

export function troubleVerbs(db: Database): Pick<Store, 'troubles' | 'troubledTargets'> {
  return {
    troubles: async ({ source = null }) =>
      (await db.all<TroubleRow>(TROUBLES, [source, TROUBLES_MAX])).map(toTrouble),

    troubledTargets: async ({ source = null, statuses, errors, after = BEFORE_ALL, limit }) => {
      const asked = statuses?.length ? statuses : TROUBLED_STATUSES
      const texts = errors?.map(storable) ?? null
      const values = [after, limit + 1, asked, texts, source]
      return toListing(await db.all<TargetRow>(TROUBLED_TARGETS, values), limit, toTarget)
    },
  }
}
