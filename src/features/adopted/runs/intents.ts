import { messageOf, Refused, UsageError } from '../../../core/model/errors.ts'
import { newId, type Id, type TargetId } from '../../../core/model/id.ts'
import { sayRow } from '../../../core/model/run.ts'
import type { AuditEntry, Deed, IntentEnd, NewIntent, Store } from '../../../core/store/store.ts'
import { inOneLine } from '../sanitize-line.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow, Change } from '../table/table.ts'
import { isPutBack } from './reading.ts'
import type { Resumption } from './resume-hooks.ts'
import type { Seen } from './row-run.ts'
import type { AdoptedRows } from './rows.ts'
import { keepStamp, sealOf, stampBefore, wroteOf } from './row-hash.ts'
import { runStatusOf, targetStatusOf } from './status-mapping.ts'

/** What of a table can be written to, and by whom. */
export type Desk = {
  /** Our own, for the trail. */
  readonly store: Store
  readonly rows: AdoptedRows
  readonly resumption: Resumption
}

/** Something that is to be done to a row, and how it is told in the trail. */
export type RowDeed = Deed & {
  readonly action: string
  readonly evidence: unknown
  readonly change: Change
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

const TRAIL_MAX = 1_000
const ENTER_TRIES = 5
/** So long rows are changed by the same intents: far from when others take these for left. */
const TOGETHER_MS = 5_000

/** A row that was seen, and what is to be done to it. */
export type Task = {
  readonly seen: Pick<Seen, 'table' | 'row' | 'run' | 'target'>
  readonly deed: RowDeed
}

/** Does one. False when somebody was faster. */
export async function carryOut(desk: Desk, seen: Task['seen'], deed: RowDeed): Promise<boolean> {
  return (await carryOutAll(desk, [{ seen, deed }]))[0]!
}

/**
 * Does each, if the row still is what was seen: then it is in the trail, once, and what went back in line is started.
 * Answers which were done. Two databases have no transaction in common, so the intents come first: whoever dies in
 * between leaves them to the next one, who sees by each row what became of it.
 */
export async function carryOutAll(desk: Desk, tasks: readonly Task[]): Promise<boolean[]> {
  const done: boolean[] = []
  while (done.length < tasks.length)
    done.push(...(await carryOutFirst(desk, tasks.slice(done.length))))
  return done
}

/** As many of them as there is time for, at least one. */
async function carryOutFirst(desk: Desk, tasks: readonly Task[]): Promise<boolean[]> {
  const { store } = desk
  const intents = tasks.map(intentOf)
  const until = performance.now() + TOGETHER_MS
  await store.intend(intents)
  const attempts: Attempt[] = []
  for (const [at, task] of tasks.entries()) {
    if (at > 0 && performance.now() > until) break
    attempts.push(await attempt(task, intents[at]!))
  }
  const ends = intents.flatMap(({ id }, at) => {
    const { changed = null, error } = attempts[at] ?? {}
    // What the database says no to was not done; after anything else nobody knows yet.
    const isKnown = error === undefined || error instanceof Refused || error instanceof UsageError
    return isKnown ? [{ id, isDone: changed !== null }] : []
  })
  const answers = await store.concludeIntents(ends)
  const ours = new Set(ends.filter((_, at) => answers[at]).map(({ id }) => id))
  for (const one of attempts) await followUp(desk, one, ours.has(one.intent.id))
  return attempts.map(({ changed }) => changed !== null)
}

/** What came of a task. */
type Attempt = Task & {
  readonly intent: NewIntent
  /** Null: somebody was faster, or there is an error. */
  readonly changed: AdoptedRow | null
  readonly error?: unknown
}

async function attempt(task: Task, intent: NewIntent): Promise<Attempt> {
  const { seen, deed } = task
  try {
    const changed = await seen.table.change(seen.row, deed.change)
    if (!changed) await refuseIfSame(seen)
    return { ...task, intent, changed }
  } catch (error) {
    return { ...task, intent, changed: null, error }
  }
}

/** Nobody was faster where the row is as it was: then the table itself lets the change pass. */
async function refuseIfSame({ table, row }: Task['seen']): Promise<void> {
  const now = await table.row(row.key)
  if (now === null || sealOf(now) !== sealOf(row)) return
  throw new Refused(
    `Row ${inOneLine(row.key)} of ${table.mapping.name} is as it was, although the database took the change: does a trigger or a rule of the table keep it so, ` +
      'or is its id another row’s too?',
  )
}

/** Of what was done, that it is in the trail and started; of what the database threw, who hears of it. */
async function followUp(
  { store, rows, resumption }: Desk,
  { seen, deed, intent, changed, error }: Attempt,
  isConcluded: boolean,
): Promise<void> {
  if (error !== undefined) {
    if (!deed.isAutomatic) throw error
    rows.sayOnce(`${deed.action} of ${sayRow(intent.ref)}: ${messageOf(error)}`)
  }
  if (!changed) return
  const { mapping } = seen.table
  const isOurs = isConcluded || (await enterAgain(store, intent))
  if (isOurs && isResumption(mapping, intent.entry)) resumption.start(mapping, changed)
}

/**
 * The deed is done, and is in the trail afterwards. Who was slower than others wait for finds its intent settled by one of
 * them: if they saw nothing of it yet, it is entered all the same. False when they have entered it, and started the row.
 */
async function enterAgain(store: Store, intent: NewIntent): Promise<boolean> {
  for (let tries = 1; tries <= ENTER_TRIES; tries++) {
    const entry = (await trailOf(store, intent)).find(
      ({ before }) => (before as { intent?: Id } | null)?.intent === intent.id,
    )
    if (entry) return isUnsure(entry)
    await store.intend([intent])
    if (await conclude(store, intent, true)) return true
  }
  return true
}

export async function conclude(
  store: Store,
  { id }: NewIntent,
  isDone: IntentEnd['isDone'],
): Promise<boolean> {
  return (await store.concludeIntents([{ id, isDone }]))[0]!
}

/** What was done to the row, newest first. */
export function trailOf(
  store: Store,
  { entry: { run, target } }: NewIntent,
): Promise<AuditEntry[]> {
  const of = { ...(run !== null && { run }), ...(target !== null && { target }) }
  return store.audit({ ...of, newestFirst: true, limit: TRAIL_MAX })
}

function isUnsure({ after }: Pick<AuditEntry, 'after'>): boolean {
  return (after as { unsure?: unknown } | null)?.unsure === true
}

function intentOf({ seen, deed }: Task): NewIntent {
  const { row, run, target } = seen
  const { mapping } = seen.table
  const { actor, action, because, evidence, change, reopens = false } = deed
  const isRun = deed.target === null
  const word = change.word ?? String(change.restore?.[mapping.columns.status] ?? row.word)
  const id = newId()
  const ref = { table: mapping.name, key: row.key }
  const entry = {
    actor,
    action,
    because,
    evidence,
    source: run.source,
    run: run.id,
    target: deed.target,
    before: {
      status: isRun ? run.status : target.status,
      ...deed.before,
      word: row.word,
      ...ref,
      stamp: keepStamp(stampBefore(mapping, row, change)),
      intent: id,
    },
    after: {
      status: isRun ? runStatusOf(mapping, word) : targetStatusOf(mapping, word),
      ...deed.after,
      word,
      ...wroteOf(mapping, change),
    },
  }
  return { id, row: mapping.kind === 'runs' ? run.id : target.id, ref, entry, reopens }
}

/** What is taken back is not started: it is as it was. */
export function isResumption(mapping: Mapping, { action, after }: NewIntent['entry']): boolean {
  const { word } = after as { word?: unknown }
  return action !== 'revert' && typeof word === 'string' && isPutBack(mapping, word)
}
