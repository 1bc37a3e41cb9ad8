import { TROUBLED_STATUSES } from '../../model/target.ts'
import { toListing } from '../rows.ts'
import type { Store } from '../store.ts'
import { toTrouble, TROUBLES_MAX, type TroubleRow } from '../watching-rows.ts'
import { sql, type Database } from './database.ts'
import { readTarget, type SqliteTargetRow } from './lists.ts'

const TROUBLED = `('failed', 'stuck', 'parked')`

const TROUBLES = sql(
  'troubles',
  /* sql */ `
  SELECT (SELECT source FROM run WHERE id = g.run_id) AS source,
         (SELECT key FROM target WHERE id = g.sample_id) AS sample_key, g.*
    FROM (
      SELECT run_id, status, coalesce(last_error, '') AS error, count(*) AS count,
             min(coalesce(finished_at, last_activity_at)) AS first_at,
             max(coalesce(finished_at, last_activity_at)) AS last_at,
             min(id) AS sample_id
        FROM target INDEXED BY target_troubled
       WHERE status IN ${TROUBLED}
         AND (:source IS NULL OR run_id IN (SELECT id FROM run WHERE source = :source))
       GROUP BY run_id, status, error
       ORDER BY count DESC, run_id DESC LIMIT :limit
    ) g
   ORDER BY g.count DESC, g.run_id DESC
`,
)
const TROUBLED_TARGETS = sql(
  'troubles:targets',
  /* sql */ `
  SELECT t.* FROM target t INDEXED BY target_troubled
   WHERE t.id > :after AND t.status IN ${TROUBLED}
     AND t.status IN (SELECT value FROM json_each(:statuses))
     AND (:errors IS NULL OR coalesce(t.last_error, '') IN (SELECT value FROM json_each(:errors)))
     AND (:source IS NULL OR (SELECT source FROM run WHERE id = t.run_id) = :source)
   ORDER BY t.id LIMIT :limit
`,
)

export function troubleVerbs(db: Database): Pick<Store, 'troubles' | 'troubledTargets'> {
  return {
    troubles: async ({ source = null }) =>
      db.read((tx) => tx.all<TroubleRow>(TROUBLES, { source, limit: TROUBLES_MAX })).map(toTrouble),

    troubledTargets: async ({ source = null, statuses, errors, after = '', limit }) => {
      const rows = db.read((tx) =>
        tx.all<SqliteTargetRow>(TROUBLED_TARGETS, {
          source,
          statuses: JSON.stringify(statuses?.length ? statuses : TROUBLED_STATUSES),
          errors: errors === undefined ? null : JSON.stringify(errors),
          after,
          limit: limit + 1,
        }),
      )
      return toListing(rows, limit, readTarget)
    },
  }
}
