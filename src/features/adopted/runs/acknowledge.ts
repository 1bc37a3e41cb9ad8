import { unknownRun } from '../../../core/model/errors.ts'
import { DEAD_LETTER_STATUSES } from '../../../core/model/target.ts'
import type { Run } from '../../../core/model/run.ts'
import type { RunId } from '../../../core/model/id.ts'
import {
  acknowledgeEntry,
  type AcknowledgedCount,
  type AcknowledgeRequest,
  type AcknowledgeResult,
  type AcknowledgeStore,
} from '../../acknowledge/store/store.ts'
import { isAdoptedId, TABLE_RUN_KEY } from '../ids.ts'
import type { RowMark } from '../store/store.ts'
import type { AdoptedTable } from '../table/table.ts'
import type { AdoptedContext } from './intents.ts'
import { hashRow, hashTableRun } from './row-hash.ts'
import { allRows, statusValuesIn } from './row-queries.ts'
import type { ResolvedRow } from './row-run.ts'

/** Keeps the marks of rows in Unstuck's own database. A mark holds only while its row is unchanged. */
export function acknowledgeMethods(
  context: AdoptedContext,
  own: AcknowledgeStore,
): AcknowledgeStore {
  return {
    acknowledge: (request) =>
      isAdoptedId(request.run) ? acknowledgeRows(context, request) : own.acknowledge(request),
    async acknowledgedCounts(runs) {
      const counts = await own.acknowledgedCounts(runs && runs.filter((id) => !isAdoptedId(id)))
      return [...counts, ...(await countAcknowledgedRows(context, runs))]
    },
  }
}

async function acknowledgeRows(
  { rows, adopted }: AdoptedContext,
  request: AcknowledgeRequest,
): Promise<AcknowledgeResult> {
  const { run: id, targets, groups, undo, dryRun } = request
  const found = await rows.locator.find(id)
  const run = found && (await rows.run(id))
  if (!run) throw unknownRun(id)
  const { table, key } = found
  const isTable = key === TABLE_RUN_KEY
  const isDifferent = (one: { acknowledgedAt: unknown }) => (one.acknowledgedAt !== null) === undo
  const chosen = isTable ? await selectRows(rows, table, run, request) : []
  const marked = chosen.filter(({ target }) => isDifferent(target))
  // A row that is a run has one target, which is the same row.
  const isRunChanged = isDifferent(run) && (!isTable || (!targets && !groups))
  const result = { targets: marked.length, isRunChanged }
  if (dryRun || (marked.length === 0 && !isRunChanged)) return result
  const { name } = table.mapping
  const marks: RowMark[] = marked.map(({ row, target }) => {
    return { id: target.id, table: name, key: row.key, hash: undo ? null : hashRow(row) }
  })
  const rowHash = isTable ? hashTableRun(run) : hashRow((await rows.resolveId(id))!.row)
  if (isRunChanged) marks.push({ id, table: name, key, hash: undo ? null : rowHash })
  const entry = acknowledgeEntry(request, run.source, result)
  const ref = { table: name, key: entry.target === null ? key : marks[0]!.key }
  const before = { ...entry.before, ...ref, kind: table.mapping.kind }
  await adopted.markRows(marks, { ...entry, before })
  return result
}

/** Returns the named rows of a table of targets, or those that failed or are stuck. */
async function selectRows(
  rows: AdoptedContext['rows'],
  table: AdoptedTable,
  run: Run,
  { targets, groups, stuckRows, undo }: AcknowledgeRequest,
): Promise<ResolvedRow[]> {
  const statusValues = await statusValuesIn(table, [...DEAD_LETTER_STATUSES, 'in_progress'])
  const all = await rows.resolve(table, await allRows(table, { statusValues }), run)
  const isStuck = ({ observation, row }: ResolvedRow): boolean =>
    observation !== null && stuckRows?.get(observation.worker.id) === hashRow(row)
  return all.filter(
    (one) =>
      (targets?.includes(one.target.id) ?? true) &&
      (groups?.includes(one.target.group ?? '') ?? true) &&
      (one.target.status !== 'in_progress' || (!groups && (undo || isStuck(one)))),
  )
}

/** Counts the acknowledged rows of each table of targets by status. Reads the dead letters of tables that have marks. */
async function countAcknowledgedRows(
  { rows, adopted }: AdoptedContext,
  runs: readonly RunId[] | null,
): Promise<AcknowledgedCount[]> {
  const counts: AcknowledgedCount[] = []
  await rows.tables.queryAll(
    async (table) => {
      const run = await rows.tableRun(table)
      const isAsked = runs === null || runs.includes(run.id)
      if (!isAsked || !(await adopted.hasMarks(table.mapping.name))) return
      const statusValues = await statusValuesIn(table, DEAD_LETTER_STATUSES)
      const found = await rows.resolve(table, await allRows(table, { statusValues }), run)
      for (const status of DEAD_LETTER_STATUSES) {
        const marked = found.filter(
          ({ target }) => target.status === status && target.acknowledgedAt !== null,
        )
        if (marked.length > 0) counts.push({ run: run.id, status, count: marked.length })
      }
    },
    ({ kind }) => kind === 'targets',
  )
  return counts
}
