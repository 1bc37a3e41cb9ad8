import { messageOf, RefusedError, UsageError } from '../../../core/model/errors.ts'
import { newId, type Id, type TargetId } from '../../../core/model/id.ts'
import { describeRow } from '../../../core/model/run.ts'
import type {
  AuditEntry,
  AuditInfo,
  IntentResult,
  NewIntent,
  Store,
} from '../../../core/store/store.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow, RowChange } from '../table/table.ts'
import { isWaiting } from './row-queries.ts'
import type { ResumeHooks } from './callbacks.ts'
import type { ResolvedRow } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import { encodeSnapshot, hashRow, snapshotBefore, writtenValues } from './row-hash.ts'
import { runStatusOf, targetStatusOf } from './status-mapping.ts'

/** What of a table can be written to, and by whom. */
export type AdoptedContext = {
  /** Our own, for the trail. */
  readonly store: Store
  readonly rows: AdoptedRows
  readonly resumeHooks: ResumeHooks
}

/** Something that is to be done to a row, and how it is told in the trail. */
export type RowOperation = AuditInfo & {
  readonly action: string
  readonly evidence: unknown
  readonly change: RowChange
  /** Null: it is about the row as a run. */
  readonly target: TargetId | null
  /** What else the trail says of how it was, and is then. */
  readonly before?: Record<string, unknown>
  readonly after?: Record<string, unknown>
  /** A person opens it again: nothing automatic ends it until it has moved on. */
  readonly reopens?: boolean
  /** Nobody waits for an answer: what the user's database throws is logged, and stops nothing else. */
  readonly isAutomatic?: boolean
}

const AUDIT_MAX = 1_000
const RECORD_ATTEMPTS = 5
/** So long rows are changed by the same intents: far from when others take these for left. */
const BATCH_MS = 5_000

/** A row that was seen, and what is to be done to it. */
export type RowTask = {
  readonly resolved: Pick<ResolvedRow, 'table' | 'row' | 'run' | 'target'>
  readonly operation: RowOperation
}

/** Does one. False when somebody was faster. */
export async function applyOperation(
  context: AdoptedContext,
  resolved: RowTask['resolved'],
  operation: RowOperation,
): Promise<boolean> {
  return (await applyOperations(context, [{ resolved, operation }]))[0]!
}

/**
 * Does each, if the row still is what was seen: then it is in the trail, once, and what went back in line is started.
 * Answers which were done. Two databases have no transaction in common, so the intents come first: whoever dies in
 * between leaves them to the next one, who sees by each row what became of it.
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

/** As many of them as there is time for, at least one. */
async function applyFirst(context: AdoptedContext, tasks: readonly RowTask[]): Promise<boolean[]> {
  const { store } = context
  const intents = tasks.map(toIntent)
  const until = performance.now() + BATCH_MS
  await store.recordIntents(intents)
  const attempts: Attempt[] = []
  for (const [at, task] of tasks.entries()) {
    if (at > 0 && performance.now() > until) break
    attempts.push(await attempt(task, intents[at]!))
  }
  const conclusions = intents.flatMap(({ id }, at) => {
    const { changed = null, error } = attempts[at] ?? {}
    // What the database says no to was not done; after anything else nobody knows yet.
    const isKnown =
      error === undefined || error instanceof RefusedError || error instanceof UsageError
    return isKnown ? [{ id, isDone: changed !== null }] : []
  })
  const concluded = await store.concludeIntents(conclusions)
  const concludedIds = new Set(conclusions.filter((_, at) => concluded[at]).map(({ id }) => id))
  for (const one of attempts) await finishAttempt(context, one, concludedIds.has(one.intent.id))
  return attempts.map(({ changed }) => changed !== null)
}

/** What came of a task. */
type Attempt = RowTask & {
  readonly intent: NewIntent
  /** Null: somebody was faster, or there is an error. */
  readonly changed: AdoptedRow | null
  readonly error?: unknown
}

async function attempt(task: RowTask, intent: NewIntent): Promise<Attempt> {
  const { resolved, operation } = task
  try {
    const changed = await resolved.table.change(resolved.row, operation.change)
    if (!changed) await throwIfUnchanged(resolved)
    return { ...task, intent, changed }
  } catch (error) {
    return { ...task, intent, changed: null, error }
  }
}

/** Nobody was faster where the row is as it was: then the table itself lets the change pass. */
async function throwIfUnchanged({ table, row }: RowTask['resolved']): Promise<void> {
  const now = await table.row(row.key)
  if (now === null || hashRow(now) !== hashRow(row)) return
  throw new RefusedError(
    `Row ${sanitizeLine(row.key)} of ${table.mapping.name} is as it was, although the database took the change: does a trigger or a rule of the table keep it so, ` +
      'or is its id another row’s too?',
  )
}

/** Of what was done, that it is in the trail and started; of what the database threw, who hears of it. */
async function finishAttempt(
  { store, rows, resumeHooks }: AdoptedContext,
  { resolved, operation, intent, changed, error }: Attempt,
  isConcluded: boolean,
): Promise<void> {
  if (error !== undefined) {
    if (!operation.isAutomatic) throw error
    rows.logOnce(`${operation.action} of ${describeRow(intent.ref)}: ${messageOf(error)}`)
  }
  if (!changed) return
  const { mapping } = resolved.table
  const isOurs = isConcluded || (await recordAgain(store, intent))
  if (isOurs && isResume(mapping, intent.entry)) resumeHooks.start(mapping, changed)
}

/**
 * The deed is done, and is in the trail afterwards. Who was slower than others wait for finds its intent settled by one of
 * them: if they saw nothing of it yet, it is entered all the same. False when they have entered it, and started the row.
 */
async function recordAgain(store: Store, intent: NewIntent): Promise<boolean> {
  for (let tries = 1; tries <= RECORD_ATTEMPTS; tries++) {
    const entry = (await auditOf(store, intent)).find(
      ({ before }) => (before as { intent?: Id } | null)?.intent === intent.id,
    )
    if (entry) return isUncertain(entry)
    await store.recordIntents([intent])
    if (await conclude(store, intent, true)) return true
  }
  return true
}

export async function conclude(
  store: Store,
  { id }: NewIntent,
  isDone: IntentResult['isDone'],
): Promise<boolean> {
  return (await store.concludeIntents([{ id, isDone }]))[0]!
}

/** What was done to the row, newest first. */
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
  const statusValue =
    change.status ?? String(change.restore?.[mapping.columns.status] ?? row.status)
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
      snapshot: encodeSnapshot(snapshotBefore(mapping, row, change)),
      intent: id,
    },
    after: {
      status: isRun ? runStatusOf(mapping, statusValue) : targetStatusOf(mapping, statusValue),
      ...operation.after,
      statusValue,
      ...writtenValues(mapping, change),
    },
  }
  return { id, row: mapping.kind === 'runs' ? run.id : target.id, ref, entry, reopens }
}

/** What is taken back is not started: it is as it was. */
export function isResume(mapping: Mapping, { action, after }: NewIntent['entry']): boolean {
  const { statusValue } = after as { statusValue?: unknown }
  return action !== 'revert' && typeof statusValue === 'string' && isWaiting(mapping, statusValue)
}
