import { hostname } from 'node:os'
import { adopt } from '../../features/adopted/adopt.ts'
import type { AdoptedOptions, Mapping } from '../../features/adopted/mapping.ts'
import {
  AlreadyDone,
  isUnusable,
  messageOf,
  NotFound,
  Stopping,
  UsageError,
} from '../../core/model/errors.ts'
import type { UnstuckEvent } from '../../core/model/event.ts'
import { checkArgument, checkOptions, listOf, optional } from '../../core/model/fields.ts'
import { newId } from '../../core/model/id.ts'
import { DEFAULT_POLICY, makePolicy, type PolicyOptions } from '../../core/model/policy.ts'
import type { Run } from '../../core/model/run.ts'
import { checkSource } from '../../core/model/source.ts'
import type { Target } from '../../core/model/target.ts'
import { parseDuration, type Duration } from '../../core/model/time.ts'
import type { Verdict } from '../../core/model/verdict.ts'
import { openStore } from '../../core/store/open.ts'
import type { AuditEntry, AuditFilter, BeginRequest, Store } from '../../core/store/store.ts'
import { VERSION } from '../../core/host/version.ts'
import { readAdopted } from '../../features/adopted/config.ts'
import { toCheck, toSummary, type Check, type Summary } from './results.ts'
import {
  AGE,
  BEGIN,
  checkBecause,
  checkRun,
  HISTORY,
  ID,
  OPEN,
  RECOVER,
  RESET,
  REWIND,
} from './options.ts'
import { clean, cleanAll, sumUp } from '../../core/recovery/clean.ts'
import { configFolder, databaseAddress } from '../../app/config-file.ts'
import { explainRun, explainTarget, type Explanation } from '../../presenters/explanation.ts'
import { caretaking } from '../../core/recovery/monitor.ts'
import { adviseStart } from '../../core/recovery/advise-start.ts'
import { recover, type Door, type RecoverOptions } from '../../core/recovery/recover.ts'
import { RunHandle } from '../../core/worker/run-handle.ts'
import { SignsOfLife } from '../../core/heartbeat/client.ts'
import { threadSeat } from '../../core/heartbeat/transport.ts'
import { beginRun, refuseIfDone } from '../../core/worker/begin.ts'
import {
  cancel,
  park,
  resetFailed,
  resume,
  retry,
  revert,
  rewind,
  unpark,
  type ResetOptions,
  type RewindOptions,
} from '../../core/recovery/operator-actions.ts'

export type OpenOptions = {
  /** `sqlite:PATH` or `postgres://…`. */
  db?: string
  /** PostgreSQL connections for work, 2 by default. The heartbeat has two more. */
  connections?: number
  /** For the runs begun here. */
  policy?: PolicyOptions
  /** Tables of your own, by a name for each: their rows are runs here, to look at and to recover. */
  adopted?: Readonly<Record<string, AdoptedOptions>> | undefined
  /** Hears everything that happens. */
  onEvent?: (event: UnstuckEvent) => void
  /** False: SIGTERM and SIGINT are none of its business. */
  signals?: boolean
}

/** Opens Unstuck for use in one's own code. */
export async function open(options: OpenOptions = {}): Promise<Unstuck> {
  checkOptions('open()', options, OPEN)
  const { policy, mistakes } = makePolicy(options.policy, DEFAULT_POLICY)
  if (mistakes.length > 0)
    throw new UsageError(`open() cannot use this policy: ${mistakes.join('; ')}.`)
  const db = databaseAddress(options.db, { connections: options.connections })
  const tables = readTables(options.adopted, db)
  const worker = newId()
  const own = await openStore(db, { writer: worker })
  const log = (message: string): void => options.onEvent?.({ type: 'store_trouble', message })
  const store = adopt(own, tables, { address: db, log })
  return new Unstuck(store, { ...options, own, db, worker, policy })
}

/** All mistakes at once. */
function readTables(adopted: OpenOptions['adopted'], own: string): Mapping[] {
  const mistakes: string[] = []
  const folder = configFolder(process.cwd())
  const tables = readAdopted(adopted, DEFAULT_POLICY, { folder, own }, mistakes)
  if (mistakes.length > 0) {
    const list = mistakes.map((mistake) => `\n- ${mistake}`).join('')
    throw new UsageError(`open() cannot use these tables:${list}`)
  }
  return tables
}

type Settled = Omit<OpenOptions, 'policy' | 'adopted'> & { db: string; own: Store } & Pick<
    BeginRequest,
    'worker' | 'policy'
  >

