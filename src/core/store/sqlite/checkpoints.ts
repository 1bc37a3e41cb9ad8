import type { Checkpoint, InTransaction } from '../../model/checkpoint.ts'
import type { Outcome } from '../../model/claim.ts'
import { PageRejectedError, toError } from '../../model/errors.ts'
import type { Item } from '../../model/item.ts'
import { isLeaseLost, outcomeOfRefused } from '../claim-state.ts'
import type { Store } from '../store.ts'
import { callUserFunction } from '../user-function.ts'
import { sql, type Connection, type Database, type Positions, type Sql } from './database.ts'
import { sqliteCode } from './errors.ts'
import { refuseWrite, claimState } from './claim-state.ts'

// The statements of a page are bound by position: they are most of what a crawl does, and looking up names would be a
// quarter of their time.

// The fence: a worker that lost its claim matches no row and so changes nothing. Progress strikes off errors and crashes.
const ADVANCE = (name: string, also: string, where: string): Sql =>
  sql(`checkpoint:${name}`)`
  UPDATE target
     SET checkpoint_seq = checkpoint_seq + 1, page = ?5, next_url = ?6, checkpoint_hash = ?7,
         page_target  = coalesce(?8, page_target),
         last_item_id = coalesce(?9, last_item_id),
         cursor       = coalesce(?10, cursor),
         last_activity_at = ?11, errors = 0 ${also}
   WHERE id = ?1 AND epoch = ?2 AND claim_id = ?3 AND status = 'in_progress'
     AND checkpoint_seq = ?4 AND page < ?5 ${where}
  RETURNING checkpoint_seq, run_id, group_name
`
// Apart, because SQLite writes every index again that a column of the SET list is in, changed or not: most pages need none.
const NEXT_PAGE = ADVANCE('next-page', '', 'AND crashes = 0')
const NO_CRASHES = ', crashes = 0, crashes_alone = 0, crashes_since_epoch = epoch'
const FIRST_PAGE = ADVANCE('first-page', NO_CRASHES, '')
const LAST_PAGE = ADVANCE('last-page', `${NO_CRASHES}, status = 'done', finished_at = ?11`, '')

// Most items are new, so that is tried first and costs one statement.
const ADD_ITEM = sql('checkpoint:item')`
  INSERT INTO item (source, key, key_version, url, data, run_id, group_name, first_seen_at, last_seen_at, changed_at)
  VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?8, ?8)
  ON CONFLICT (source, key) DO NOTHING
`
const CHANGE_ITEM = sql('checkpoint:item-change')`
  UPDATE item
     SET data = ?4, url = ?3, run_id = ?5, group_name = ?6, version = version + 1, changed_at = ?7, last_seen_at = ?7
   WHERE source = ?1 AND key = ?2 AND data <> ?4
`
const SEE_ITEM = sql('checkpoint:item-seen')`
  UPDATE item SET url = ?3, run_id = ?4, group_name = ?5, last_seen_at = ?6 WHERE source = ?1 AND key = ?2
`

// A run's planning has made the row.
const COUNT_PAGE = sql('checkpoint:counters')`
  UPDATE run_counters
     SET pages = pages + 1, skipped = skipped + ?3, items_new = items_new + ?4,
         items_updated = items_updated + ?5, items_unchanged = items_unchanged + ?6,
         in_progress = in_progress - ?7, done = done + ?7, last_activity_at = max(last_activity_at, ?8)
   WHERE run_id = ?1 AND group_name = ?2
`

export function checkpointMethods(db: Database): Pick<Store, 'checkpoint'> {
  const save = (pages: readonly Checkpoint[], inTransaction?: InTransaction) =>
    db.write('checkpoint', (tx) => {
      const outcomes = pages.map((page) => savePage(tx, page))
      const [only] = outcomes
      if (!inTransaction || !only?.outcome.ok || only.wasIn) return outcomes.map((o) => o.outcome)
      return runInTransaction(db, tx, inTransaction).then(() => [only.outcome])
    })

  const checkpoint: Store['checkpoint'] = async (pages, inTransaction) => {
    try {
      return await save(pages, inTransaction)
    } catch (error) {
      if (!isDataError(error)) throw error
      if (pages.length === 1) {
        const reason = `The page cannot be stored: ${(error as Error).message}.`
        return [{ ok: false, error: new PageRejectedError(reason, { cause: error }) }]
      }
      // One bad page must not take the others with it.
      const outcomes: Outcome<{ seq: number }>[] = []
      for (const page of pages) outcomes.push(...(await checkpoint([page])))
      return outcomes
    }
  }
  return { checkpoint }
}

