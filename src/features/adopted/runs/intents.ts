import { messageOf, RefusedError, UsageError } from '../../../core/model/errors.ts'
import { newId, type Id, type TargetId } from '../../../core/model/id.ts'
import type { RunStatus } from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import { describeOrigin } from '../../../core/model/traits.ts'
import type { AuditEntry, AuditInfo, Store } from '../../../core/store/store.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedStore, IntentResult, NewIntent } from '../store/store.ts'
import type { AdoptedRow, RowChange, RowStatus } from '../table/table.ts'
import type { ResumeHooks } from './callbacks.ts'
import type { ResolvedRow } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import { encodeSnapshot, hashRow, snapshotBefore, writtenValues } from './row-hash.ts'
import { isWaiting, runStatusOf, targetStatusOf } from './status-mapping.ts'

/** What the operations on rows need. */
export type AdoptedContext = {
  /** Unstuck's own store, for the audit trail. */
  readonly store: Store
  readonly adopted: AdoptedStore
  readonly rows: AdoptedRows
  readonly resumeHooks: ResumeHooks
}

/** A change of a row, with its audit entry. */
export type RowOperation = AuditInfo & {
  readonly action: string
  readonly evidence: unknown
  /** 'delete': the row is deleted. */
  readonly change: RowChange | 'delete'
  /** Null if the row is a run. */
  readonly target: TargetId | null
  /** Further fields of the audit entry. */
  readonly before?: Record<string, unknown>
  readonly after?: Record<string, unknown>
  /** An operator reopens the row: automatic recovery ignores it until it changes. */
  readonly reopens?: boolean
  /** Errors of the user's database are logged, and the other rows are processed. */
  readonly isAutomatic?: boolean
}

const AUDIT_MAX = 1_000
const RECORD_ATTEMPTS = 5
/** Time for the rows of one batch of intents, well below the time after which others treat intents as abandoned. */
const BATCH_MS = 5_000

/** A resolved row and the operation on it. */
export type RowTask = {
  readonly resolved: Pick<ResolvedRow, 'table' | 'row' | 'run' | 'target'>
  readonly operation: RowOperation
}

/** Applies one operation. Returns false if the row has changed meanwhile. */
export async function applyOperation(
  context: AdoptedContext,
  resolved: RowTask['resolved'],
  operation: RowOperation,
): Promise<boolean> {
  return (await applyOperations(context, [{ resolved, operation }]))[0]!
}

/**
 * Applies each operation if its row has not changed: records it once in the audit trail, and calls `onResume` for rows
 * that went back to the queue. Returns which were applied. Two databases cannot share a transaction, so the intents are
 * written first. If the process dies in between, the next one determines from each row whether the change was made.
 */
export async function applyOperations(
  context: AdoptedContext,
  tasks: readonly RowTask[],
): Promise<boolean[]> {
  const done: boolean[] = []
  while (done.length < tasks.length)
    done.push(...(await applyFirst(context, tasks.slice(done.length))))
  return done
}

/** Applies as many as there is time for, at least one. */
async function applyFirst(context: AdoptedContext, tasks: readonly RowTask[]): Promise<boolean[]> {
  const { adopted } = context
  const intents = tasks.map(toIntent)
  const until = performance.now() + BATCH_MS
  await adopted.recordIntents(intents)
  const attempts: Attempt[] = []
  for (const [at, task] of tasks.entries()) {
    if (at > 0 && performance.now() > until) break
    attempts.push(await attempt(task, intents[at]!))
  }
  const conclusions = intents.flatMap(({ id }, at) => {
    const { changed = null, error } = attempts[at] ?? {}
    // A rejected write did not happen. After any other error the outcome is unknown.
    const isKnown =
      error === undefined || error instanceof RefusedError || error instanceof UsageError
    return isKnown ? [{ id, isDone: changed !== null }] : []
  })
  const concluded = await adopted.concludeIntents(conclusions)
  const concludedIds = new Set(conclusions.filter((_, at) => concluded[at]).map(({ id }) => id))
  for (const one of attempts) await finishAttempt(context, one, concludedIds.has(one.intent.id))
  return attempts.map(({ changed }) => changed !== null)
}

/** The outcome of a task. */
type Attempt = RowTask & {
  readonly intent: NewIntent
  /** Null: the row had changed, or there is an error. */
  readonly changed: AdoptedRow | null
  readonly error?: unknown
}

async function attempt(task: RowTask, intent: NewIntent): Promise<Attempt> {
  const { resolved, operation } = task
  try {
    const { table, row } = resolved
    const { change } = operation
    const isDeleted = change === 'delete' && (await table.delete(row))
    const changed = change !== 'delete' ? await table.change(row, change) : isDeleted ? row : null
    if (!changed) await throwIfUnchanged(resolved)
    return { ...task, intent, changed }
  } catch (error) {
    return { ...task, intent, changed: null, error }
  }
}

