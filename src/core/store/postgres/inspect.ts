import {
  checkBooks,
  endlessRuns,
  LISTED_MAX,
  LIVE_MAX,
  NEWEST_MAX,
  type BadClaim,
  type BooksRow,
  type Inspection,
  type RunHead,
} from '../inspection.ts'
import type { Store } from '../store.ts'
import { ms, sql, type Database } from './database.ts'
import { LIVE } from './runs.ts'
import { SUMS } from './counters.ts'

const DURABILITY = sql(
  'inspect:durability',
  `SELECT current_setting('synchronous_commit') AS synchronous_commit`,
)
const HEADS = sql(
  'inspect:runs',
  /* sql */ `
  WITH chosen AS (
    (SELECT id FROM unstuck.run WHERE status IN ${LIVE} ORDER BY id DESC LIMIT $1)
    UNION
    (SELECT id FROM unstuck.run ORDER BY id DESC LIMIT $2)
  )
  SELECT r.id, r.source, r.status, ${ms('r.finished_at')} AS finished_at,
         (SELECT coalesce(sum(planned + in_progress + done + failed + stuck + parked), 0)::float8
            FROM unstuck.tally WHERE run_id = r.id) AS targets
    FROM chosen JOIN unstuck.run r ON r.id = chosen.id
   ORDER BY r.status IN ${LIVE} DESC, r.id DESC
`,
)
// One statement sees one snapshot: a run that is worked on must not look wrong.
const BOOKS = sql(
  'inspect:books',
  /* sql */ `
  SELECT ${SUMS},
         (SELECT jsonb_object_agg(status, targets) FROM (
           SELECT status, count(*) AS targets FROM unstuck.target WHERE run_id = $1 GROUP BY status) AS c) AS counted
    FROM unstuck.tally t WHERE t.run_id = $1
`,
)
const CROWDED = sql(
  'inspect:crowded',
  /* sql */ `
  SELECT source, array_agg(id::text ORDER BY id) AS runs FROM unstuck.run
   WHERE status IN ${LIVE} GROUP BY source HAVING count(*) > 1 ORDER BY source LIMIT $1
`,
)
const BAD_CLAIMS = sql(
  'inspect:claims',
  /* sql */ `
  SELECT t.id AS target, t.run_id AS run, r.source, t.worker_id AS worker,
         CASE WHEN t.epoch < 1 THEN 'no-epoch'
              WHEN w.id IS NULL THEN 'worker-unknown'
              ELSE 'worker-ended' END AS fault
    FROM unstuck.target t
    JOIN unstuck.run r ON r.id = t.run_id
    LEFT JOIN unstuck.worker w ON w.id = t.worker_id
   WHERE t.status = 'in_progress' AND r.status IN ${LIVE}
     AND (t.epoch < 1 OR w.id IS NULL OR w.ended_at IS NOT NULL)
   ORDER BY t.id LIMIT $1
`,
)

export function inspectVerbs(db: Database): Pick<Store, 'inspect'> {
  return {
    async inspect(): Promise<Inspection> {
      const runs = await db.all<RunHead>(HEADS, [LIVE_MAX, NEWEST_MAX])
      const [durability] = await db.all<{ synchronous_commit: string }>(DURABILITY)
      return {
        durability: durability!,
        books: await checkBooks(runs, async (run) => (await db.all<BooksRow>(BOOKS, [run]))[0]!),
        crowded: await db.all<Inspection['crowded'][number]>(CROWDED, [LISTED_MAX]),
        badClaims: await db.all<BadClaim>(BAD_CLAIMS, [LISTED_MAX]),
        endless: endlessRuns(runs),
        leftoverLocks: [],
        blockedWal: null,
      }
    },
  }
}
