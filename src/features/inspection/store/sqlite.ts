import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import type { Presence } from '../../../core/model/worker.ts'
import {
  checkCounters,
  runsWithoutEndTime,
  LISTED_MAX,
  LIVE_RUNS_MAX,
  NEWEST_RUNS_MAX,
  type InvalidClaim,
  type CounterCheckRow,
  type Inspection,
  type InspectionStore,
  type LeftoverLock,
  type InspectedRun,
} from './store.ts'
import { toWorker, type WorkerRow } from '../../../core/store/worker-rows.ts'
import {
  blockedWal,
  LIVE,
  probePresence,
  sql,
  SUMS,
  type Database,
} from '../../../core/store/sqlite/kit.ts'

const JOURNAL_MODE = sql('inspect:journal')`PRAGMA journal_mode`
const SYNCHRONOUS = sql('inspect:synchronous')`PRAGMA synchronous`
const LEVELS = ['off', 'normal', 'full', 'extra']

const INSPECTED_RUNS = sql('inspect:runs')`
  WITH chosen AS (
    SELECT id FROM (SELECT id FROM run WHERE status IN ${LIVE} ORDER BY id DESC LIMIT :live)
    UNION
    SELECT id FROM (SELECT id FROM run ORDER BY id DESC LIMIT :newest)
  )
  SELECT r.id, r.source, r.status, r.finished_at,
         (SELECT coalesce(sum(planned + in_progress + done + failed + stuck + parked), 0)
            FROM run_counters WHERE run_id = r.id) AS targets
    FROM chosen JOIN run r ON r.id = chosen.id
   ORDER BY r.status IN ${LIVE} DESC, r.id DESC
`
// One statement reads one snapshot: a run in progress must not look wrong.
const COUNTERS = sql('inspect:counters')`
  SELECT ${SUMS},
         (SELECT json_group_object(status, targets) FROM (
           SELECT status, count(*) AS targets FROM target WHERE run_id = :run GROUP BY status)) AS counted
    FROM run_counters t WHERE t.run_id = :run
`
const DUPLICATE_LIVE_RUNS = sql('inspect:duplicate-live-runs')`
  SELECT source, json_group_array(id) AS runs FROM run
   WHERE status IN ${LIVE} GROUP BY source HAVING count(*) > 1 ORDER BY source LIMIT :limit
`
const INVALID_CLAIMS = sql('inspect:claims')`
  SELECT t.id AS target, t.run_id AS run, r.source, t.worker_id AS worker,
         CASE WHEN t.epoch < 1 THEN 'no-epoch'
              WHEN w.id IS NULL THEN 'worker-unknown'
              ELSE 'worker-ended' END AS fault
    FROM target t
    JOIN run r ON r.id = t.run_id
    LEFT JOIN worker w ON w.id = t.worker_id
   WHERE t.status = 'in_progress' AND r.status IN ${LIVE}
     AND (t.epoch < 1 OR w.id IS NULL OR w.ended_at IS NOT NULL)
   ORDER BY t.id LIMIT :limit
`
const WORKER = sql('inspect:worker')`SELECT * FROM worker WHERE id = :id`

export function inspectMethods(db: Database): InspectionStore {
  return {
    async inspect(): Promise<Inspection> {
      const runs = db.read((tx) =>
        tx
          .all<InspectedRun>(INSPECTED_RUNS, { live: LIVE_RUNS_MAX, newest: NEWEST_RUNS_MAX })
          .map((row) => ({ ...row })),
      )
      return {
        durability: durability(db),
        counters: await checkCounters(runs, async (run) => {
          // Counting blocks the event loop: let other work proceed between two runs.
          await setImmediate()
          return readCounters(db, run)
        }),
        duplicateLiveRuns: duplicateLiveRuns(db),
        invalidClaims: db.read((tx) =>
          tx.all<InvalidClaim>(INVALID_CLAIMS, { limit: LISTED_MAX }).map((row) => ({ ...row })),
        ),
        withoutEndTime: runsWithoutEndTime(runs),
        leftoverLocks: leftoverLocks(db, `${db.location}-workers`),
        blockedWal: blockedWal(db),
      }
    },
  }
}

function durability(db: Database): Inspection['durability'] {
  const { journal_mode } = db.writer.get<{ journal_mode: string }>(JOURNAL_MODE)!
  const { synchronous } = db.writer.get<{ synchronous: number }>(SYNCHRONOUS)!
  return { journal_mode, synchronous: LEVELS[synchronous] ?? String(synchronous) }
}

function readCounters(db: Database, run: string): CounterCheckRow {
  type Row = CounterCheckRow & { counted: string }
  const row = db.read((tx) => tx.get<Row>(COUNTERS, { run }))!
  return { ...row, counted: JSON.parse(row.counted) as CounterCheckRow['counted'] }
}

function duplicateLiveRuns(db: Database): Inspection['duplicateLiveRuns'] {
  return db
    .read((tx) =>
      tx.all<{ source: string; runs: string }>(DUPLICATE_LIVE_RUNS, { limit: LISTED_MAX }),
    )
    .map(({ source, runs }) => ({ source, runs: JSON.parse(runs) as string[] }))
}

/** A worker acquires its lock before it registers: a young file without a worker belongs to one that starts. */
const STARTING_MS = 60_000

function leftoverLocks(db: Database, folder: string): LeftoverLock[] {
  const leftover: LeftoverLock[] = []
  for (const name of lockFiles(folder)) {
    const id = name.slice(0, -'.lock'.length)
    const path = join(folder, name)
    const row = db.read((tx) => tx.get<WorkerRow & { presence: string }>(WORKER, { id }))
    if (!row) {
      // Not opened to test the lock: if it is this process's own, closing it would release it.
      if (ageMs(path) > STARTING_MS) leftover.push({ path, fault: 'worker-unknown' })
      continue
    }
    const worker = toWorker({ ...row, presence: JSON.parse(row.presence) as Presence })
    if (worker.endedAt === null) continue
    if (probePresence(folder, worker.presence, worker.process) === 'held') continue
    leftover.push({ path, fault: 'worker-ended' })
  }
  return leftover.slice(0, LISTED_MAX)
}

function lockFiles(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => name.endsWith('.lock'))
  } catch {
    // No worker has run here, or the folder is not readable.
    return []
  }
}

function ageMs(path: string): number {
  const stat = statSync(path, { throwIfNoEntry: false })
  return stat ? Date.now() - stat.mtimeMs : 0
}
