import { fork, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import process from 'node:process'
import { fileURLToPath } from 'node:url'
import { EXIT } from '../../../core/model/exit-codes.ts'
import type { Worker } from '../../../core/model/worker.ts'
import { processState } from '../../../core/host/identity.ts'

export type WorkerPoolOptions = {
  readonly workers: number
  readonly db: string
  readonly journal: string
  /** Where the workers' own words go. */
  readonly logPath: string
  /** How often `unstuck work` itself may be killed before that is the end. */
  readonly maxRestarts: number
  readonly env: Readonly<Record<string, string>>
}

const STOP_TIMEOUT_MS = 8_000

/**
 * `unstuck work`, as a user would start it, with its worker processes. It is tied to the demo by a channel: should
 * the demo be killed, the crew hands its work back and ends by itself.
 */
export class WorkerPool {
  readonly #options: WorkerPoolOptions
  #workers: readonly Worker[] = []
  #child: ChildProcess | null = null
  #deploying: PromiseWithResolvers<{ finished: boolean }> | null = null
  #isStopping = false
  /** A run is there: from now on none may be started. */
  hasRun = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  /** Works until nothing is left, or until `stop`. Answers the exit code of the last `unstuck work`. */
  async run(): Promise<number> {
    for (let restarts = 0; ;) {
      const code = await this.#runOnce()
      const deploying = this.#deploying
      this.#deploying = null
      deploying?.resolve({ finished: code === EXIT.done })
      // It ended in order, so its workers have.
      if (code !== null) this.#workers = []
      if (code === EXIT.done || this.#isStopping) return code ?? EXIT.failed
      if (deploying) continue
      // Killed or stopped by somebody else; or by us, where there is a single worker. Anything else would come again.
      const isRestartable = code === null || code === EXIT.resumable
      if (!isRestartable || ++restarts > this.#options.maxRestarts) return code ?? EXIT.failed
    }
  }

  /** SIGTERM to all, as a deploy does it; what has ended is started again. Resolves when all had ended. */
  deploy(): Promise<{ finished: boolean }> {
    this.#deploying ??= Promise.withResolvers()
    this.#child?.kill('SIGTERM')
    return this.#deploying.promise
  }

  /** Those who are at work now and must not be left behind. */
  setWorkers(workers: readonly Worker[]): void {
    this.#workers = workers
  }

  /** Pages in hand are finished; who takes too long is killed. */
  async stop(): Promise<void> {
    this.#isStopping = true
    const child = this.#child
    if (child) {
      const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()))
      const late = setTimeout(() => this.kill(), STOP_TIMEOUT_MS)
      child.kill('SIGTERM')
      await ended
      clearTimeout(late)
    }
    this.kill()
  }

  /** Ends every process at once. Safe at any moment, also while the demo itself ends. */
  kill(): void {
    this.#isStopping = true
    this.#child?.kill('SIGKILL')
    for (const { process: identity } of this.#workers) {
      if (processState(identity) !== 'gone') killGroup(identity.pid)
    }
    this.#workers = []
  }

  #arguments(): string[] {
    const { workers, db, journal } = this.#options
    const args = ['work', crawlModule(), '--workers', String(workers), '--drain', '--db', db]
    return [...args, '--journal', journal, ...(this.hasRun ? ['--no-start'] : [])]
  }

  #runOnce(): Promise<number | null> {
    const { logPath, env } = this.#options
    const file = openSync(logPath, 'a')
    const child = fork(
      fileURLToPath(new URL('../../../../bin/unstuck.js', import.meta.url)),
      this.#arguments(),
      {
        // Ctrl-C is for the demo alone: it stops the crew in order.
        detached: true,
        stdio: ['ignore', file, file, 'ipc'],
        env: { ...process.env, ...env },
        execArgv: [],
      },
    )
    closeSync(file)
    this.#child = child
    return new Promise((resolve) => {
      child.once('error', () => resolve(EXIT.failed))
      child.once('exit', (code) => {
        this.#child = null
        resolve(code)
      })
    })
  }
}

function crawlModule(): string {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
  return fileURLToPath(new URL(`./crawl.${extension}`, import.meta.url))
}

/** Each worker leads a process group of its own. */
function killGroup(pid: number): void {
  for (const id of process.platform === 'win32' ? [pid] : [-pid, pid]) {
    try {
      process.kill(id, 'SIGKILL')
    } catch {
      // It is gone already.
    }
  }
}
