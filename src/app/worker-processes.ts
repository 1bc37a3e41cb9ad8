import { fork, type ChildProcess } from 'node:child_process'
import { isUnusable, messageOf } from '../core/model/errors.ts'
import { EXIT } from '../core/model/exit-codes.ts'
import type { Clock } from '../core/host/clock.ts'
import { QUICK_EXIT_MS, restartDelayMs } from '../lib/process/restart-delay.ts'
import { isWorkerProcess, PARENT_ENV } from '../lib/process/this-process.ts'

/** Message by which the parent stops a worker process. */
export const STOP_MESSAGE = 'unstuck:stop'
const STARTED_MESSAGE = 'unstuck:started'

/** Notifies the parent, if there is one, that this worker process has begun to work. */
export function reportStarted(): void {
  if (isWorkerProcess() && process.connected)
    process.send!(STARTED_MESSAGE, undefined, {}, () => {})
}

export type WorkerProcessesOptions = {
  readonly count: number
  /** The program and arguments of one worker process. */
  readonly module: string
  readonly args: readonly string[]
  /** Added to the environment. */
  readonly env: Readonly<Record<string, string>>
  readonly clock: Clock
  readonly log: (message: string) => void
  /** Receives the messages of the worker processes. */
  readonly onMessage?: (message: unknown) => void
  /** Called before a restart. Rejects if another process could not work either. */
  readonly beforeRestart: () => Promise<unknown>
}

/**
 * Starts worker processes and restarts each one that dies. Each has its own process group, so that Ctrl-C reaches only the
 * parent, which then stops them once; and a channel to the parent, so that they stop gracefully when it dies.
 */
export class WorkerProcesses {
  readonly #options: WorkerProcessesOptions
  readonly #children = new Set<ChildProcess>()
  readonly #stopping = new AbortController()
  readonly #codes: number[] = []

  constructor(options: WorkerProcessesOptions) {
    this.#options = options
  }

  /** Resolves with the exit code when every process has ended and none will be restarted. */
  async run(): Promise<number> {
    await Promise.all(Array.from({ length: this.#options.count }, (_, n) => this.#supervise(n + 1)))
    return worstExitCode(this.#codes)
  }

  /** Asks all processes to stop. */
  stop(): void {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort()
    for (const child of this.#children) {
      // A process that has just died has no channel.
      if (child.connected) child.send(STOP_MESSAGE, () => {})
    }
  }

  /** Kills all processes with their process groups. */
  kill(): void {
    for (const { pid } of this.#children) if (pid !== undefined) killProcessGroup(pid)
  }

  async #supervise(n: number): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    let quickExits = 0
    while (!signal.aborted) {
      const startedAt = clock.now()
      const { code, killedBy, hasStarted } = await this.#runOnce()
      const uptimeMs = clock.now() - startedAt
      const decision = decideRestart({ code, uptimeMs, quickExits, hasStarted })
      if (decision.action === 'give-up') this.stop()
      if (decision.action === 'restart') await this.#checkBeforeRestart()
      if (signal.aborted || decision.action !== 'restart') {
        this.#codes.push(code ?? EXIT.resumable)
        return
      }
      const when = decision.afterMs > 0 ? ` in ${Math.round(decision.afterMs / 1000)} s` : ''
      log(`worker process ${n} died (${killedBy ?? `exit code ${code}`}); starting it again${when}`)
      quickExits = decision.quickExits
      await clock.sleep(decision.afterMs, signal)
    }
    this.#codes.push(EXIT.resumable)
  }

  async #checkBeforeRestart(): Promise<void> {
    try {
      await this.#options.beforeRestart()
    } catch (error) {
      if (!isUnusable(error)) return
      this.#options.log(messageOf(error))
      this.#codes.push(EXIT.unreachable)
      this.stop()
    }
  }

  #runOnce(): Promise<{ code: number | null; killedBy: string | null; hasStarted: boolean }> {
    const child = fork(this.#options.module, [...this.#options.args], {
      detached: true,
      env: { ...process.env, ...this.#options.env, [PARENT_ENV]: String(process.pid) },
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#children.add(child)
    let hasStarted = false
    child.on('message', (message) => {
      hasStarted ||= message === STARTED_MESSAGE
      this.#options.onMessage?.(message)
    })
    return new Promise((resolve) => {
      const onEnd = (code: number | null, killedBy: string | null): void => {
        this.#children.delete(child)
        resolve({ code, killedBy, hasStarted })
      }
      child.once('exit', (code, signal) => onEnd(code, signal))
      child.once('error', (error) => {
        this.#options.log(`a worker process could not be started: ${error.message}`)
        if (child.pid === undefined) onEnd(EXIT.failed, null)
      })
    })
  }
}

function killProcessGroup(pid: number): void {
  try {
    process.kill(process.platform === 'win32' ? pid : -pid, 'SIGKILL')
  } catch {
    // The process has already ended.
  }
}

/** Returns the worst of the codes: errors before remaining work, remaining work before success. */
function worstExitCode(codes: readonly number[]): number {
  const order = [
    EXIT.usage,
    EXIT.schema,
    EXIT.unreachable,
    EXIT.failed,
    EXIT.resumable,
    EXIT.needsAttention,
  ]
  return order.find((code) => codes.includes(code)) ?? codes.find((code) => code !== 0) ?? EXIT.done
}

type ChildExit = {
  /** Null when a signal ended it. */
  readonly code: number | null
  readonly uptimeMs: number
  /** How many exits in a row before this one happened right after a start. */
  readonly quickExits: number
  /** The worker had begun to work. */
  readonly hasStarted: boolean
}

type RestartDecision =
  | { readonly action: 'restart'; readonly afterMs: number; readonly quickExits: number }
  /** The work is done, or the process was asked to stop. */
  | { readonly action: 'leave' }
  /** Another process would end the same way: wrong usage, wrong schema, a lost database. */
  | { readonly action: 'give-up'; readonly code: number }

const CLEAN_CODES: readonly number[] = [0, 3, 75]
const NON_RETRYABLE_CODES: readonly number[] = [2, 9]
/** Before the worker has started, the database may just be down. Later, only a lost database ends a worker with this code. */
const UNREACHABLE_CODE = 7

/** Decides whether and when an ended worker process is restarted: at once, unless it keeps ending right after its start. */
export function decideRestart(exit: ChildExit): RestartDecision {
  if (exit.code !== null && CLEAN_CODES.includes(exit.code)) return { action: 'leave' }
  if (exit.code !== null && NON_RETRYABLE_CODES.includes(exit.code))
    return { action: 'give-up', code: exit.code }
  if (exit.code === UNREACHABLE_CODE && exit.hasStarted)
    return { action: 'give-up', code: exit.code }
  const quickExits = exit.uptimeMs < QUICK_EXIT_MS ? exit.quickExits + 1 : 0
  return { action: 'restart', afterMs: restartDelayMs(quickExits), quickExits }
}
