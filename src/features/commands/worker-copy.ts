import { hostname } from 'node:os'
import { heartbeatOptions } from '../../core/heartbeat/transport.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { TRUSTED_OBSERVER } from '../../core/decide/liveness.ts'
import { messageOf, StoppingError, type UnstuckError } from '../../core/model/errors.ts'
import type { Emit } from '../../core/model/event.ts'
import { newId, shortId, type WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { makePolicyOf, type PolicyOverrides } from '../../core/model/policy-of.ts'
import type { Run } from '../../core/model/run.ts'
import { sweep } from '../../core/recovery/sweep.ts'
import { withRetry } from '../../core/store/open.ts'
import type { Store } from '../../core/store/store.ts'
import { createRunFolder } from '../../lib/files/data-folder.ts'
import type { CycleOptions } from './cycle.ts'
import { interpretExit, type CommandExit, type ExitOutcome, type StopReason } from './ending.ts'
import { commandEnvironment } from './environment.ts'
import type { RunApi } from './run-api/run-api.ts'
import { recordExecutionEnd, withStopDeadline } from './settle-run.ts'
import { COMMAND_STORE } from './store/store.ts'
import {
  NOT_STARTED,
  Watchdog,
  type CommandHandle,
  type CommandSpec,
  type ManagedProcessExit,
  type ProcessExit,
} from './watchdog.ts'
import { workerApi } from './worker-api/routes.ts'
import { WorkerSession } from './worker-api/worker-session.ts'

/** The settings of the copies of a command. */
export type CopyOptions = Pick<
  CycleOptions,
  | 'source'
  | 'command'
  | 'cwd'
  | 'env'
  | 'base'
  | 'killTimeoutMs'
  | 'maxMemoryBytes'
  | 'maxLogBytes'
  | 'quiet'
  | 'secrets'
> & {
  /** Shared by all copies, so that their pages are saved together. */
  readonly store: Store
  readonly db: string
  readonly policy: Policy
  readonly overrides: PolicyOverrides
  readonly api: Pick<RunApi, 'open'>
  /** Makes the journal of a worker, by its id and the pid of its watchdog. */
  readonly emitFor: (worker: WorkerId, pid: number) => Emit
  readonly log: (message: string) => void
  /** Fires when the copies are to finish their pages and end. */
  readonly stop: AbortSignal
  /** Fires when they are to be killed at once. */
  readonly force: AbortSignal
  /** Targets may have become claimable. */
  readonly onClaimable: () => void
  /** A command was started, or there is no run to work on yet. */
  readonly onReady: () => void
}

/** How a copy ended. */
export type CopyExit = ProcessExit & {
  readonly outcome: ExitOutcome
  readonly uptimeMs: number
  /** It called its API. */
  readonly hasCalled: boolean
  /** It saved a page or ended a target. */
  readonly hasProgressed: boolean
  /** Why another copy could not work either; null if it can. */
  readonly failure: UnstuckError | null
}

const MEASURE_MS = 5_000
const LIMITED_MEASURE_MS = 1_000
const SETTLE_TIMEOUT_MS = 10_000
const ATTEMPTS_MAX = 10

/**
 * One copy of a command that works on many targets: a worker of its own, from the start of its process to the end. Its
 * watchdog sends the heartbeats, and its session claims and saves in its name.
 */
export class WorkerCopy {
  readonly id: WorkerId = newId()
  readonly #options: CopyOptions
  readonly #run: Run
  readonly #emit: Emit
  readonly #stopping = new AbortController()
  readonly #watchdog: Watchdog
  readonly #session: WorkerSession
  #command: CommandHandle | null = null
  #stopReason: StopReason | null = null
  #failure: UnstuckError | null = null
  #settled: Promise<void> = Promise.resolve()
  #hasExited = false
  /** How many targets the command held when it ended. */
  #abandoned = 0
  #hasCalled = false

  constructor(run: Run, options: CopyOptions) {
    const { db, source, policy, overrides, store } = options
    this.#options = options
    this.#run = run
    const heartbeat = heartbeatOptions(this.id, source, policy, overrides)
    this.#watchdog = new Watchdog(db, heartbeat, {
      emit: (event) => this.#emit(event),
      onLost: (claims) => this.#session.held.dropClaims(claims),
      onCancelled: () => this.#stop({ why: 'cancelled' }),
      onPaused: (paused) => {
        if (paused) this.#stop({ why: 'asked', by: `a pause of ${source}` })
      },
      onRecovered: () => options.onClaimable(),
      onFatal: (error) => this.#onFatal(error),
    })
    this.#emit = options.emitFor(this.id, this.#watchdog.pid ?? process.pid)
    this.#session = new WorkerSession({
      store,
      worker: this.id,
      heartbeat: this.#watchdog.heartbeat,
      run,
      policy,
      emit: (event) => {
        this.#emit(event)
        // Released targets can be claimed, and the last one ends the run.
        if (/^target_(complete|error|released)$/.test(event.type)) options.onClaimable()
      },
      stopping: this.#stopping.signal,
    })
  }

  /** True while heartbeats are accepted. */
  get isHeartbeating(): boolean {
    return this.#watchdog.heartbeat.canClaim()
  }

  /** Targets may have become claimable. */
  wakeUp(): void {
    this.#session.wakeUp()
  }

  /** Runs the command until all its processes have ended and its claims are settled. */
  async run(): Promise<CopyExit> {
    const { stop, force, api, source } = this.#options
    const onStop = (): void => this.#stop({ why: 'asked', by: messageOf(stop.reason) })
    const onForce = (): void => this.#command?.terminate(true)
    stop.addEventListener('abort', onStop, { once: true })
    force.addEventListener('abort', onForce, { once: true })
    try {
      const presence = await this.#watchdog.heartbeat.started()
      if (stop.aborted) onStop()
      if (this.#stopReason) throw new StoppingError('the command was not started')
      const pid = this.#watchdog.pid ?? 0
      this.#emit({ type: 'worker_start', source, pid, presence: presence.kind })
      const endpoint = api.open(
        this.id,
        workerApi(this.#session, () => (this.#hasCalled = true)),
      )
      try {
        return await this.#runCommand(endpoint)
      } finally {
        endpoint.close()
      }
    } finally {
      stop.removeEventListener('abort', onStop)
      force.removeEventListener('abort', onForce)
      this.#session.close()
      await this.#settled
      await this.#session.idle()
      await this.#watchdog.stop()
      const because = this.#stopReason?.why === 'asked' ? this.#stopReason.by : 'its command ended'
      this.#emit({ type: 'worker_stop', reason: because })
    }
  }

  async #runCommand(endpoint: ReturnType<RunApi['open']>): Promise<CopyExit> {
    const { force } = this.#options
    const startedAt = REAL_CLOCK.now()
    const spec = await this.#startExecution(endpoint)
    this.#command = this.#watchdog.run(spec, {
      onMemory: (bytes) => this.#checkMemory(bytes),
      onReady: () => {},
      onTracked: () => {},
      onExit: (exit) => {
        this.#hasExited = true
        this.#abandoned = this.#session.held.size
        // Nothing more is written in its name, so its claims need not wait for its remaining processes.
        endpoint.close()
        this.#session.close()
        this.#settled = this.#settle(exit)
      },
      log: this.#options.log,
    })
    this.#options.onReady()
    if (this.#stopReason) this.#command.terminate(force.aborted)
    const exit = await this.#command.ended.catch(async (error: unknown) => {
      await this.#recordEnd(spec.id, NOT_STARTED, messageOf(error))
      throw error
    })
    const outcome = this.#interpret(exit)
    await this.#settled
    await this.#recordEnd(spec.id, exit, outcome.because)
    return {
      exitCode: exit.exitCode,
      signal: exit.signal,
      outcome,
      uptimeMs: REAL_CLOCK.now() - startedAt,
      hasCalled: this.#hasCalled,
      hasProgressed: this.#session.hasProgressed,
      failure: this.#failure,
    }
  }

  async #startExecution(endpoint: ReturnType<RunApi['open']>): Promise<CommandSpec> {
    const { store, source, command, cwd, env, base, killTimeoutMs, quiet } = this.#options
    const { maxLogBytes, maxMemoryBytes, secrets } = this.#options
    const { id: run, input, resumes } = this.#run
    const { outputDir, logPath } = createRunFolder(base, run)
    const { url, token, socket = null } = endpoint
    const variables = { runId: run, source, url, token, socket, outputDir, input }
    const execution = newId()
    const executions = await store.extend(COMMAND_STORE)
    const started = { id: execution, run, worker: this.id, host: hostname(), command, outputDir }
    await withRetry(
      async () =>
        executions.startExecution({
          ...started,
          log: logPath,
          startedAt: await store.now(),
          end: null,
        }),
      this.#options.stop,
    )
    return {
      id: execution,
      run,
      claim: null,
      label: shortId(this.id),
      command,
      cwd,
      env: commandEnvironment(env, { ...variables, api: 'worker', resumed: resumes > 0 }),
      // Its own: copies of the same command run beside it.
      processTag: this.id.replaceAll('-', '').slice(-16),
      killTimeoutMs,
      outputDir,
      logPath,
      maxLogBytes,
      quiet,
      secrets: [...secrets, token],
      hasIpcChannel: false,
      measureIntervalMs: maxMemoryBytes === null ? MEASURE_MS : LIMITED_MEASURE_MS,
    }
  }

  /** Asks the command to finish its pages and end. The first reason is kept. */
  #stop(reason: StopReason): void {
    if (!this.#hasExited) this.#stopReason ??= reason
    this.#stopping.abort()
    this.#command?.terminate(false)
  }

  /** The watchdog died, or this program can no longer use the database. */
  #onFatal(error: UnstuckError): void {
    if (error.code !== 'E_GUARDIAN') this.#failure = error
    if (!this.#hasExited) this.#stopReason ??= { why: 'watchdog-lost' }
    this.#stopping.abort()
    this.#session.close()
    this.#command?.terminate(true)
  }

  #checkMemory(bytes: number): void {
    const { maxMemoryBytes: limit } = this.#options
    if (limit !== null && bytes > limit) this.#stop({ why: 'max-memory', limit, seen: bytes })
  }

  /** Returns what the end means. A command that ends by itself while it holds targets has crashed, whatever its exit code. */
  #interpret(exit: Omit<CommandExit, 'stop' | 'reported'>): ExitOutcome {
    const outcome = interpretExit({ ...exit, stop: this.#stopReason, reported: null })
    if (outcome.run !== 'succeed' || this.#abandoned === 0) return outcome
    const targets = this.#abandoned === 1 ? 'a target' : `${this.#abandoned} targets`
    return { run: 'crash', because: `${outcome.because} while it held ${targets}` }
  }

  async #recordEnd(execution: string, exit: ManagedProcessExit, because: string): Promise<void> {
    const { store, stop, force } = this.#options
    const recorded = recordExecutionEnd(store, execution, exit, because)
    await withStopDeadline(recorded, stop, force).catch(() => {})
  }

  /** Ends the claims that the command left. Those of a lost watchdog are left for recovery. */
  async #settle(exit: ProcessExit): Promise<void> {
    const { run: outcome, because } = this.#interpret({ ...exit, oomKills: 0, errorLine: null })
    const within = AbortSignal.timeout(SETTLE_TIMEOUT_MS)
    try {
      if (outcome === 'orphan') return
      if (outcome === 'crash' || outcome === 'killed')
        await withRetry(() => this.#recoverClaims(because), within)
      else await this.#session.release(this.#session.held.all, within)
    } catch (error) {
      // The presence is released at the end; recovery then ends the claims.
      this.#options.log(
        `the targets of worker ${shortId(this.id)} are left for recovery: ${messageOf(error)}`,
      )
    } finally {
      this.#options.onClaimable()
    }
  }

  /** Ends the claims of a command that crashed like those of a dead worker: same decision, same audit entry. */
  async #recoverClaims(because: string): Promise<void> {
    const { store, overrides } = this.#options
    for (let attempt = 1; attempt <= ATTEMPTS_MAX; attempt++) {
      const all = await store.observations()
      const verdicts = await sweep(store, {
        observations: all.filter(({ worker }) => worker.id === this.id),
        observer: TRUSTED_OBSERVER,
        ended: { liveness: 'gone', because: `its command ended: ${because}` },
        policyOf: makePolicyOf(overrides),
        actor: `worker ${shortId(this.id)}`,
      })
      for (const verdict of verdicts) this.#emit({ type: 'recovery', verdict })
      // A heartbeat of the watchdog between the read and the write refuses a verdict.
      if (verdicts.every(({ applied }) => applied)) return
    }
  }
}
