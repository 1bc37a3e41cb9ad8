import { decideStart, type StartAction } from '../decide/start.ts'
import { STEADY } from '../decide/sign.ts'
import { AlreadyRunning, Stopping, UsageError } from '../model/errors.ts'
import type { UnstuckEvent } from '../model/event.ts'
import { newId } from '../model/id.ts'
import { DEFAULT_POLICY, makePolicy, type PolicyOptions } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import { inWords } from '../model/time.ts'
import type { Verdict } from '../model/verdict.ts'
import { openStore } from '../store/open.ts'
import type { BeginRequest, Store } from '../store/store.ts'
import { VERSION } from '../version.ts'
import { absoluteAddress, configFolder } from './config-file.ts'
import { isSourceName } from './crawl.ts'
import { hasProgress, judgeRun, type JudgedRun } from './judgement.ts'
import { RunHandle } from './run-handle.ts'
import { SignsOfLife } from './signs-of-life.ts'
import { sweep } from './sweep.ts'

export type OpenOptions = {
  /** `sqlite:PATH` or `postgres://…`. */
  db?: string
  /** For the runs begun here. */
  policy?: PolicyOptions
  /** Hears everything that happens. */
  onEvent?: (event: UnstuckEvent) => void
  /** False: SIGTERM and SIGINT are none of its business. */
  signals?: boolean
}

export type Check = { action: StartAction; run?: Run; because: string }

export type Summary = {
  total: number
  /** At work now. */
  active: Run[]
  /** Nobody is at work, and there is something to go on from. */
  resumable: Run[]
  /** Nobody is at work, nothing was done, and the policy's time is over. */
  dead: Run[]
}

/** Opens Unstuck for use in one's own code. */
export async function open(options: OpenOptions = {}): Promise<Unstuck> {
  const { policy, mistakes } = makePolicy(options.policy, DEFAULT_POLICY)
  if (mistakes.length > 0)
    throw new UsageError(`open() cannot use this policy: ${mistakes.join('; ')}.`)
  const given = options.db ?? process.env['UNSTUCK_DB'] ?? 'sqlite:.unstuck/unstuck.db'
  const db = absoluteAddress(given, configFolder(process.cwd()))
  const worker = newId()
  return new Unstuck(await openStore(db, { writer: worker }), { ...options, db, worker, policy })
}

type Settled = Omit<OpenOptions, 'policy'> & { db: string } & Pick<
    BeginRequest,
    'worker' | 'policy'
  >

const SUMMARY_MAX = 1_000
const BEGIN_TRIES = 5

/** Checks, begins, recovers and sums up runs. */
export class Unstuck {
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

  /** The pre-start check. It advises; `begin` decides, atomically. */
  async check(source: string): Promise<Check> {
    const run = await this.store.liveRun(source)
    if (!run) return decideStart(null, null)
    const { decision, owner } = await judgeRun(this.store, run)
    const live = { hasProgress: hasProgress(run), isHeld: owner !== null }
    return { ...decideStart(live, decision), run }
  }

  /** Starts or resumes the source's run, atomically; throws `AlreadyRunning` when somebody lives and works on it. */
  async begin(source: string): Promise<RunHandle> {
    if (!isSourceName(source)) {
      throw new UsageError('A source is a name of 1 to 200 characters without control characters.')
    }
    if (this.#stoppedBy) throw new Stopping(this.#stoppedBy)
    const life = await this.#signsOfLife()
    const { worker, policy } = this.#options
    const claimId = newId()
    const request = { source, worker, policy, run: newId(), target: newId(), claimId }
    life.asking([claimId])
    try {
      for (let tries = 1; ; tries++) {
        const begun = await this.store.begin(request)
        if (begun.claimed) {
          life.answered([claimId], [claimId])
          const handle = new RunHandle(this.store, begun.claimed, begun.resumed, () => {
            life.ended(claimId)
            this.#handles.delete(claimId)
            if (this.#handles.size === 0) this.#ignoreSignals()
          })
          if (this.#handles.size === 0) this.#hearSignals()
          this.#handles.set(claimId, handle)
          return handle
        }
        const run = await this.store.run(begun.inTheWay)
        if (run) await this.#clearTheWay(run, tries)
      }
    } catch (error) {
      life.answered([claimId], [])
      throw error
    }
  }

  /** Judges every worker and takes back what the dead held. With `dryRun` it only says what it would do. */
  async recover(options: { dryRun?: boolean } = {}): Promise<Verdict[]> {
    return sweep(this.store, {
      judge: STEADY,
      actor: 'library',
      self: this.#options.worker,
      dryRun: options.dryRun ?? false,
    })
  }

  /** Every live run, by what can be said about it now. */
  async summary(): Promise<Summary> {
    const summary: Summary = { total: 0, active: [], resumable: [], dead: [] }
    for (const status of ['queued', 'running', 'interrupted'] as const) {
      for (const run of (await this.store.runs({ status, limit: SUMMARY_MAX })).items) {
        summary.total++
        const { decision, owner } = await judgeRun(this.store, run)
        if (decision.action === 'abandon') summary.dead.push(run)
        else if (owner?.reading.sign === 'present' || status === 'queued') summary.active.push(run)
        else summary.resumable.push(run)
      }
    }
    return summary
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

  /** Someone holds the run: recover it if they are gone, else say who they are. */
  async #clearTheWay(run: Run, tries: number): Promise<void> {
    const judged = await judgeRun(this.store, run)
    const sign = judged.owner?.reading.sign
    const isLost = sign === 'gone' || sign === 'silent'
    if (run.kind === 'single' && isLost && tries < BEGIN_TRIES) {
      await this.recover()
      return
    }
    throw new AlreadyRunning(run.source, run.id, describeOwner(run, judged))
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
    const { heartbeatMs, leaseMs } = policy
    const life = new SignsOfLife(
      db,
      { worker, source: '', version: VERSION, heartbeatMs, leaseMs },
      {
        emit: (event) => onEvent?.(event),
        onLost: (claims) => claims.forEach((id) => this.#handles.get(id)?.lose()),
        onCancelled: (claims) =>
          claims.forEach((id) => this.#handles.get(id)?.stop('the run was cancelled')),
        onRecovered: () => {},
        onFatal: (error) => this.#handles.forEach((handle) => handle.stop(error.message)),
      },
    )
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

function describeOwner(run: Run, { owner, decision }: JudgedRun): string {
  if (!owner)
    return `${run.status}, last sign of life ${inWords(Date.now() - run.lastActivityAt)} ago`
  const since = run.startedAt ?? run.createdAt
  return `since ${new Date(since).toISOString()}, ${decision.because}`
}
