import { fileURLToPath } from 'node:url'
import { CLI, type ProcessTestContext, type Program } from '../processes/harness.ts'
import { PYTHON, PYTHON_ENV } from './python.ts'

export const SOURCE = 'storm'

const PROGRAM = fileURLToPath(new URL('programs/storm.py', import.meta.url))
const EXIT_WORK_LEFT = 75

type SupervisorOptions = {
  /** Commands of each. */
  readonly workers: number
  readonly env: NodeJS.ProcessEnv
}

/** Several `unstuck work --exec --targets` side by side, each started again when it is killed, until the run has ended. */
export class Supervisors {
  readonly #ctx: ProcessTestContext
  readonly #options: SupervisorOptions
  readonly #alive = new Set<Program>()
  #deployed: PromiseWithResolvers<void> | null = null

  constructor(ctx: ProcessTestContext, options: SupervisorOptions) {
    this.#ctx = ctx
    this.#options = options
  }

  /** Resolves when all have ended by themselves. */
  async run(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => this.#keepRunning()))
  }

  /** Sends SIGTERM to all, as a deploy does, and starts them again when the last one has ended. Returns how long that took. */
  async deploy(): Promise<number> {
    const startedAt = performance.now()
    this.#deployed = Promise.withResolvers()
    const programs = [...this.#alive]
    for (const program of programs) program.signal('SIGTERM')
    await Promise.all(programs.map((program) => program.exited))
    this.#deployed.resolve()
    this.#deployed = null
    return performance.now() - startedAt
  }

  async #keepRunning(): Promise<void> {
    for (;;) {
      const program = this.#start()
      this.#alive.add(program)
      const exit = await program.exited
      this.#alive.delete(program)
      if (exit === 0) return
      // One that is just starting has no handler yet.
      const hasStopped = exit === EXIT_WORK_LEFT || exit === 'SIGTERM'
      if (hasStopped && this.#deployed) await this.#deployed.promise
      else if (exit !== 'SIGKILL')
        throw new Error(`A supervisor ended with ${exit}:\n${program.output}`)
    }
  }

  #start(): Program {
    const { workers, env } = this.#options
    const options = ['--source', SOURCE, '--workers', String(workers), '--drain', '--no-start']
    const command = ['--', PYTHON, PROGRAM]
    return this.#ctx.start([CLI, 'work', '--exec', '--targets', ...options, ...command], {
      env: { ...PYTHON_ENV, ...env },
    })
  }
}