/** If the row is unchanged after an UPDATE without effect, a trigger or rule of the table ignores the change. */
async function throwIfUnchanged({ table, row }: RowTask['resolved']): Promise<void> {
  const now = await table.row(row.key)
  if (now === null || hashRow(now) !== hashRow(row)) return
  throw new RefusedError(
    `Row ${sanitizeLine(row.key)} of ${table.mapping.name} has not changed, although the database accepted the change: check the table for a trigger or a rule that ignores it, ` +
      'or for another row with the same id.',
  )
}

/** Makes sure that an applied change is recorded and resumed; throws or logs the error of a failed one. */
async function finishAttempt(
  context: AdoptedContext,
  { resolved, operation, intent, changed, error }: Attempt,
  isConcluded: boolean,
): Promise<void> {
  const { rows, resumeHooks } = context
  if (error !== undefined) {
    if (!operation.isAutomatic) throw error
    rows.logOnce(`${operation.action} of ${describeOrigin(intent.ref)}: ${messageOf(error)}`)
  }
  if (!changed) return
  const { mapping } = resolved.table
  const isOurs = isConcluded || (await recordAgain(context, intent))
  if (isOurs && isResume(mapping, intent.entry)) resumeHooks.start(mapping, changed)
}

/**
 * Records a change whose intent another process has concluded meanwhile, because this process was too slow. Returns false
 * if the other process has recorded the change and resumed the row.
 */
async function recordAgain(
  { store, adopted }: AdoptedContext,
  intent: NewIntent,
): Promise<boolean> {
  for (let tries = 1; tries <= RECORD_ATTEMPTS; tries++) {
    const entry = (await auditOf(store, intent)).find(
      ({ before }) => (before as { intent?: Id } | null)?.intent === intent.id,
    )
    if (entry) return isUncertain(entry)
    await adopted.recordIntents([intent])
    if (await conclude(adopted, intent, true)) return true
  }
  return true
}

export async function conclude(
  adopted: AdoptedStore,
  { id }: NewIntent,
  isDone: IntentResult['isDone'],
): Promise<boolean> {
  return (await adopted.concludeIntents([{ id, isDone }]))[0]!
}

/** Returns the audit entries of the row, newest first. */
export function auditOf(
  store: Store,
  { entry: { run, target } }: NewIntent,
): Promise<AuditEntry[]> {
  const of = { ...(run !== null && { run }), ...(target !== null && { target }) }
  return store.audit({ ...of, newestFirst: true, limit: AUDIT_MAX })
}

function isUncertain({ after }: Pick<AuditEntry, 'after'>): boolean {
  return (after as { unsure?: unknown } | null)?.unsure === true
}

function toIntent({ resolved, operation }: RowTask): NewIntent {
  const { row, run, target } = resolved
  const { mapping } = resolved.table
  const { actor, action, because, evidence, change, reopens = false } = operation
  const isRun = operation.target === null
  const snapshot = change === 'delete' ? row.snapshot : snapshotBefore(mapping, row, change)
  const id = newId()
  const ref = { table: mapping.name, key: row.key }
  const entry = {
    actor,
    action,
    because,
    evidence,
    source: run.source,
    run: run.id,
    target: operation.target,
    before: {
      status: isRun ? run.status : target.status,
      ...operation.before,
      statusValue: row.status,
      ...ref,
      kind: mapping.kind,
      snapshot: encodeSnapshot(snapshot),
      intent: id,
    },
    after: change === 'delete' ? { status: 'deleted' } : valuesAfter(resolved, operation, change),
  }
  return { id, row: mapping.kind === 'runs' ? run.id : target.id, ref, entry, reopens }
}

function valuesAfter(
  { table: { mapping }, row }: RowTask['resolved'],
  operation: RowOperation,
  change: RowChange,
): Record<string, unknown> {
  const { restore = {} } = change
  const status = change.status ?? String(restore[mapping.columns.status] ?? row.status)
  const error = change.error === undefined ? restore[mapping.columns.error ?? ''] : change.error
  const hasError = error === undefined ? row.hasError : Boolean(error)
  return {
    status: statusRecorded(mapping, { status, hasError }, operation),
    ...operation.after,
    statusValue: status,
    ...writtenValues(mapping, change),
  }
}

/** Returns the status of a row for the audit trail. `target` is null in the entry of a run. */
export function statusRecorded(
  mapping: Mapping,
  row: RowStatus,
  { target }: Pick<RowOperation, 'target'>,
): RunStatus | TargetStatus {
  return target === null ? runStatusOf(mapping, row) : targetStatusOf(mapping, row)
}

/** Returns whether the operation put the row back in the queue. A reverted row is not resumed. */
export function isResume(mapping: Mapping, { action, after }: NewIntent['entry']): boolean {
  const { statusValue } = after as { statusValue?: unknown }
  return action !== 'revert' && typeof statusValue === 'string' && isWaiting(mapping, statusValue)
}
