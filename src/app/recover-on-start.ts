import { runName } from '../core/model/traits.ts'
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ErrorJson } from '../core/model/error-data.ts'
import { messageOf, StoreUnavailableError, toUnstuckError } from '../core/model/errors.ts'
import { checkCall, BOOLEAN, FUNCTION, optional, type Fields } from '../core/model/fields.ts'
import { DURATION } from '../lib/validate/fields.ts'
import { formatAge, formatDoneOfTotal, howFar } from '../presenters/format.ts'
import { humanizeDuration, parseDuration, type Duration } from '../core/model/time.ts'
import type { Verdict } from '../core/model/verdict.ts'
import { safeText } from '../lib/text/safe-text.ts'
import { TIMER_MAX_MS } from '../core/host/clock.ts'
import { databaseAddress, databaseExists } from '../lib/files/config-file.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import { recover } from '../core/recovery/recover.ts'
import type { Store } from '../core/store/store.ts'
import type * as records from '../presenters/records.ts'
import type * as results from '../presenters/results.ts'
import { assessedRunView, recoveredLine, verdictLine, verdictView } from '../presenters/verdict.ts'
import { DATABASE_FIELDS, loadSettings, type DatabaseOptions } from './config.ts'
import { contextFor } from './open-context.ts'
import { openAll } from './open-database.ts'

/** Options of `recoverOnStart`. */
export type RecoverOnStartOptions = DatabaseOptions & {
  /** After this long it returns what it has seen so far, and begins nothing new. @default '30s' */
  timeout?: Duration | undefined
  /** Gets each live run and each verdict as a line. @default stdout */
  log?: ((line: string) => unknown) | undefined
  /** Reports what would be done and changes nothing. @default false */
  dryRun?: boolean | undefined
}

/** What `recoverOnStart` returns. */
export type StartReport = {
  /** Every live run, as it was found. */
  readonly active: readonly records.AssessedRun[]
  /** What was decided about them. */
  readonly verdicts: readonly results.Verdict[]
  /** Why it did not finish; null if it did. Runs and verdicts up to then are above. */
  readonly error: ErrorJson | null
}

type Progress = { readonly active: AssessedRun[]; readonly verdicts: results.Verdict[] }

const TIMEOUT_MS = 30_000

const OPTIONS: Fields = {
  ...DATABASE_FIELDS,
  timeout: optional(DURATION),
  log: optional(FUNCTION),
  dryRun: optional(BOOLEAN),
}

/**
 * Recovers what is dead when a server starts, and logs it. Do not await it: it runs beside the start, and never throws.
 * @example void recoverOnStart()
 */
export async function recoverOnStart(options: RecoverOnStartOptions = {}): Promise<StartReport> {
  const log = safeLog(typeof options?.log === 'function' ? options.log : toStdout)
  const timeoutMs = parseDuration(options?.timeout) ?? TIMEOUT_MS
  const progress: Progress = { active: [], verdicts: [] }
  const deadline = new AbortController()
  try {
    checkCall('recoverOnStart()', options, OPTIONS)
    await withTimeout(timeoutMs, recoverOnce(options, log, progress, deadline.signal))
    return reportOf(progress, null)
  } catch (error) {
    deadline.abort()
    log(`recovery at the start did not finish: ${messageOf(error)}`)
    if (progress.verdicts.length > 0) log(recoveredLine(progress.verdicts))
    return reportOf(progress, toUnstuckError(error).toJSON())
  }
}

function reportOf({ active, verdicts }: Progress, error: ErrorJson | null): StartReport {
  return { active: active.map(assessedRunView), verdicts, error }
}

