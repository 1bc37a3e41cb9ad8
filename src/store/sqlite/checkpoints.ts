import type { Checkpoint, InTransaction } from '../../model/checkpoint.ts'
import type { Outcome } from '../../model/claim.ts'
import { PageBehind, PageRejected } from '../../model/errors.ts'
import type { Store } from '../store.ts'
import { sql, type Connection, type Database } from './database.ts'
import { sqliteCode } from './errors.ts'
import { isSameClaim, refuse, standing } from './refusal.ts'
import { book } from './tally.ts'

// The fence: a worker that lost its claim matches no row and so changes nothing. Progress strikes off crashes and errors.
const ADVANCE = sql(
  'checkpoint:advance',
  /* sql */ `
  UPDATE target
     SET seq = seq + 1, page = :page, next_url = :next, page_hash = :hash,
         page_target  = coalesce(:pageTarget, page_target),
         last_item_id = coalesce(:lastItemId, last_item_id),
         cursor       = coalesce(:cursor, cursor),
         status       = CASE WHEN :done THEN 'done' ELSE status END,
         finished_at  = CASE WHEN :done THEN :now END,
         last_activity_at = :now, crashes = 0, crashes_alone = 0, errors = 0
   WHERE id = :target AND epoch = :epoch AND claim_id = :claimId AND status = 'in_progress'
     AND seq = :expectedSeq AND page < :page
  RETURNING seq, run_id, grp
`,
)
// The data moves, and its version with it, only when it differs.
const SAVE_ITEM = sql(
  'checkpoint:item',
  /* sql */ `
  INSERT INTO item (source, key, key_version, url, data, changed_in, run_id, target_id,
                    first_seen_at, last_seen_at, changed_at)
  VALUES (:source, :key, :keyVersion, :url, :data, :changedIn, :run, :target, :now, :now, :now)
  ON CONFLICT (source, key) DO UPDATE SET
    version      = version + (data <> excluded.data),
    changed_in   = CASE WHEN data <> excluded.data THEN excluded.changed_in ELSE changed_in END,
    changed_at   = CASE WHEN data <> excluded.data THEN excluded.changed_at ELSE changed_at END,
    data         = excluded.data,
    url          = excluded.url,
    run_id       = excluded.run_id,
    target_id    = excluded.target_id,
    last_seen_at = excluded.last_seen_at
  RETURNING version, changed_in
`,
)

export function checkpointVerbs(db: Database): Pick<Store, 'checkpoint'> {
  const save = (pages: readonly Checkpoint[], inTransaction?: InTransaction) =>
    db.write('checkpoint', (tx) => {
      const outcomes = pages.map((page) => savePage(tx, page))
      const [only] = outcomes
      if (!inTransaction || !only?.outcome.ok || only.wasIn) return outcomes.map((o) => o.outcome)
      return runInTransaction(tx, inTransaction).then(() => [only.outcome])
    })

  const checkpoint: Store['checkpoint'] = async (pages, inTransaction) => {
    try {
      return await save(pages, inTransaction)
    } catch (error) {
      if (!isDataError(error)) throw error
      if (pages.length === 1) {
        const reason = `The page cannot be stored: ${(error as Error).message}.`
        return [{ ok: false, error: new PageRejected(reason, { cause: error }) }]
      }
      // One bad page must not take the others with it.
      const outcomes: Outcome<number>[] = []
      for (const page of pages) outcomes.push(...(await checkpoint([page])))
      return outcomes
    }
  }
  return { checkpoint }
}

function savePage(tx: Connection, page: Checkpoint): { outcome: Outcome<number>; wasIn: boolean } {
  const { claim, source } = page
  const now = Date.now()
  const row = tx.get<{ seq: number; run_id: string; grp: string }>(ADVANCE, {
    target: claim.target,
    epoch: claim.epoch,
    claimId: claim.claimId,
    expectedSeq: page.expectedSeq,
    page: page.page,
    next: page.next,
    hash: page.hash,
    pageTarget: page.pageTarget ?? null,
    lastItemId: page.lastItemId ?? null,
    cursor: page.cursor === undefined ? null : JSON.stringify(page.cursor),
    done: page.done ? 1 : 0,
    now,
  })
  if (!row) return turnedAway(tx, page)

  const counts = { items_new: 0, items_updated: 0, items_unchanged: 0 }
  const changedIn = `${claim.claimId}/${row.seq}`
  // The same item twice on a page is one row, and one in the books; the last one counts.
  const items = new Map(page.items.map((item) => [item.key, item]))
  counts.items_unchanged = page.items.length - items.size
  for (const { key, keyVersion, url, data } of items.values()) {
    const { run_id: run } = row
    const saved = tx.get<{ version: number; changed_in: string }>(SAVE_ITEM, {
      source,
      key,
      keyVersion,
      url,
      data,
      changedIn,
      run,
      target: claim.target,
      now,
    })!
    if (saved.changed_in !== changedIn) counts.items_unchanged++
    else if (saved.version === 1) counts.items_new++
    else counts.items_updated++
  }
  const finished = page.done ? { in_progress: -1, done: 1 } : {}
  book(tx, row.run_id, row.grp, { pages: 1, skipped: page.skipped, ...counts, ...finished }, now)
  return { outcome: { ok: true, value: row.seq }, wasIn: false }
}

function turnedAway(
  tx: Connection,
  page: Checkpoint,
): { outcome: Outcome<number>; wasIn: boolean } {
  const { claim, expectedSeq } = page
  const row = standing(tx, claim)
  if (row && isSameClaim(row, claim)) {
    // The COMMIT whose answer got lost had gone through.
    if (row.seq === expectedSeq + 1 && row.page_hash === page.hash) {
      return { outcome: { ok: true, value: row.seq }, wasIn: true }
    }
    if (row.status === 'in_progress' && row.page >= page.page) {
      const error = new PageBehind(claim.target, page.page, row.page)
      return { outcome: { ok: false, error }, wasIn: false }
    }
  }
  return { outcome: { ok: false, error: refuse(tx, claim, row) }, wasIn: false }
}

async function runInTransaction(tx: Connection, inTransaction: InTransaction): Promise<void> {
  await inTransaction({ query: async (text, params = []) => tx.query(text, params) })
}

const TOO_BIG = 18
const MISMATCH = 20

function isDataError(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === TOO_BIG || code === MISMATCH
}
