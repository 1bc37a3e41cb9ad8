import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf, StoreUnavailableError } from '../core/model/errors.ts'
import {
  checkCall,
  DURATION,
  BOOLEAN,
  FUNCTION,
  optional,
  type Fields,
} from '../core/model/fields.ts'
import { shortId } from '../core/model/id.ts'
import { progressOf, type Run } from '../core/model/run.ts'
import { humanizeDuration, parseDuration, type Duration } from '../core/model/time.ts'
import { formatVerdict, type Verdict } from '../core/model/verdict.ts'
import { safeText } from '../core/events/safe-text.ts'
import { TIMER_MAX_MS } from '../core/host/clock.ts'
import { databaseAddress, databaseExists } from '../lib/files/config-file.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import { recover } from '../core/recovery/recover.ts'
import type { Store } from '../core/store/store.ts'
import { DATABASE_FIELDS, loadSettings, type DatabaseOptions } from './config.ts'
import { contextFor } from './open-context.ts'
import { openAll } from './open-database.ts'

/** Options of `recoverOnStart`. */
export type RecoverOnStartOptions = DatabaseOptions & {
  /** After this long it returns what it has seen so far, and begins nothing new. @default '30s' */
  timeout?: Duration | undefined
  /** Gets each active run and each verdict as a line. @default stdout */
  log?: ((line: string) => unknown) | undefined
  /** Reports what would be done and changes nothing. @default false */
  dryRun?: boolean | undefined
}

export type StartReport = {
  /** Every live run, as it was found. */
  readonly active: readonly Run[]
  readonly verdicts: readonly Verdict[]
  /** Why it did not come to its end; null when it did. */
  readonly error: string | null
}

const TIMEOUT_MS = 30_000

const OPTIONS: Fields = {
  ...DATABASE_FIELDS,
  timeout: optional(DURATION),
  log: optional(FUNCTION),
  dryRun: optional(BOOLEAN),
}

/**
 * For any server, when it starts: recovers what is dead, and says what it saw and did, by the `unstuck.config.ts` of
 * the folder that it starts in. Do not wait for it; it runs beside the start, ends by itself, and never throws.
 */
export async function recoverOnStart(options: RecoverOnStartOptions = {}): Promise<StartReport> {
  const log = safeLog(typeof options?.log === 'function' ? options.log : toStdout)
  const timeoutMs = parseDuration(options?.timeout) ?? TIMEOUT_MS
  // What was seen and done so far is told, however it ends.
  const report: { active: Run[]; verdicts: Verdict[] } = { active: [], verdicts: [] }
  const deadline = new AbortController()
  try {
    checkCall('recoverOnStart()', options, OPTIONS)
    await withTimeout(timeoutMs, recoverOnce(options, log, report, deadline.signal))
    return { ...report, error: null }
  } catch (error) {
    deadline.abort()
    const message = messageOf(error)
    log(`recovery at the start did not come to its end: ${message}`)
    return { active: [...report.active], verdicts: [...report.verdicts], error: message }
  }
}

async function recoverOnce(
  { db, config, dryRun = false }: RecoverOnStartOptions,
  log: (line: string) => void,
  report: { active: Run[]; verdicts: Verdict[] },
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
    const logVerdict = (verdicts: readonly Verdict[]): void => {
      const newVerdicts = verdicts.filter(
        (verdict) => !report.verdicts.some((one) => isSameVerdict(one, verdict)),
      )
      for (const verdict of newVerdicts) log(formatVerdict(verdict))
      report.verdicts.push(...newVerdicts)
    }
    const first = await recover(context, { dryRun, runs: dryRun || isPastGrace })
    const { runs: active } = first.assessment
    for (const assessed of active) log(describeRun(assessed))
    if (active.length === 0) log('no run is active')
    report.active.push(...active.map(({ run }) => run))
    logVerdict(first.verdicts)
    if (dryRun) return throwIfUnreadable(store)
    // What has shown no sign at all may be about to: others start at the same moment.
    const graces = active
      .filter((one) => !one.owner && !isPastGrace(one))
      .map(({ policy }) => policy.startupGraceMs)
    await sleep(Math.max(0, ...graces), undefined, { ref: false, signal: deadline })
    logVerdict((await recover(context)).verdicts)
    throwIfUnreadable(store)
  } finally {
    await store.close()
  }
}

/** What can be seen is recovered all the same; of the rest nobody shall think that all is well. */
function throwIfUnreadable({ unreadable }: Store): void {
  if (unreadable.length === 0) return
  const tables = unreadable.map(({ table, because }) => `${table} cannot be read: ${because}`)
  throw new StoreUnavailableError(tables.join(' '))
}

/** A row whose owner nobody knows shows no sign when its process starts; it has been still for long enough already. */
function isPastGrace({ run, policy, evidence }: AssessedRun): boolean {
  const { staleAfterMs, startupGraceMs } = policy
  return run.adopted !== undefined && evidence.idleMs > (staleAfterMs ?? Infinity) + startupGraceMs
}

/** The same word about the same thing; what was done is always news. */
function isSameVerdict(a: Verdict, b: Verdict): boolean {
  return !b.applied && a.run === b.run && a.target === b.target && a.action === b.action
}

/** What is under way comes to its end; nothing is done to another run after that. */
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

function toStdout(line: string): void {
  process.stdout.write(`[unstuck] ${safeText(line)}\n`)
}

/** A log that fails, now or later, must not stop a server. */
function safeLog(log: (line: string) => unknown): (line: string) => void {
  return (line) => void Promise.try(() => log(line)).catch(() => {})
}

function describeRun({ run, owner, evidence }: AssessedRun): string {
  const { done, total } = progressOf(run)
  const who = owner ? owner.assessment.because : 'no worker has it'
  return `run ${shortId(run.id)} of ${run.source} is ${run.status}: ${done}/${total} done, ${humanizeDuration(evidence.ageMs)} old; ${who}`
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
