import type { Checkpoint } from '../../model/checkpoint.ts'
import type { Item } from '../../model/item.ts'
import { sql, type Queryable } from './database.ts'
import { ADD_ON_CONFLICT } from './counters.ts'

/** The end of every item's INSERT: the data moves, and its version with it, only when it differs. */
export const SEEN_AGAIN = /* sql */ `
  ON CONFLICT (source, key) DO UPDATE SET
    version      = item.version + (item.data <> excluded.data)::int,
    changed_in   = CASE WHEN item.data <> excluded.data THEN excluded.changed_in ELSE item.changed_in END,
    changed_at   = CASE WHEN item.data <> excluded.data THEN excluded.changed_at ELSE item.changed_at END,
    data         = CASE WHEN item.data <> excluded.data THEN excluded.data ELSE item.data END,
    url          = excluded.url,
    run_id       = excluded.run_id,
    group_name   = excluded.group_name,
    last_seen_at = excluded.last_seen_at
`

// The statement of `checkpoints.ts` for a single page, which is most of what a crawl sends: its values come one by one, and
// what only a batch needs is gone, with a third of the time. $1 writer; the fence $2 to $7, of which $7 is
// 'in_progress' (a literal would lead the planner to read the index of all claims); $17 the items, sorted, each once.
export const ONE_PAGE = sql('checkpoint:page')`
  WITH advanced AS (
    UPDATE unstuck.target
       SET checkpoint_seq = checkpoint_seq + 1, page = $6, next_url = $8, checkpoint_hash = $9,
           page_target  = coalesce($10, page_target),
           last_item_id = coalesce($11, last_item_id),
           cursor       = CASE WHEN $12::jsonb IS NULL THEN cursor ELSE $12::jsonb -> 0 END,
           status       = CASE WHEN $13 THEN 'done' ELSE status END,
           finished_at  = CASE WHEN $13 THEN clock_timestamp() END,
           last_activity_at = clock_timestamp(), crashes = 0, crashes_alone = 0,
           crashes_since_epoch = epoch, errors = 0
     WHERE id = $2 AND epoch = $3 AND claim_id = $4 AND checkpoint_seq = $5 AND page < $6 AND status = $7
    RETURNING run_id, group_name, checkpoint_seq
  ),
  saved AS (
    INSERT INTO unstuck.item (source, key, key_version, url, data, changed_in, run_id, group_name)
    SELECT $14, i.key, i.key_version, i.url, coalesce(i.data, 'null'), $15, a.run_id, a.group_name
      FROM advanced a, json_to_recordset($17::json) AS i (key text, key_version int, url text, data jsonb)
    ${SEEN_AGAIN}
    RETURNING CASE WHEN changed_in = $15 THEN version END AS version
  ),
  counted AS (
    INSERT INTO unstuck.run_counters (run_id, group_name, writer, in_progress, done, pages, skipped,
                               items_new, items_updated, items_unchanged)
    SELECT a.run_id, a.group_name, $1, -($13::boolean)::int, ($13::boolean)::int, 1, $16::int,
           i.added, i.updated, $18::int - i.added - i.updated
      FROM advanced a,
           (SELECT count(*) FILTER (WHERE version = 1) AS added,
                   count(*) FILTER (WHERE version > 1) AS updated FROM saved) i
    ${ADD_ON_CONFLICT}
  )
  SELECT checkpoint_seq FROM advanced
`

/** Saves one page; null when the fence turned it away. */
export async function saveOnePage(db: Queryable, page: Checkpoint): Promise<number | null> {
  const { target, epoch, claimId } = page.claim
  const { expectedSeq, next, hash, pageTarget = null, lastItemId = null, cursor } = page
  const fence = [target, epoch, claimId, expectedSeq, page.page, 'in_progress']
  const [row] = await db.writeCounts<{ checkpoint_seq: number }>(ONE_PAGE, [
    ...fence,
    next,
    hash,
    pageTarget,
    lastItemId,
    // In an array, to distinguish a cursor that is null from none.
    cursor === undefined ? null : JSON.stringify([cursor]),
    page.done,
    page.source,
    `${claimId}/${expectedSeq + 1}`,
    page.skipped,
    `[${sorted(page.items).map(itemJson).join(',')}]`,
    page.items.length,
  ])
  return row?.checkpoint_seq ?? null
}

/** Each key once, the last one, in the order of the index: two pages with the same items then wait for each other. */
function sorted(items: readonly Item[]): Item[] {
  const each = new Map(items.map((item) => [item.key, item]))
  return [...each.values()].sort((a, b) => Buffer.compare(Buffer.from(a.key), Buffer.from(b.key)))
}

/** The items' data is JSON text already: it goes in as it is. An address that is its own key is not kept twice. */
export function itemJson({ key, keyVersion, url, data }: Item): string {
  const address = JSON.stringify(url === key ? null : url)
  return `{"key":${JSON.stringify(key)},"key_version":${keyVersion},"url":${address},"data":${data}}`
}
