import { hostname } from 'node:os'
import { withAdoptedTables } from '../../features/adopted/adopted-store.ts'
import type { AdoptedOptions, Mapping } from '../../features/adopted/mapping.ts'
import {
  AlreadyDoneError,
  isUnusable,
  messageOf,
  NotFoundError,
  StoppingError,
  UsageError,
} from '../../core/model/errors.ts'
import type { UnstuckEvent } from '../../core/model/event.ts'
import { checkArgument, checkOptions, arrayOf, optional } from '../../core/model/fields.ts'
import { newId } from '../../core/model/id.ts'
import { DEFAULT_POLICY, makePolicy, type PolicyOptions } from '../../core/model/policy.ts'
import type { Run } from '../../core/model/run.ts'
import { checkSource } from '../../core/model/source.ts'
import type { Target } from '../../core/model/target.ts'
import { parseDuration, type Duration } from '../../core/model/time.ts'
import type { Verdict } from '../../core/model/verdict.ts'
import { openStore } from '../../core/store/open.ts'
import type { AuditEntry, AuditFilter, BeginRequest, Store } from '../../core/store/store.ts'
import { readAdopted } from '../../features/adopted/config.ts'
import { toCheck, toSummary, type Check, type Summary } from './results.ts'
import {
  AGE_FIELDS,
  BEGIN_FIELDS,
  checkBecause,
  checkRunId,
  HISTORY_FIELDS,
  ID_FIELD,
  OPEN_FIELDS,
  RECOVER_FIELDS,
  RESET_FIELDS,
  REWIND_FIELDS,
} from './options.ts'
import { cleanRun, cleanRuns, classifyRuns } from '../../core/recovery/clean.ts'
import { loadSettings } from '../../app/config.ts'
import type { Settings } from '../../contracts/settings.ts'
import { contextFor } from '../../app/open-context.ts'
import { configFolder, databaseAddress } from '../../lib/files/config-file.ts'
import { explainRun, explainTarget, type Explanation } from '../../presenters/explanation.ts'
import { adviseStart } from '../../core/recovery/advise-start.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import { recover, type RecoverOptions } from '../../core/recovery/recover.ts'
import { RunHandle } from '../../core/worker/run-handle.ts'
import { HeartbeatClient } from '../../core/heartbeat/client.ts'
import { heartbeatOptions, threadTransport } from '../../core/heartbeat/transport.ts'
import { beginRun, assertNotDone } from '../../core/worker/begin.ts'
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
  checkOptions('open()', options, OPEN_FIELDS)
  const { policy, mistakes } = makePolicy(options.policy, DEFAULT_POLICY)
  if (mistakes.length > 0)
    throw new UsageError(`open() cannot use this policy: ${mistakes.join('; ')}.`)
  const db = databaseAddress(options.db, { connections: options.connections })
  const tables = readAdoptedTables(options.adopted, db)
  const { overrides, policyOf } = await loadSettings(process.cwd())
  const worker = newId()
  const ownStore = await openStore(db, { writer: worker })
  const log = (message: string): void => options.onEvent?.({ type: 'store_error', message })
  const store = await withAdoptedTables(ownStore, tables, { address: db, log, policyOf })
  return new Unstuck(store, { ...options, ownStore, db, worker, policy, overrides, policyOf })
}

/** All mistakes at once. */
function readAdoptedTables(adopted: OpenOptions['adopted'], ownDb: string): Mapping[] {
  const mistakes: string[] = []
  const folder = configFolder(process.cwd())
  const tables = readAdopted(adopted, DEFAULT_POLICY, { folder, ownDb }, mistakes)
  if (mistakes.length > 0) {
    const list = mistakes.map((mistake) => `\n- ${mistake}`).join('')
    throw new UsageError(`open() cannot use these tables:${list}`)
  }
  return tables
}

type ResolvedOptions = Omit<OpenOptions, 'policy' | 'adopted'> & {
  db: string
  ownStore: Store
} & Pick<Settings, 'overrides' | 'policyOf'> &
  Pick<BeginRequest, 'worker' | 'policy'>

const HISTORY_MAX = 100

/** Checks, begins, recovers and sums up runs. */
export class Unstuck {
  /** With the rows of adopted tables, which are runs in it. */
  readonly store: Store
  readonly #options: ResolvedOptions
  readonly #handles = new Map<string, RunHandle>()
  #heartbeat: Promise<HeartbeatClient> | null = null
  /** The signal that came while a run was open. */
  #stopSignal: NodeJS.Signals | null = null