function savePage(
  tx: Connection,
  page: Checkpoint,
): { outcome: Outcome<{ seq: number }>; wasIn: boolean } {
  const now = tx.now()
  const row = advance(tx, page, now)
  if (!row) return { outcome: refusePage(tx, page), wasIn: true }

  // The same item twice on a page is one row, the last one.
  const items = new Map(page.items.map((item) => [item.key, item]))
  const repeated = page.items.length - items.size
  const counts = { items_new: 0, items_updated: 0, items_unchanged: repeated }
  for (const item of items.values()) counts[saveItem(tx, page.source, row, item, now)]++
  const { items_new, items_updated, items_unchanged } = counts
  const done = page.done ? 1 : 0
  const counters = [items_new, items_updated, items_unchanged, done, now]
  tx.run(COUNT_PAGE, [row.run_id, row.group_name, page.skipped, ...counters])
  return { outcome: { ok: true, value: { seq: row.checkpoint_seq } }, wasIn: false }
}

type Advanced = { checkpoint_seq: number; run_id: string; group_name: string }

function advance(tx: Connection, page: Checkpoint, now: number): Advanced | undefined {
  const { target, epoch, claimId } = page.claim
  const cursor = page.cursor === undefined ? null : JSON.stringify(page.cursor)
  const { expectedSeq, next, hash, pageTarget = null, lastItemId = null } = page
  const fence = [target, epoch, claimId, expectedSeq, page.page]
  const params: Positions = [...fence, next, hash, pageTarget, lastItemId, cursor, now]
  if (page.done) return tx.get<Advanced>(LAST_PAGE, params)
  return tx.get<Advanced>(NEXT_PAGE, params) ?? tx.get<Advanced>(FIRST_PAGE, params)
}

function saveItem(
  tx: Connection,
  source: string,
  { run_id: run, group_name: group }: Advanced,
  { key, keyVersion, url, data }: Item,
  now: number,
): 'items_new' | 'items_updated' | 'items_unchanged' {
  // An address that is its own key is not kept twice.
  const address = url === key ? null : url
  const saved = [run, group, now]
  if (tx.run(ADD_ITEM, [source, key, keyVersion, address, data, ...saved]) === 1) return 'items_new'
  if (tx.run(CHANGE_ITEM, [source, key, address, data, ...saved]) === 1) return 'items_updated'
  tx.run(SEE_ITEM, [source, key, address, ...saved])
  return 'items_unchanged'
}

function refusePage(tx: Connection, page: Checkpoint): Outcome<{ seq: number }> {
  const state = claimState(tx, page.claim)
  const outcome = outcomeOfRefused(page, state)
  if (isLeaseLost(outcome)) refuseWrite(tx, page.claim, state)
  return outcome
}

async function runInTransaction(
  db: Database,
  tx: Connection,
  inTransaction: InTransaction,
): Promise<void> {
  // SQLite rolls back the whole transaction on some errors. What runs after that would be committed without the page.
  let endedBy: unknown
  const query = async (text: string, params: readonly unknown[] = []) => {
    if (endedBy !== undefined) throw endedBy
    try {
      return tx.query(text, params)
    } catch (error) {
      if (!tx.isInTransaction) endedBy = error
      throw error
    }
  }
  try {
    await callUserFunction(db, () => inTransaction({ query }))
  } catch (thrown) {
    throw toError(thrown)
  }
  if (endedBy !== undefined) throw endedBy
}

const TOO_BIG = 18
const MISMATCH = 20

function isDataError(error: unknown): boolean {
  const code = sqliteCode(error)
  return code === TOO_BIG || code === MISMATCH
}
