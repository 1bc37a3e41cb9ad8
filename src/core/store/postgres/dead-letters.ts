import { LIMITS } from '../../model/limits.ts'
import { DEAD_LETTER_STATUSES } from '../../model/target.ts'
import { checkAfter, toListing } from '../rows.ts'
import type { DeadLetter, Store } from '../store.ts'
import { ms, sql, type Database } from './database.ts'
import { BEFORE_ALL } from './lists.ts'

export const DEAD_LETTERS = sql('dead-letters', 'anew')`
  SELECT t.id, t.key, t.run_id AS run, r.source, t.status, left(coalesce(t.last_error, ''), ${LIMITS.listed}) AS error,
         ${ms('coalesce(t.finished_at, t.last_activity_at)')} AS at
    FROM unstuck.target t JOIN unstuck.run r ON r.id = t.run_id
   WHERE t.id > $1 AND t.status IN ('failed', 'stuck', 'parked') AND t.status = ANY ($3::text[])
     AND ($4::text IS NULL OR r.source = $4)
   ORDER BY t.id LIMIT $2
`

export function deadLetterMethods(db: Database): Pick<Store, 'deadLetters'> {
  return {
    deadLetters: async ({ source = null, statuses, after, limit }) => {
      checkAfter({ after })
      const asked = statuses?.length ? statuses : DEAD_LETTER_STATUSES
      const rows = await db.all<DeadLetter>(DEAD_LETTERS, [
        after ?? BEFORE_ALL,
        limit + 1,
        asked,
        source,
      ])
      return toListing(rows, limit, (row) => row)
    },
  }
}
