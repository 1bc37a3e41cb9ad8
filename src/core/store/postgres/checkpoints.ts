import type { Checkpoint, InTransaction } from '../../model/checkpoint.ts'
import type { Outcome } from '../../model/claim.ts'
import { messageOf, PageRejectedError } from '../../model/errors.ts'
import { isLeaseLost, outcomeOfRefused } from '../claim-state.ts'
import type { Store } from '../store.ts'
import { refuseInUserFunction } from '../user-function.ts'
import { sql, type Queryable, type Connection, type Database } from './database.ts'
import { isDataError } from './errors.ts'
import { itemJson, saveOnePage, SEEN_AGAIN } from './one-page.ts'
import { PageBatches } from './page-batches.ts'
import { countRefused, claimStates } from './claim-state.ts'
import { ADD_ON_CONFLICT } from './counters.ts'
import { internalFunctions, runInTransaction, UserCodeError } from './user-transaction.ts'

// $1 writer, $2 pages, $3 their items. One statement, so one round trip and one transaction.
//
// The fence comes first: a worker that lost its claim matches no row, and only pages that moved their target have
// their items saved. Progress resets crashes and errors. Items go in sorted by key, so that two batches with
// the same items wait for each other instead of locking each other out; of the same item twice the later is kept.
// Its data moves, and its version with it, only when it differs. `held` replaces a literal, with which the
// planner would read the index of all claims instead of looking up one target.
export const CHECKPOINT = sql('checkpoint:advance')`
  WITH page AS MATERIALIZED (
    SELECT *, 'in_progress' AS held FROM json_to_recordset($2::json) AS p (
      n int, source text, target uuid, epoch int, claim_id uuid, expected_seq int, page int,
      page_target int, next_url text, last_item_id text, cursor jsonb, skipped int, hash text,
      done boolean, items int)
  ),
  advanced AS (
    UPDATE unstuck.target t
       SET checkpoint_seq = t.checkpoint_seq + 1, page = p.page, next_url = p.next_url, checkpoint_hash = p.hash,
           page_target  = coalesce(p.page_target, t.page_target),
           last_item_id = coalesce(p.last_item_id, t.last_item_id),
           cursor       = CASE WHEN p.cursor IS NULL THEN t.cursor ELSE p.cursor -> 0 END,
           status       = CASE WHEN p.done THEN 'done' ELSE t.status END,
           finished_at  = CASE WHEN p.done THEN clock_timestamp() END,
           last_activity_at = clock_timestamp(), crashes = 0, crashes_alone = 0,
           crashes_since_epoch = t.epoch, errors = 0
      FROM page p
     WHERE t.id = p.target AND t.epoch = p.epoch AND t.claim_id = p.claim_id
       AND t.status = p.held AND t.checkpoint_seq = p.expected_seq AND t.page < p.page
    RETURNING p.n, p.source, p.items, p.skipped, p.done, t.run_id, t.group_name, t.checkpoint_seq,
              t.claim_id || '/' || t.checkpoint_seq AS checkpoint
  ),
  offered AS (
    SELECT * FROM ROWS FROM (
      json_to_recordset($3::json) AS (
        n int, key text COLLATE "C", key_version int, url text, data jsonb)
    ) WITH ORDINALITY AS i (n, key, key_version, url, data, nth)
  ),
  saved AS (
    INSERT INTO unstuck.item (source, key, key_version, url, data, changed_in, run_id, group_name)
    SELECT DISTINCT ON (a.source, o.key)
           a.source, o.key, o.key_version, o.url, coalesce(o.data, 'null'), a.checkpoint, a.run_id, a.group_name
      FROM offered o JOIN advanced a USING (n)
     ORDER BY a.source, o.key, o.nth DESC
    ${SEEN_AGAIN}
    RETURNING changed_in, version
  ),
  changed AS (
    SELECT changed_in AS checkpoint,
           count(*) FILTER (WHERE version = 1) AS added, count(*) FILTER (WHERE version > 1) AS updated
      FROM saved GROUP BY changed_in
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, in_progress, done, pages, skipped,
                               items_new, items_updated, items_unchanged)
    SELECT run_id, group_name, $1, -count(*) FILTER (WHERE done), count(*) FILTER (WHERE done), count(*),
           sum(skipped), coalesce(sum(added), 0), coalesce(sum(updated), 0),
           sum(items) - coalesce(sum(added), 0) - coalesce(sum(updated), 0)
      FROM advanced LEFT JOIN changed USING (checkpoint)
     GROUP BY run_id, group_name ORDER BY run_id, group_name
    ${ADD_ON_CONFLICT}
  )
  SELECT n, checkpoint_seq FROM advanced
`

type Numbered = { readonly n: number; readonly page: Checkpoint }
type Settled = { readonly n: number; readonly outcome: Outcome<{ seq: number }> }

