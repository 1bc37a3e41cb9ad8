import { fork, type ChildProcess } from 'node:child_process'
import { decideRestart } from './restart.ts'
import { isUnusable, messageOf } from '../model/errors.ts'
import { EXIT } from '../model/exit-codes.ts'
import type { Clock } from '../host/clock.ts'

/** How the parent asks a worker process to stop. */
export const STOP_MESSAGE = 'unstuck:stop'
const STARTED_MESSAGE = 'unstuck:started'
const PARENT_ENV = 'UNSTUCK_PARENT'

/** Whether this is one of them. A channel alone is no sign of it: process managers hold one too. */
export function isWorkerProcess(): boolean {
  return process.env[PARENT_ENV] === String(process.ppid)
}

/** Tells the parent, if there is one, that this worker process has begun to work. */
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
  /** What one of them sends to its parent. */
  readonly onMessage?: (message: unknown) => void
  /** Asked before one is started again. Rejects when another could not work either. */
  readonly beforeRestart: () => Promise<unknown>
}

/**
 * A number of worker processes, each started again when it dies. Each has a process group of its own, so that Ctrl-C
 * reaches only the parent, which then stops them once; and a channel to it, so that they drain when it dies.
 */
export class WorkerProcesses {
  readonly #options: WorkerProcessesOptions
  readonly #children = new Set<ChildProcess>()
  readonly #stopping = new AbortController()
  readonly #codes: number[] = []

  constructor(options: WorkerProcessesOptions) {
    this.#options = options
  }

  /** Resolves with the exit code when every process has ended and none is to be started again. */
  async run(): Promise<number> {
    await Promise.all(Array.from({ length: this.#options.count }, (_, n) => this.#supervise(n + 1)))
    return worstExitCode(this.#codes)
  }

  /** Asks all to stop. */
  stop(): void {
    if (this.#stopping.signal.aborted) return
    this.#stopping.abort()
    for (const child of this.#children) {
      // One that has just died cannot be told, and need not be.
      if (child.connected) child.send(STOP_MESSAGE, () => {})
    }
  }

  /** Ends all at once, each with whatever it has started itself. */
  kill(): void {
    for (const { pid } of this.#children) if (pid !== undefined) killProcessGroup(pid)
  }

  async #supervise(n: number): Promise<void> {
    const { clock, log } = this.#options
    const { signal } = this.#stopping
    let quickEnds = 0
    while (!signal.aborted) {
      const startedAt = clock.now()
      const { code, killedBy, hasStarted } = await this.#runOnce()
      const uptimeMs = clock.now() - startedAt
      const decision = decideRestart({ code, uptimeMs, quickExits: quickEnds, hasStarted })
      if (decision.action === 'give-up') this.stop()
      if (decision.action === 'restart') await this.#checkBeforeRestart()
      if (signal.aborted || decision.action !== 'restart') {
        this.#codes.push(code ?? EXIT.resumable)
        return
      }
      const when = decision.afterMs > 0 ? ` in ${Math.round(decision.afterMs / 1000)} s` : ''
      log(`worker process ${n} died (${killedBy ?? `exit code ${code}`}); starting it again${when}`)
      quickEnds = decision.quickExits
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
    // It is gone already.
  }
}

/** What is wrong weighs more than what is left, and that more than what is done. */
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
