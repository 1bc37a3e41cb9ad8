import { UsageError } from '../../model/errors.ts'
import { shortId } from '../../model/id.ts'
import { isLive } from '../../model/run.ts'
import type { RevertRequest, Store } from '../store.ts'
import { recordAudit } from './audit.ts'
import { sql, type Connection, type Database } from './database.ts'
import { runState, LIVE } from './runs.ts'
import { fenceOff, TRY_AGAIN } from './replan.ts'
import { addCounts } from './counters.ts'

const OTHER_LIVE = sql('revert:other')`
  SELECT 1 FROM run WHERE source = :source AND status IN ${LIVE} AND id <> :run AND id IS NOT :cancel
`
const CANCEL_RETRY = sql('revert:retry')`
  UPDATE run SET status = 'cancelled', error = :because, finished_at = :now
   WHERE id = :run AND status = 'queued' AND started_at IS NULL
`
const REOPEN_RUN = sql('revert:run')`
  UPDATE run SET status = :to, finished_at = NULL, acknowledged_at = NULL, error = NULL, reopened_at = :now
   WHERE id = :run
`
const RESTORE = sql('revert:target')`
  UPDATE target SET epoch = epoch + 1, ${TRY_AGAIN}
   WHERE id = :id AND status = :status AND checkpoint_seq = :seq
  RETURNING group_name
`
const RAISE_EPOCH = sql('revert:epoch')`
  UPDATE target SET epoch = epoch + 1, claim_id = NULL WHERE run_id = :run AND status = 'planned'
`

const DELETE_ITEMS = sql('delete:items')`DELETE FROM item WHERE source = :source AND run_id = :run`
const DELETE_TARGETS = sql('delete:targets')`DELETE FROM target WHERE run_id = :run`
const DELETE_COUNTERS = sql('delete:counters')`DELETE FROM run_counters WHERE run_id = :run`
const DELETE_RUN = sql('delete:run')`DELETE FROM run WHERE id = :run`

/** Reverts actions, and deletes a run, which cannot be reverted. */
export function revertMethods(db: Database): Pick<Store, 'revert' | 'deleteRun'> {
  return {
    revert: (request) => db.write('revert', (tx) => revert(tx, request)),

    deleteRun: ({ run, withItems, actor, because }) =>
      db.write('delete', (tx) => {
        const { source, status } = runState(tx, run)
        if (isLive(status)) {
          throw new UsageError(
            `Run ${shortId(run)} is ${status}: only what has ended can be deleted.`,
          )
        }
        const items = withItems ? tx.run(DELETE_ITEMS, { source, run }) : 0
        const targets = tx.run(DELETE_TARGETS, { run })
        tx.run(DELETE_COUNTERS, { run })
        tx.run(DELETE_RUN, { run })
        const [before, after] = [{ status, targets, items }, { status: 'deleted' }]
        recordAudit(tx, { actor, action: 'delete', because, source, run, before, after })
        return { targets, items }
      }),
  }
}

function revert(tx: Connection, asked: RevertRequest): boolean {
  const { run, from, to, targets, cancel, undoes, actor, because } = asked
  const now = tx.now()
  const { source, kind, status: stands } = runState(tx, run)
  // All that may speak against it comes before the first write.
  if (stands !== from || tx.get(OTHER_LIVE, { source, run, cancel })) return false
  const entry = { actor, because, source }
  if (cancel !== null) {
    const why = `the run it follows, ${shortId(run)}, was reverted`
    if (tx.run(CANCEL_RETRY, { run: cancel, because: why, now }) === 0) return false
    const [before, after] = [{ status: 'queued' }, { status: 'cancelled' }]
    recordAudit(tx, { ...entry, action: 'cancel', because: why, run: cancel, before, after })
  }
  tx.run(REOPEN_RUN, { run, to, now })
  for (const { id, status, seq } of targets) {
    const row = tx.get<{ group_name: string }>(RESTORE, { id, status, seq })
    if (row) addCounts(tx, run, row.group_name, { [status]: -1, planned: 1 }, now)
  }
  if (!isLive(from)) {
    fenceOff(tx, run, now)
    if (kind === 'single') tx.run(RAISE_EPOCH, { run })
  }
  const [before, after] = [{ status: from }, { status: to, undoes, targets: targets.length }]
  recordAudit(tx, { ...entry, action: 'revert', run, before, after })
  return true
}
