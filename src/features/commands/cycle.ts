import { hostname } from 'node:os'
import { interpretExit, type StopReason } from './ending.ts'
import { messageOf } from '../../core/model/errors.ts'
import { newId, shortId, type RunId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import type { Run } from '../../core/model/run.ts'
import { redactArguments } from '../../lib/text/redact-arguments.ts'
import { withRetry } from '../../core/store/open.ts'
import { COMMAND_PROCESSES } from '../../lib/process/end-tree.ts'
import { beginRun, reclaim } from '../../core/worker/begin.ts'
import { REAL_CLOCK, TIMER_MAX_MS } from '../../core/host/clock.ts'
import { RunHandle } from '../../core/worker/run-handle.ts'
import { commandEnvironment } from './environment.ts'
import { createRunFolder, runFolder } from '../../lib/files/data-folder.ts'
import { CommandStartError, NOT_STARTED, type CommandHandle, type CommandSpec } from './watchdog.ts'
import { LogFile } from './log-file.ts'
import { runSession } from './run-api/routes.ts'
import type { EndpointSession } from './run-api/session.ts'
import type { ClaimListener, CommandRunner } from './runner.ts'
import {
  runnerContext,
  recordExecutionEnd,
  settleCommand,
  withStopDeadline,
  type CycleResult,
} from './settle-run.ts'
import { COMMAND_STORE } from './store/store.ts'

/** The settings of one cycle of a command. */
export type CycleOptions = {
  readonly source: string
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly policy: Policy
  /** The source's tag; every process of the command carries it. */
  readonly processTag: string
  /** The folder of the runs' output. */
  readonly base: string
  readonly killTimeoutMs: number
  readonly maxDurationMs: number | null
  /** In bytes, for the whole process tree. */
  readonly maxMemoryBytes: number | null
  /** Null: the command is ready when it is started. */
  readonly readyTimeoutMs: number | null
  readonly maxLogBytes: number
  readonly quiet: boolean
  /** Values to redact from the output. */
  readonly secrets: readonly string[]
  /** Fires when Unstuck stops, with the reason as its message. */
  readonly stop: AbortSignal
  /** Fires when the command is to be killed at once. */
  readonly force: AbortSignal
  readonly onReady?: (run: RunId) => void
  /** Retry a run whose command was killed with nothing done, as that of a dead worker. Default: it fails. */
  readonly retriesKilled?: boolean
}

const LOCK_CHECK_MS = 2_000
const LIMITED_MEASURE_MS = 1_000
const DEFAULT_MEASURE_MS = 5_000

/** Runs one cycle: begins or resumes the source's run, starts the command, and settles the run when all its processes have ended. */
export async function runCycle(runner: CommandRunner, options: CycleOptions): Promise<CycleResult> {
  const { store, worker, log, emit } = runner.options
  const { source, policy } = options
  const { heartbeat } = runner.watchdog
  const claimant = { source, worker, policy }
  const context = { ...runnerContext(runner.options), heartbeat, processes: COMMAND_PROCESSES }
  const begun = await beginRun(context, claimant, options.stop)
  const { claimed, resumed } = begun
  const runBefore = (await withRetry(() => store.run(claimed.run), options.stop))!
  const handle: RunHandle = new RunHandle({
    ...begun,
    progress: runBefore.progress,
    store,
    heartbeat,
    emit,
    onEnd: () => heartbeat.released(handle.claim.claimId),
    reclaim: () => cycle.reclaim(),
  })
  const cycle = new Cycle(runner, options, handle, runBefore)
  runner.claims.set(claimed.claimId, cycle)
  if (runner.failure) cycle.stop({ why: 'watchdog-lost' }, true)
  try {
    log(`run ${shortId(runBefore.id)} of ${source} ${resumed ? 'resumes' : 'starts'}`)
    return await cycle.run()
  } catch (error) {
    // No process runs: the run is released, so that it does not count as a crash.
    await handle.release().catch(() => {})
    throw error
  } finally {
    runner.claims.delete(handle.claim.claimId)
    heartbeat.released(handle.claim.claimId)
  }
}

class Cycle implements ClaimListener {
  readonly #runner: CommandRunner
  readonly #options: CycleOptions
  readonly #handle: RunHandle
  readonly #runBefore: Run
  readonly #timers = new Set<NodeJS.Timeout>()
  #command: CommandHandle | null = null
  #stopReason: StopReason | null = null
  #reportedEnd: 'finished' | 'failed' | 'again' | null = null
  #isReady = false
  #hasExited = false
  #reclaiming: Promise<boolean> | null = null

  constructor(runner: CommandRunner, options: CycleOptions, handle: RunHandle, runBefore: Run) {
    this.#runner = runner
    this.#options = options
    this.#handle = handle
    this.#runBefore = runBefore
  }

  /** Ends the command. The first reason is kept. */
  stop(reason: StopReason, force = false): void {
    // A command that ended by itself keeps that reason, also while its remaining processes are being ended.
    if (!this.#hasExited) this.#stopReason ??= reason
    this.#command?.terminate(force)
  }

  onLost(): void {
    // The command ended its run itself while the heartbeat that misses it was under way.
    if (!this.#handle.ended) void this.reclaim()
  }

  onCancelled(): void {
    this.stop({ why: 'cancelled' })
  }

  onWatchdogLost(): void {
    this.stop({ why: 'watchdog-lost' }, true)
  }

  onOutdated(because: string): void {
    this.stop({ why: 'asked', by: because })
  }

  /**
   * The claim was lost. Returns true if the run could be claimed again, because no other copy has taken it or its source:
   * the command continues. Otherwise the command is ended.
   */
  reclaim(): Promise<boolean> {
    this.#reclaiming ??= this.#tryReclaim().finally(() => (this.#reclaiming = null))
    return this.#reclaiming
  }

  async #tryReclaim(): Promise<boolean> {
    const { options, watchdog, claims } = this.#runner
    const { source, policy, stop } = this.#options
    const { claimId: lost } = this.#handle.claim
    const claimant = { source, worker: options.worker, policy }
    const context = { store: options.store, heartbeat: watchdog.heartbeat }
    const pending = this.#stopReason ? null : reclaim(context, claimant, this.#handle.id, stop)
    const claimed = await pending?.catch(() => null)
    if (this.#handle.ended) return false
    if (!claimed) {
      this.#handle.loseLease()
      this.stop({ why: 'lease-lost' }, true)
      return false
    }
    claims.delete(lost)
    watchdog.heartbeat.released(lost)
    this.#handle.resumeWith(claimed)
    claims.set(claimed.claimId, this)
    this.#command?.setClaim(this.#handle.claim)
    options.log(
      `run ${shortId(claimed.run)} was taken from this process while it was silent, and is claimed again`,
    )
    return true
  }

  async run(): Promise<CycleResult> {
    const { store, endpoint, worker } = this.#runner.options
    const { command, base, stop, force } = this.#options
    const { id } = this.#handle
    const { outputDir, logPath } = createRunFolder(base, id)
    const session = endpoint.open(
      id,
      runSession(this.#handle, {
        onCall: () => this.#markReady(),
        isStopping: () => this.#stopReason !== null,
        onEnd: (end) => {
          this.#reportedEnd = end === 'finish' ? 'finished' : end.retry ? 'again' : 'failed'
          this.#command?.markSettled()
        },
      }),
    )
    const execution = newId()
    const startedAt = REAL_CLOCK.now()
    const onStop = (): void => this.stop({ why: 'asked', by: messageOf(stop.reason) })
    const onForce = (): void => this.#command?.terminate(true)
    try {
      this.#logNote(`attempt ${this.#runBefore.resumes + 1}: ${redactArguments(command).join(' ')}`)
      const executions = await store.extend(COMMAND_STORE)
      await withRetry(
        async () =>
          executions.startExecution({
            id: execution,
            run: id,
            worker,
            host: hostname(),
            command,
            outputDir,
            log: logPath,
            startedAt: await store.now(),
            end: null,
          }),
        stop,
      )
      this.#command = this.#runner.watchdog.run(this.#spec(execution, session), {
        onMemory: (bytes) => this.#checkMemory(bytes),
        onReady: () => this.#markReady(),
        onTracked: (tracking) => this.#runner.setTracking(tracking),
        onExit: () => {
          this.#hasExited = true
        },
        log: this.#runner.options.log,
      })
      this.#startTimers()
      this.#watchSourceLock()
      // Requested while the run was being started.
      if (this.#stopReason) this.#command.terminate(this.#stopReason.why === 'lease-lost')
      stop.addEventListener('abort', onStop, { once: true })
      force.addEventListener('abort', onForce, { once: true })
      if (stop.aborted) onStop()
      if (force.aborted) onForce()
      const exit = await this.#command.ended
      session.close()
      const ending = interpretExit({ ...exit, stop: this.#stopReason, reported: this.#reportedEnd })
      this.#logNote(`ended: ${ending.because}`)
      const ended = {
        handle: this.#handle,
        claim: this.#handle.claim,
        runBefore: this.#runBefore,
        execution,
        ending,
        exit,
        isRetried: ending.run === 'killed' && this.#options.retriesKilled === true,
      }
      const uptimeMs = REAL_CLOCK.now() - startedAt
      return await withStopDeadline(
        settleCommand(this.#runner.options, ended, uptimeMs),
        stop,
        force,
      )
    } catch (error) {
      if (!(error instanceof CommandStartError)) throw error
      await recordExecutionEnd(store, execution, NOT_STARTED, error.message)
      await this.#handle.fail(error)
      throw error
    } finally {
      for (const timer of this.#timers) clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
      force.removeEventListener('abort', onForce)
      session.close()
    }
  }

  #spec(execution: string, session: EndpointSession): CommandSpec {
    const { command, cwd, processTag, killTimeoutMs, maxLogBytes, quiet } = this.#options
    const { env, source, base, secrets, readyTimeoutMs, maxMemoryBytes } = this.#options
    const { id: run, claim, resumed } = this.#handle
    const { outputDir, logPath } = runFolder(base, run)
    const { url, token, socket = null } = session
    const { input } = this.#runBefore
    const variables = { runId: run, source, url, token, socket, outputDir, resumed, input }
    return {
      id: execution,
      run,
      claim,
      label: null,
      command,
      cwd,
      env: commandEnvironment(env, { ...variables, api: 'run' }),
      processTag,
      killTimeoutMs,
      outputDir,
      logPath,
      maxLogBytes,
      quiet,
      secrets: [...secrets, token],
      hasIpcChannel: readyTimeoutMs !== null,
      measureIntervalMs: maxMemoryBytes === null ? DEFAULT_MEASURE_MS : LIMITED_MEASURE_MS,
    }
  }

  #startTimers(): void {
    const { maxDurationMs, readyTimeoutMs } = this.#options
    if (readyTimeoutMs === null) this.#markReady()
    else {
      this.#setTimer(readyTimeoutMs, () => {
        if (!this.#isReady) this.stop({ why: 'not-ready', limitMs: readyTimeoutMs })
      })
    }
    if (maxDurationMs !== null) {
      this.#setTimer(maxDurationMs, () =>
        this.stop({ why: 'max-duration', limitMs: maxDurationMs }),
      )
    }
  }

  /** Also waits for longer than a timer can. */
  #setTimer(ms: number, act: () => void): void {
    const remainingMs = ms - TIMER_MAX_MS
    const then = remainingMs > 0 ? () => this.#setTimer(remainingMs, act) : act
    this.#timers.add(setTimeout(then, Math.min(ms, TIMER_MAX_MS)))
  }

  /** Heartbeats report a lost run. A lost source lock, also after the run ended, has to be read. */
  #watchSourceLock(): void {
    const { store, worker } = this.#runner.options
    const check = async (): Promise<void> => {
      const lock = (await store.sourceLocks(this.#options.source))[0]
      if (lock && lock.worker !== worker) this.stop({ why: 'lease-lost' }, true)
    }
    this.#timers.add(setInterval(() => void check().catch(() => {}), LOCK_CHECK_MS))
  }

  #markReady(): void {
    if (this.#isReady) return
    this.#isReady = true
    this.#options.onReady?.(this.#handle.id)
  }

  #checkMemory(bytes: number): void {
    const { maxMemoryBytes: limit } = this.#options
    if (limit !== null && bytes > limit) this.stop({ why: 'max-memory', limit, seen: bytes })
  }

  /** Writes to the run's log, while the command does not. */
  #logNote(text: string): void {
    const { base, maxLogBytes: maxBytes } = this.#options
    const log = new LogFile(runFolder(base, this.#handle.id).logPath, { maxBytes })
    log.note(text)
    log.close()
  }
}
