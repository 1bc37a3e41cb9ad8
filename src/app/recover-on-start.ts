import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { adopt } from '../features/adopted/adopt.ts'
import { messageOf, StoreUnavailable } from '../core/model/errors.ts'
import {
  ANYTHING,
  checkOptions,
  DURATION,
  FLAG,
  FUNCTION,
  optional,
  TEXT,
  type Fields,
} from '../core/model/fields.ts'
import { shortId } from '../core/model/id.ts'
import { doneOf, type Run } from '../core/model/run.ts'
import { inWords, parseDuration, type Duration } from '../core/model/time.ts'
import { sayVerdict, type Verdict } from '../core/model/verdict.ts'
import { safeText } from '../core/events/safe-text.ts'
import { TIMER_MAX_MS } from '../core/host/clock.ts'
import { databaseAddress, isDatabaseThere } from './config-file.ts'
import type { JudgedRun } from '../core/recovery/assess.ts'
import { recover } from '../core/recovery/recover.ts'
import { openStore } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { loadSettings, type Config } from './config.ts'

export type RecoverOnStartOptions = {
  /** `sqlite:PATH` or `postgres://…`; else UNSTUCK_DB, else that of `unstuck.config.ts`, else `sqlite:.unstuck/unstuck.db`. */
  db?: string | undefined
  /** Instead of the config's. */
  preset?: Config['preset']
  /** Tables of your own, beside those of the config. */
  adopted?: Config['adopted']
  /** After this long it answers with what it has seen so far, and begins nothing new. */
  timeout?: Duration | undefined
  /** Says each active run and each verdict. */
  log?: ((line: string) => unknown) | undefined
  /** Only look. */
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
  db: optional(TEXT),
  preset: optional(ANYTHING),
  adopted: optional(ANYTHING),
  timeout: optional(DURATION),
  log: optional(FUNCTION),
  dryRun: optional(FLAG),
}

/**
 * For any server, when it starts: recovers what is dead, and says what it saw and did, by the `unstuck.config.ts` of
 * the folder that it starts in. Do not wait for it; it runs beside the start, ends by itself, and never throws.
 */
export async function recoverOnStart(options: RecoverOnStartOptions = {}): Promise<StartReport> {
  const log = harmless(typeof options?.log === 'function' ? options.log : toStdout)
  const timeoutMs = parseDuration(options?.timeout ?? TIMEOUT_MS) ?? TIMEOUT_MS
  // What was seen and done so far is told, however it ends.
  const seen: { active: Run[]; verdicts: Verdict[] } = { active: [], verdicts: [] }
  const over = new AbortController()
  try {
    checkOptions('recoverOnStart()', options, OPTIONS)
    await withinTime(timeoutMs, recoverAt(options, log, seen, over.signal))
    return { ...seen, error: null }
  } catch (error) {
    over.abort()
    const message = messageOf(error)
    log(`recovery at the start did not come to its end: ${message}`)
    return { active: [...seen.active], verdicts: [...seen.verdicts], error: message }
  }
}

async function recoverAt(
  { db, preset, adopted, dryRun = false }: RecoverOnStartOptions,
  log: (line: string) => void,
  seen: { active: Run[]; verdicts: Verdict[] },
  over: AbortSignal,
): Promise<void> {
  const settings = await loadSettings(process.cwd(), { preset, adopted })
  const address = databaseAddress(db, settings)
  const tables = settings.adopted
  if (tables.length === 0 && !isDatabaseThere(address))
    return log('nothing has run yet: there is nothing to recover')
  const { policyOf } = settings
  const own = await openStore(address)
  const store = adopt(own, tables, { address, log, policyOf })
  try {
    const actor = `start of process ${process.pid} on ${hostname()}`
    const door = { store: whileInTime(store, over), actor, policyOf }
    const tell = (verdicts: readonly Verdict[]): void => {
      const news = verdicts.filter((verdict) => !seen.verdicts.some((one) => isSame(one, verdict)))
      for (const verdict of news) log(sayVerdict(verdict))
      seen.verdicts.push(...news)
    }
    const first = await recover(door, { dryRun, runs: dryRun || hasHadItsGrace })
    for (const judged of first.active) log(describe(judged))
    if (first.active.length === 0) log('no run is active')
    seen.active.push(...first.active.map(({ run }) => run))
    tell(first.verdicts)
    if (dryRun) return refuseIfAway(store)
    // What has shown no sign at all may be about to: others start at the same moment.
    const graces = first.active
      .filter((one) => !one.owner && !hasHadItsGrace(one))
      .map(({ policy }) => policy.graceMs)
    await sleep(Math.max(0, ...graces), undefined, { ref: false, signal: over })
    tell((await recover(door)).verdicts)
    refuseIfAway(store)
  } finally {
    await store.close()
  }
}

/** What can be seen is recovered all the same; of the rest nobody shall think that all is well. */
function refuseIfAway({ away }: Store): void {
  if (away.length === 0) return
  const tables = away.map(({ table, because }) => `${table} cannot be read: ${because}`)
  throw new StoreUnavailable(tables.join(' '))
}

/** A row whose owner nobody knows shows no sign when its process starts; it has been still for long enough already. */
function hasHadItsGrace({ run, policy, evidence }: JudgedRun): boolean {
  const { staleAfterMs, graceMs } = policy
  return run.adopted !== undefined && evidence.idleMs > (staleAfterMs ?? Infinity) + graceMs
}

/** The same word about the same thing; what was done is always news. */
function isSame(a: Verdict, b: Verdict): boolean {
  return !b.applied && a.run === b.run && a.target === b.target && a.action === b.action
}

/** What is under way comes to its end; nothing is done to another run after that. */
function whileInTime(store: Store, over: AbortSignal): Store {
  return {
    ...store,
    get away() {
      return store.away
    },
    async applyJudgements(judgements, actor) {
      over.throwIfAborted()
      return store.applyJudgements(judgements, actor)
    },
    async moveRun(move) {
      over.throwIfAborted()
      return store.moveRun(move)
    },
  }
}

function toStdout(line: string): void {
  process.stdout.write(`[unstuck] ${safeText(line)}\n`)
}

/** A log that fails, now or later, must not stop a server. */
function harmless(log: (line: string) => unknown): (line: string) => void {
  return (line) => void Promise.try(() => log(line)).catch(() => {})
}

function describe({ run, owner, evidence }: JudgedRun): string {
  const { done, total } = doneOf(run)
  const who = owner ? owner.reading.because : 'nobody works on it'
  return `run ${shortId(run.id)} of ${run.source} is ${run.status}: ${done}/${total} done, ${inWords(evidence.ageMs)} old; ${who}`
}

async function withinTime<T>(ms: number, work: Promise<T>): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(
    () =>
      reject(new Error(`it took longer than ${inWords(ms)}; it is tried again at the next start`)),
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
