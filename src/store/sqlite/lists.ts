import { toHeldTarget, toItem, toListing, toTarget, type ItemRow, type TargetRow } from '../rows.ts'
import type { Store } from '../store.ts'
import { sql, type Database } from './database.ts'

const TARGET = sql('target', `SELECT * FROM target WHERE id = :id`)
const LIST = (name: string, where: string) =>
  sql(
    `targets:${name}`,
    /* sql */ `
  SELECT * FROM target WHERE run_id = :run AND id > :after AND ${where} ORDER BY id LIMIT :limit
`,
  )
const ALL = LIST('all', 'true')
const IN_STATUS = LIST('status', 'status = :status')
const IN_GROUP = LIST('group', 'grp = :group')
const IN_GROUP_AND_STATUS = LIST('group-status', 'grp = :group AND status = :status')

const ENDING = sql('targets:ending', `SELECT id FROM target WHERE id LIKE '%' || :suffix LIMIT 3`)

const ITEMS = sql(
  'items',
  /* sql */ `
  SELECT key, coalesce(url, CASE WHEN key_version > 0 THEN key END) AS url, data, version, run_id, first_seen_at, last_seen_at, changed_at
    FROM item WHERE source = :source AND key > :after ORDER BY key LIMIT :limit
`,
)

export type SqliteTargetRow = Omit<TargetRow, 'cursor'> & { cursor: string | null }

/** What is in the store, for people: targets and items. */
export function listVerbs(
  db: Database,
): Pick<Store, 'target' | 'targets' | 'targetsEnding' | 'items'> {
  return {
    target: async (id) => {
      const row = db.read((tx) => tx.get<SqliteTargetRow>(TARGET, { id }))
      return row ? readTarget(row) : null
    },

    targets: async (run, { status, group, after = '', limit }) => {
      const page = { run, after, limit: limit + 1 }
      const rows = db.read((tx) => {
        if (status !== undefined && group !== undefined) {
          return tx.all<SqliteTargetRow>(IN_GROUP_AND_STATUS, { ...page, status, group })
        }
        if (status !== undefined) return tx.all<SqliteTargetRow>(IN_STATUS, { ...page, status })
        if (group !== undefined) return tx.all<SqliteTargetRow>(IN_GROUP, { ...page, group })
        return tx.all<SqliteTargetRow>(ALL, page)
      })
      return toListing(rows, limit, readTarget)
    },

    targetsEnding: async (suffix) =>
      db.read((tx) => tx.all<{ id: string }>(ENDING, { suffix }).map((row) => row.id)),

    items: async (source, after, limit) =>
      db.read((tx) =>
        tx
          .all<ItemRow>(ITEMS, { source, after: after ?? '', limit })
          .map((row) => toItem({ ...row, data: readJson(row.data as string) })),
      ),
  }
}

/** As its judge sees it. */
export function readHeldTarget(row: SqliteTargetRow): ReturnType<typeof toHeldTarget> {
  return toHeldTarget({ ...row, cursor: readJson(row.cursor) })
}

function readTarget(row: SqliteTargetRow): ReturnType<typeof toTarget> {
  return toTarget({ ...row, cursor: readJson(row.cursor) })
}

/** JSON from the store; text that is none (somebody edited it by hand) is shown as it is. */
export function readJson(text: string | null): unknown {
  if (text === null) return null
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
