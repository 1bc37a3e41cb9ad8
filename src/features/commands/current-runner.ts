import { CommandRunner, type RunnerOptions } from './runner.ts'

/** The current runner. If its watchdog is lost, a new runner with a new identity replaces it. */
export class CurrentRunner {
  readonly #makeOptions: () => Promise<RunnerOptions>
  readonly #log: (message: string) => void
  #current: Promise<CommandRunner> | null = null
  #latest: CommandRunner | null = null

  constructor(makeOptions: () => Promise<RunnerOptions>, log: (message: string) => void) {
    this.#makeOptions = makeOptions
    this.#log = log
  }

  /** True while heartbeats are accepted, and before the first runner, when nothing is held. */
  get isHeartbeating(): boolean {
    return this.#latest?.watchdog.heartbeat.canClaim() ?? true
  }

  /** Returns a working runner, the same for concurrent calls. Throws a failure that a new runner would share. */
  async get(): Promise<CommandRunner> {
    const pending = (this.#current ??= this.#startRunner(null))
    try {
      const runner = await pending
      if (!runner.failure) return runner
      if (runner.isOutdated) throw runner.failure
      if (this.#current === pending) this.#current = this.#startRunner(runner)
    } catch (error) {
      // The next call tries again.
      if (this.#current === pending) this.#current = null
      throw error
    }
    return this.get()
  }

  /** Releases the presence, after the source locks were released. */
  async stop(): Promise<void> {
    const runner = await this.#current?.catch(() => null)
    this.#current = null
    await runner?.close()
  }

  async #startRunner(lost: CommandRunner | null): Promise<CommandRunner> {
    if (lost) {
      this.#log(`${lost.failure?.message} A new watchdog takes its place.`)
      await lost.close()
    }
    const runner = new CommandRunner(await this.#makeOptions())
    try {
      await runner.start()
    } catch (error) {
      await runner.close()
      throw error
    }
    this.#latest = runner
    return runner
  }
}
