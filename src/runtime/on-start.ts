import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../model/errors.ts'
import { shortId } from '../model/id.ts'
import { doneOf } from '../model/run.ts'
import { inWords, parseDuration, type Duration } from '../model/time.ts'
import { sayVerdict, type Verdict } from '../model/verdict.ts'
import { openStore } from '../store/open.ts'
import { databaseAddress } from './config-file.ts'
import type { JudgedRun } from './judgement.ts'
import { recover, type Recovery } from './recovery.ts'

export type RecoverOnStartOptions = {
  /** `sqlite:PATH` or `postgres://…`; else UNSTUCK_DB, else `sqlite:.unstuck/unstuck.db`. */
  db?: string
  /** Recovery is given up after this long; the server has started anyhow. */
  timeout?: Duration
  /** Says each active run and each verdict. */
  log?: (line: string) => void
  /** Only look. */
  dryRun?: boolean
}

export type StartReport = {
  readonly active: readonly JudgedRun['run'][]
  readonly verdicts: readonly Verdict[]
  /** Why it did not come to its end; null when it did. */
  readonly error: string | null
}

const TIMEOUT_MS = 30_000

/**
 * For any server, when it starts: recovers what is dead, and says what it saw and did. Do not wait for it; it runs
 * beside the start, ends by itself, and never throws.
 */
export async function recoverOnStart(options: RecoverOnStartOptions = {}): Promise<StartReport> {
  const say = options.log ?? ((line: string) => process.stdout.write(`[unstuck] ${line}\n`))
  const log = (line: string): void => {
    try {
      say(line)
    } catch {
      // A log that fails must not stop a server.
    }
  }
  try {
    const recovery = await withinTime(
      parseDuration(options.timeout ?? TIMEOUT_MS) ?? TIMEOUT_MS,
      recoverAt(databaseAddress(options.db), options.dryRun ?? false, log),
    )
    const { active, verdicts } = recovery
    return { active: active.map(({ run }) => run), verdicts, error: null }
  } catch (error) {
    const message = messageOf(error)
    log(`recovery at the start did not come to its end: ${message}`)
    return { active: [], verdicts: [], error: message }
  }
}

async function recoverAt(
  address: string,
  dryRun: boolean,
  log: (line: string) => void,
): Promise<Recovery> {
  const store = await openStore(address, { connections: 2 })
  try {
    const door = { store, actor: `start of process ${process.pid} on ${hostname()}` }
    const first = await recover(door, { dryRun, runs: dryRun })
    for (const judged of first.active) log(describe(judged))
    if (first.active.length === 0) log('no run is active')
    for (const verdict of first.verdicts) log(sayVerdict(verdict))
    if (dryRun) return first
    // What has shown no sign at all may be about to: others start at the same moment.
    const graces = first.active.filter(({ owner }) => !owner).map(({ policy }) => policy.graceMs)
    await sleep(Math.max(0, ...graces), undefined, { ref: false })
    const { verdicts } = await recover(door)
    for (const verdict of verdicts) log(sayVerdict(verdict))
    return { active: first.active, verdicts: [...first.verdicts, ...verdicts] }
  } finally {
    await store.close()
  }
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
    ms,
  )
  // The loser of the race must not end the process when it fails later.
  work.catch(() => {})
  try {
    return await Promise.race([work, promise])
  } finally {
    clearTimeout(timer)
  }
}