export function checkpointMethods(db: Database): Pick<Store, 'checkpoint'> {
  const saveAll: Store['checkpoint'] = async (pages, inTransaction) => {
    const outcomes: Outcome<{ seq: number }>[] = []
    for (const round of rounds(pages)) {
      for (const { n, outcome } of await save(db, round, inTransaction)) outcomes[n] = outcome
    }
    return outcomes
  }
  const batches = new PageBatches(db.connections, saveAll)
  return {
    checkpoint: async (pages, inTransaction) => {
      const [page] = pages
      if (!page || pages.length > 1 || inTransaction) return saveAll(pages, inTransaction)
      refuseInUserFunction(db)
      return [await batches.add(page)]
    },
  }
}

/** A target's second page must find its first one in: each round has at most one page of a target. */
function rounds(pages: readonly Checkpoint[]): Numbered[][] {
  const rounds: Numbered[][] = []
  const seen = new Map<string, number>()
  for (const [n, page] of pages.entries()) {
    const round = seen.get(page.claim.target) ?? 0
    seen.set(page.claim.target, round + 1)
    ;(rounds[round] ??= []).push({ n, page })
  }
  return rounds
}

async function save(
  db: Database,
  pages: readonly Numbered[],
  inTransaction?: InTransaction,
): Promise<Settled[]> {
  try {
    const saved = inTransaction
      ? await advanceWith(db, pages, inTransaction)
      : await advance(db, pages)
    const late = pages.filter(({ n }) => !saved.has(n))
    return [
      ...[...saved].map(([n, seq]): Settled => ({ n, outcome: { ok: true, value: { seq } } })),
      ...(late.length > 0 ? await explainRejections(db, late) : []),
    ]
  } catch (error) {
    if (error instanceof UserCodeError) throw error.cause
    if (!isDataError(error)) throw error
    if (pages.length === 1)
      return [{ n: pages[0]!.n, outcome: { ok: false, error: rejected(error) } }]
    // One bad page must not take the others with it.
    const settled: Settled[] = []
    for (const page of pages) settled.push(...(await save(db, [page])))
    return settled
  }
}

/** Which of the pages are in now, and under which number. */
async function advance(db: Queryable, pages: readonly Numbered[]): Promise<Map<number, number>> {
  const [only] = pages
  if (only && pages.length === 1) {
    const seq = await saveOnePage(db, only.page)
    return seq === null ? new Map() : new Map([[only.n, seq]])
  }
  const rows = await db.writeCounts<{ n: number; checkpoint_seq: number }>(CHECKPOINT, [
    JSON.stringify(
      pages.map(({ n, page }) => ({ n, items: page.items.length, ...checkpointRow(page) })),
    ),
    itemsJson(pages),
  ])
  return new Map(rows.map((row) => [row.n, row.checkpoint_seq]))
}

/** The user's own statements join the page's transaction. They are not run again for a page that is already in. */
function advanceWith(
  db: Database,
  pages: readonly Numbered[],
  inTransaction: InTransaction,
): Promise<Map<number, number>> {
  const work = async (connection: Connection): Promise<Map<number, number>> => {
    const saved = await advance(connection, pages)
    if (saved.size > 0) await runInTransaction(db, connection, inTransaction)
    return saved
  }
  return internalFunctions.has(inTransaction)
    ? db.transaction('checkpoint', work)
    : db.userTransaction('checkpoint', work)
}

async function explainRejections(db: Database, late: readonly Numbered[]): Promise<Settled[]> {
  const standing = await claimStates(
    db,
    late.map(({ page }) => page.claim),
  )
  const settled = late.map(({ n, page }): Settled => {
    return { n, outcome: outcomeOfRefused(page, standing.get(page.claim.target)) }
  })
  const refused = late.filter((_, at) => isLeaseLost(settled[at]!.outcome))
  await countRefused(
    db,
    refused.map(({ page }) => page.claim),
  )
  return settled
}

function rejected(error: unknown): PageRejectedError {
  return new PageRejectedError(
    `PostgreSQL cannot store the page: ${messageOf(error)}. Clean its items or its cursor, then try again.`,
    { cause: error },
  )
}

/** Returns a page without its items, in the columns that the statements name. */
export function checkpointRow(page: Checkpoint): Record<string, unknown> {
  const { claim, cursor } = page
  return {
    source: page.source,
    target: claim.target,
    epoch: claim.epoch,
    claim_id: claim.claimId,
    expected_seq: page.expectedSeq,
    page: page.page,
    page_target: page.pageTarget ?? null,
    next_url: page.next,
    last_item_id: page.lastItemId ?? null,
    // In an array, to distinguish a cursor that is null from none.
    cursor: cursor === undefined ? null : [cursor],
    skipped: page.skipped,
    hash: page.hash,
    done: page.done,
  }
}

function itemsJson(pages: readonly Numbered[]): string {
  const items = pages.flatMap(({ n, page }) =>
    page.items.map((item) => `{"n":${n},${itemJson(item).slice(1)}`),
  )
  return `[${items.join(',')}]`
}