async function recoverOnce(
  { db, config, dryRun = false }: RecoverOnStartOptions,
  log: (line: string) => void,
  progress: Progress,
  deadline: AbortSignal,
): Promise<void> {
  const settings = await loadSettings(process.cwd(), config)
  const address = databaseAddress(db, settings)
  if (settings.tables.length === 0 && !databaseExists(address))
    return log('nothing has run yet: there is nothing to recover')
  const store = await openAll({ settings, address, log })
  try {
    const actor = `start of process ${process.pid} on ${hostname()}`
    const context = contextFor(stopAtDeadline(store, deadline), settings, actor)
    const reportVerdicts = (verdicts: readonly Verdict[]): void => {
      for (const verdict of verdicts.map((one) => verdictView(one, !dryRun))) {
        if (progress.verdicts.some((one) => isSameVerdict(one, verdict))) continue
        log(verdictLine(verdict))
        progress.verdicts.push(verdict)
      }
    }
    const first = await recover(context, { dryRun, runs: dryRun || isPastGrace })
    const { runs: active } = first.assessment
    for (const assessed of active) log(describeRun(assessed))
    if (active.length === 0) log('no run is active')
    progress.active.push(...active)
    reportVerdicts(first.verdicts)
    if (dryRun) return throwIfUnreadable(store)
    // Runs without a known owner get time for their first heartbeat: other processes start at the same moment.
    const graces = active
      .filter((one) => !one.owner && !isPastGrace(one))
      .map(({ policy }) => policy.startupGraceMs)
    await sleep(Math.max(0, ...graces), undefined, { ref: false, signal: deadline })
    reportVerdicts((await recover(context)).verdicts)
    if (active.length > 0) log(recoveredLine(progress.verdicts))
    throwIfUnreadable(store)
  } finally {
    await store.close()
  }
}

/** Recovers tables that can be read. Reports the others, so that they do not seem fine. */
function throwIfUnreadable({ unreadable }: Store): void {
  if (unreadable.length === 0) return
  const tables = unreadable.map(({ table, because }) => `${table} cannot be read: ${because}`)
  throw new StoreUnavailableError(tables.join(' '))
}

/**
 * A row without a known owner sends no heartbeat when its process starts; this one has been idle for long
 * enough.
 */
function isPastGrace({ run, policy, evidence }: AssessedRun): boolean {
  const { staleAfterMs, startupGraceMs } = policy
  return (
    !run.traits.ownerIsKnown && (evidence.idleMs ?? 0) > (staleAfterMs ?? Infinity) + startupGraceMs
  )
}

/** The same verdict on the same run or target. An applied one is always new. */
function isSameVerdict(a: results.Verdict, b: results.Verdict): boolean {
  return (
    b.outcome !== 'applied' && a.run === b.run && a.target === b.target && a.action === b.action
  )
}

/** A change in progress finishes; after the deadline no other run is changed. */
function stopAtDeadline(store: Store, deadline: AbortSignal): Store {
  return {
    ...store,
    get unreadable() {
      return store.unreadable
    },
    async applyVerdicts(judgements, actor) {
      deadline.throwIfAborted()
      return store.applyVerdicts(judgements, actor)
    },
    async moveRun(move) {
      deadline.throwIfAborted()
      return store.moveRun(move)
    },
  }
}

export function toStdout(line: string): void {
  process.stdout.write(`[unstuck] ${safeText(line)}\n`)
}

/** A log that fails, now or later, must not stop a server. */
function safeLog(log: (line: string) => unknown): (line: string) => void {
  return (line) => void Promise.try(() => log(line)).catch(() => {})
}

function describeRun({ run, owner, evidence }: AssessedRun): string {
  const state = owner ? owner.assessment.because : 'no worker has it'
  return `run ${runName(run)} of ${run.source} is ${run.status}: ${formatDoneOfTotal(howFar(run))} done, ${formatAge(evidence.ageMs)} old; ${state}`
}

async function withTimeout<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () =>
      reject(
        new Error(
          `it took longer than ${humanizeDuration(ms)}; it is tried again at the next start`,
        ),
      ),
    Math.min(ms, TIMER_MAX_MS),
  )
  // The loser of the race must not end the process when it fails later.
  work.catch(() => {})
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