const HISTORY_MAX = 100

/** Checks, begins, recovers and sums up runs. */
export class Unstuck {
  /** With the rows of adopted tables, which are runs in it. */
  readonly store: Store
  readonly #options: Settled
  readonly #handles = new Map<string, RunHandle>()
  #life: Promise<SignsOfLife> | null = null
  /** The signal that came while a run was open. */
  #stoppedBy: NodeJS.Signals | null = null

  constructor(store: Store, options: Settled) {
    this.store = store
    this.#options = options
  }

  /** The pre-start check. It advises; `begin` decides, atomically. `age`: instead of the policy's `abandonAfter`. */
  async check(source: string, options: { age?: Duration } = {}): Promise<Check> {
    checkSource(source)
    checkOptions('check()', options, AGE)
    return toCheck(await adviseStart(this.#door, source, ageOf(options.age)))
  }

  /**
   * Starts or resumes the source's run, atomically; throws `AlreadyRunning` when somebody lives and works on it. `once`:
   * throws `AlreadyDone` when a run of the source has succeeded, as for a job that a queue delivers twice.
   */
  async begin(source: string, options: { once?: boolean } = {}): Promise<RunHandle> {
    checkSource(source)
    checkOptions('begin()', options, BEGIN)
    const { once = false } = options
    if (this.#stoppedBy) throw new Stopping(this.#stoppedBy)
    if (once) await refuseIfDone(this.#options.own, source)
    const life = await this.#signsOfLife()
    const { worker, policy, own } = this.#options
    const store = life.timed(own)
    const begun = await beginRun({ ...this.#door, store, life }, { source, worker, policy })
    const { claimId } = begun.claimed
    const onEnd = (): void => {
      life.ended(claimId)
      this.#handles.delete(claimId)
      if (this.#handles.size === 0) this.#ignoreSignals()
    }
    const { onEvent } = this.#options
    const handle = new RunHandle(store, begun.claimed, begun.resumed, onEnd, onEvent)
    if (this.#handles.size === 0) this.#hearSignals()
    this.#handles.set(claimId, handle)
    if (once && !begun.resumed) await this.#dropIfDone(handle)
    return handle
  }

  /** Another may have done it between our look and our claim; from here on ours keeps the others out. */
  async #dropIfDone(handle: RunHandle): Promise<void> {
    try {
      await refuseIfDone(this.#options.own, handle.source)
    } catch (error) {
      if (error instanceof AlreadyDone) await cancel(this.#door, handle.id, messageOf(error))
      await handle.release()
      throw error
    }
  }

  /** Judges every run and claim and recovers what is dead. With `dryRun` it only says what it would do. */
  async recover(options: RecoverOptions = {}): Promise<Verdict[]> {
    checkOptions('recover()', options, RECOVER)
    const { worker } = this.#options
    return (await recover(this.#door, { ...options, self: worker })).verdicts
  }

  /** Every live run, by what can be said about it now. */
  async summary(options: { age?: Duration } = {}): Promise<Summary> {
    checkOptions('summary()', options, AGE)
    return toSummary(await sumUp(this.#door, ageOf(options.age)))
  }

  /** Marks a dead run as abandoned, or all of them; refuses one that is not dead. Nothing is deleted. */
  async clean(run?: string, options: { age?: Duration } = {}): Promise<Verdict[]> {
    checkArgument('clean()', 'run', run, optional(ID))
    checkOptions('clean()', options, AGE)
    const age = ageOf(options.age)
    if (run !== undefined) return [await clean(this.#door, run, age)]
    return cleanAll(this.#door, (await sumUp(this.#door, age)).dead)
  }

  /** The verdict on a run or a target, what it hangs on, and what would change it. */
  async explain(id: string): Promise<Explanation> {
    checkArgument('explain()', 'id', id, ID)
    const run = await this.store.run(id)
    const explained = run ? explainRun(this.#door, run) : explainTarget(this.#door, id)
    return (await explained) ?? notFound(id)
  }

  /** Ends a live run. Whoever works on it stops at the end of the page in hand. */
  async cancel(run: string, because?: string): Promise<Run> {
    checkRun('cancel()', run)
    checkBecause('cancel()', because)
    return cancel(this.#door, run, because)
  }

  /** Opens an ended run again: the next worker goes on from its cursors. */
  async resume(run: string): Promise<Run> {
    checkRun('resume()', run)
    return (await resume(this.#door, run)).run
  }

  /** A new run that follows this one from nothing. */
  async retry(run: string): Promise<Run> {
    checkRun('retry()', run)
    return retry(this.#door, run)
  }

  /** Takes back the last clean, cancel, fail or recovery of a run. */
  async revert(run: string): Promise<Run> {
    checkRun('revert()', run)
    return (await revert(this.#door, run)).run
  }

  /** Failed targets of a run go on from their cursors. Answers how many. */
  async resetFailed(run: string, options: ResetOptions = {}): Promise<number> {
    checkRun('resetFailed()', run)
    checkOptions('resetFailed()', options, RESET)
    return (await resetFailed(this.#door, run, options)).targets
  }

  /** Sets targets aside. Answers how many were open. */
  async park(targets: readonly string[], because?: string): Promise<number> {
    checkArgument('park()', 'targets', targets, listOf(ID))
    checkBecause('park()', because)
    return (await park(this.#door, targets, because)).length
  }

  /** Parked and held targets of a run, or these of them, go on from their cursors. Answers how many. */
  async unpark(run: string, targets?: readonly string[]): Promise<number> {
    checkRun('unpark()', run)
    checkArgument('unpark()', 'targets', targets, optional(listOf(ID)))
    return (await unpark(this.#door, run, { targets })).targets
  }

  /** The one way a cursor goes back. */
  async rewind(target: string, options: RewindOptions): Promise<Target> {
    checkArgument('rewind()', 'target', target, ID)
    checkOptions('rewind()', options, REWIND)
    return rewind(this.#door, target, options)
  }

  /** What was done, newest first: by whom, when, why, and what was before and after. */
  async history(filter: Partial<AuditFilter> = {}): Promise<AuditEntry[]> {
    checkOptions('history()', filter, HISTORY)
    return this.store.audit({ newestFirst: true, limit: HISTORY_MAX, ...filter })
  }

  /** Hands back what is still open and lets go of everything. */
  async close(): Promise<void> {
    try {
      await Promise.all([...this.#handles.values()].map((handle) => handle.release()))
    } finally {
      this.#ignoreSignals()
      process.off('beforeExit', this.#onIdle)
      await this.#life?.then((life) => life.stop())
      await this.store.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  get #door(): Door {
    return { store: this.store, actor: `process ${process.pid} on ${hostname()}` }
  }

  /** Started by the first who needs it; the others wait for the same. */
  #signsOfLife(): Promise<SignsOfLife> {
    this.#life ??= this.#startLife().catch((error: unknown) => {
      this.#life = null
      throw error
    })
    return this.#life
  }

  async #startLife(): Promise<SignsOfLife> {
    const { db, worker, policy, onEvent } = this.#options
    const caretaker = { worker, source: '', version: VERSION, ...caretaking(policy) }
    const life = new SignsOfLife(threadSeat(db, caretaker), policy, {
      emit: (event) => onEvent?.(event),
      onLost: (claims) => claims.forEach((id) => this.#handles.get(id)?.lose()),
      onCancelled: (claims) =>
        claims.forEach((id) => this.#handles.get(id)?.stop('the run was cancelled')),
      onRecovered: () => {},
      onFatal: (error) =>
        this.#handles.forEach((handle) =>
          isUnusable(error) ? handle.loseStore(error) : handle.stop(error.message),
        ),
    })
    await life.started()
    process.once('beforeExit', this.#onIdle)
    return life
  }

  /** Only while a run is open: without one a signal does what it would do without us. */
  #hearSignals(): void {
    if (this.#options.signals === false) return
    process.on('SIGTERM', this.#onSignal)
    process.on('SIGINT', this.#onSignal)
  }

  #ignoreSignals(): void {
    process.off('SIGTERM', this.#onSignal)
    process.off('SIGINT', this.#onSignal)
  }

  /** Each run's signal fires; a second one does what it would do without us. */
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.#ignoreSignals()
    this.#stoppedBy = signal
    this.#handles.forEach((handle) => handle.stop(signal))
  }

  /** The program has nothing left to do and forgot to say goodbye. */
  readonly #onIdle = (): void => {
    void this.close()
  }
}

function ageOf(age: Duration | undefined): number | undefined {
  if (age === undefined) return undefined
  return parseDuration(age) ?? undefined
}

function notFound(id: string): never {
  throw new NotFound(`run or target ${id}`, '`unstuck runs` lists runs.')
}
