import { LIMITS } from '../../model/limits.ts'
import { DEAD_LETTER_STATUSES } from '../../model/target.ts'
import { checkAfter, toListing } from '../rows.ts'
import type { DeadLetter, Store } from '../store.ts'
import { sql, type Database } from './database.ts'

const DEAD_LETTERS = sql('dead-letters')`
  SELECT t.id, t.key, t.run_id AS run, r.source, t.status, substr(coalesce(t.last_error, ''), 1, ${LIMITS.listed}) AS error,
         coalesce(t.finished_at, t.last_activity_at) AS at
    FROM target t INDEXED BY target_dead_letter CROSS JOIN run r ON r.id = t.run_id
   WHERE t.id > :after AND t.status IN ('failed', 'stuck', 'parked')
     AND t.status IN (SELECT value FROM json_each(:statuses))
     AND (:source IS NULL OR r.source = :source)
   ORDER BY t.id LIMIT :limit
`

export function deadLetterMethods(db: Database): Pick<Store, 'deadLetters'> {
  return {
    deadLetters: async ({ source = null, statuses, after, limit }) => {
      checkAfter({ after })
      const asked = JSON.stringify(statuses?.length ? statuses : DEAD_LETTER_STATUSES)
      const values = { source, statuses: asked, after: after ?? '', limit: limit + 1 }
      const rows = db.read((tx) => tx.many<DeadLetter>(DEAD_LETTERS, values))
      return toListing(rows, limit, (row) => row)
    },
  }
}