  constructor(store: Store, options: ResolvedOptions) {
    this.store = store
    this.#options = options
  }

  /** The pre-start check. It advises; `begin` decides, atomically. `age`: instead of the policy's `abandonAfter`. */
  async check(source: string, options: { age?: Duration } = {}): Promise<Check> {
    checkSource(source)
    checkOptions('check()', options, AGE_FIELDS)
    return toCheck(await adviseStart(this.#context, source, parseAge(options.age)))
  }

  /**
   * Starts or resumes the source's run, atomically; throws `AlreadyRunningError` when somebody lives and works on it. `once`:
   * throws `AlreadyDoneError` when a run of the source has succeeded, as for a job that a queue delivers twice.
   */
  async begin(source: string, options: { once?: boolean } = {}): Promise<RunHandle> {
    checkSource(source)
    checkOptions('begin()', options, BEGIN_FIELDS)
    const { once = false } = options
    if (this.#stopSignal) throw new StoppingError(this.#stopSignal)
    if (once) await assertNotDone(this.#options.ownStore, source)
    const heartbeat = await this.#ensureHeartbeat()
    const { worker, policy, ownStore: store, onEvent: emit } = this.#options
    const begun = await beginRun({ ...this.#context, store, heartbeat }, { source, worker, policy })
    const { claimId } = begun.claimed
    const onEnd = (): void => {
      heartbeat.released(claimId)
      this.#handles.delete(claimId)
      if (this.#handles.size === 0) this.#stopListening()
    }
    const handle = new RunHandle({ ...begun, store, heartbeat, onEnd, emit })
    if (this.#handles.size === 0) this.#listenForSignals()
    this.#handles.set(claimId, handle)
    if (once && !begun.resumed) await this.#cancelIfDone(handle)
    return handle
  }

  /** Another may have done it between our look and our claim; from here on ours keeps the others out. */
  async #cancelIfDone(handle: RunHandle): Promise<void> {
    try {
      await assertNotDone(this.#options.ownStore, handle.source)
    } catch (error) {
      if (error instanceof AlreadyDoneError)
        await cancel(this.#context, handle.id, messageOf(error))
      await handle.release()
      throw error
    }
  }

  /** Judges every run and claim and recovers what is dead. With `dryRun` it only says what it would do. */
  async recover(options: RecoverOptions = {}): Promise<Verdict[]> {
    checkOptions('recover()', options, RECOVER_FIELDS)
    const { worker } = this.#options
    return (await recover(this.#context, { ...options, self: worker })).verdicts
  }

  /** Every live run, by what can be said about it now. */
  async summary(options: { age?: Duration } = {}): Promise<Summary> {
    checkOptions('summary()', options, AGE_FIELDS)
    return toSummary(await classifyRuns(this.#context, parseAge(options.age)))
  }

  /** Marks a dead run as abandoned, or all of them; refuses one that is not dead. Nothing is deleted. */
  async clean(run?: string, options: { age?: Duration } = {}): Promise<Verdict[]> {
    checkArgument('clean()', 'run', run, optional(ID_FIELD))
    checkOptions('clean()', options, AGE_FIELDS)
    const age = parseAge(options.age)
    if (run !== undefined) return [await cleanRun(this.#context, run, age)]
    return cleanRuns(this.#context, (await classifyRuns(this.#context, age)).dead)
  }

  /** The verdict on a run or a target, what it hangs on, and what would change it. */
  async explain(id: string): Promise<Explanation> {
    checkArgument('explain()', 'id', id, ID_FIELD)
    const run = await this.store.run(id)
    const explained = run ? explainRun(this.#context, run) : explainTarget(this.#context, id)
    return (await explained) ?? notFound(id)
  }

  /** Ends a live run. Whoever works on it stops at the end of the page in hand. */
  async cancel(run: string, because?: string): Promise<Run> {
    checkRunId('cancel()', run)
    checkBecause('cancel()', because)
    return cancel(this.#context, run, because)
  }

  /** Opens an ended run again: the next worker goes on from its cursors. */
  async resume(run: string): Promise<Run> {
    checkRunId('resume()', run)
    return (await resume(this.#context, run)).run
  }

  /** A new run that follows this one from nothing. */
  async retry(run: string): Promise<Run> {
    checkRunId('retry()', run)
    return retry(this.#context, run)
  }

  /** Takes back the last clean, cancel, fail or recovery of a run. */
  async revert(run: string): Promise<Run> {
    checkRunId('revert()', run)
    return (await revert(this.#context, run)).run
  }

  /** Failed targets of a run go on from their cursors. Answers how many. */
  async resetFailed(run: string, options: ResetOptions = {}): Promise<number> {
    checkRunId('resetFailed()', run)
    checkOptions('resetFailed()', options, RESET_FIELDS)
    return (await resetFailed(this.#context, run, options)).targets
  }

  /** Sets targets aside. Answers how many were open. */
  async park(targets: readonly string[], because?: string): Promise<number> {
    checkArgument('park()', 'targets', targets, arrayOf(ID_FIELD))
    checkBecause('park()', because)
    return (await park(this.#context, targets, because)).length
  }

  /** Parked and held targets of a run, or these of them, go on from their cursors. Answers how many. */
  async unpark(run: string, targets?: readonly string[]): Promise<number> {
    checkRunId('unpark()', run)
    checkArgument('unpark()', 'targets', targets, optional(arrayOf(ID_FIELD)))
    return (await unpark(this.#context, run, { targets })).targets
  }

  /** The one way a cursor goes back. */
  async rewind(target: string, options: RewindOptions): Promise<Target> {
    checkArgument('rewind()', 'target', target, ID_FIELD)
    checkOptions('rewind()', options, REWIND_FIELDS)
    return rewind(this.#context, target, options)
  }

  /** What was done, newest first: by whom, when, why, and what was before and after. */
  async history(filter: Partial<AuditFilter> = {}): Promise<AuditEntry[]> {
    checkOptions('history()', filter, HISTORY_FIELDS)
    return this.store.audit({ newestFirst: true, limit: HISTORY_MAX, ...filter })
  }

  /** Hands back what is still open and lets go of everything. */
  async close(): Promise<void> {
    try {
      await Promise.all([...this.#handles.values()].map((handle) => handle.release()))
    } finally {
      this.#stopListening()
      process.off('beforeExit', this.#onBeforeExit)
      await this.#heartbeat?.then((heartbeat) => heartbeat.stop())
      await this.store.close()
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  get #context(): OperatorContext {
    return contextFor(this.store, this.#options, `process ${process.pid} on ${hostname()}`)
  }

  /** Started by the first who needs it; the others wait for the same. */
  #ensureHeartbeat(): Promise<HeartbeatClient> {
    this.#heartbeat ??= this.#startHeartbeat().catch((error: unknown) => {
      this.#heartbeat = null
      throw error
    })
    return this.#heartbeat
  }

  async #startHeartbeat(): Promise<HeartbeatClient> {
    const { db, worker, policy, overrides, onEvent } = this.#options
    const options = heartbeatOptions(worker, '', policy, overrides)
    const heartbeat = new HeartbeatClient(threadTransport(db, options), policy, {
      emit: (event) => onEvent?.(event),
      onLost: (claims) => claims.forEach((id) => this.#handles.get(id)?.loseLease()),
      onCancelled: (claims) =>
        claims.forEach((id) => this.#handles.get(id)?.stop('the run was cancelled')),
      onFatal: (error) =>
        this.#handles.forEach((handle) =>
          isUnusable(error) ? handle.loseStore(error) : handle.stop(error.message),
        ),
    })
    await heartbeat.started()
    process.once('beforeExit', this.#onBeforeExit)
    return heartbeat
  }

  /** Only while a run is open: without one a signal does what it would do without us. */
  #listenForSignals(): void {
    if (this.#options.signals === false) return
    process.on('SIGTERM', this.#onSignal)
    process.on('SIGINT', this.#onSignal)
  }

  #stopListening(): void {
    process.off('SIGTERM', this.#onSignal)
    process.off('SIGINT', this.#onSignal)
  }

  /** Each run's signal fires; a second one does what it would do without us. */
  readonly #onSignal = (signal: NodeJS.Signals): void => {
    this.#stopListening()
    this.#stopSignal = signal
    this.#handles.forEach((handle) => handle.stop(signal))
  }

  /** The program has nothing left to do and forgot to say goodbye. */
  readonly #onBeforeExit = (): void => {
    void this.close()
  }
}

function parseAge(age: Duration | undefined): number | undefined {
  if (age === undefined) return undefined
  return parseDuration(age) ?? undefined
}

function notFound(id: string): never {
  throw new NotFoundError(`run or target ${id}`, '`unstuck runs` lists runs.')
}
