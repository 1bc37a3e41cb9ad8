import { CommandRunner, type RunnerOptions } from './runner.ts'

/** The runner at work. One whose guardian was lost is replaced by a new one, under a new identity. */
export class CurrentRunner {
  readonly #makeOptions: () => Promise<RunnerOptions>
  readonly #log: (message: string) => void
  #current: Promise<CommandRunner> | null = null
  #latest: CommandRunner | null = null

  constructor(makeOptions: () => Promise<RunnerOptions>, log: (message: string) => void) {
    this.#makeOptions = makeOptions
    this.#log = log
  }

  /** Its signs of life are accepted. While there has been none, nothing is held that could be lost. */
  get isHeartbeating(): boolean {
    return this.#latest?.watchdog.heartbeat.canClaim() ?? true
  }

  /** One that can work. Those who ask at the same moment get the same. Throws a failure that another would share. */
  async get(): Promise<CommandRunner> {
    const pending = (this.#current ??= this.#startRunner(null))
    try {
      const runner = await pending
      if (!runner.failure) return runner
      if (runner.isOutdated) throw runner.failure
      if (this.#current === pending) this.#current = this.#startRunner(runner)
    } catch (error) {
      // Whoever asks next tries again.
      if (this.#current === pending) this.#current = null
      throw error
    }
    return this.get()
  }

  /** Lets go of the presence, after what was held has been freed. */
  async stop(): Promise<void> {
    const runner = await this.#current?.catch(() => null)
    this.#current = null
    await runner?.close()
  }

  async #startRunner(lost: CommandRunner | null): Promise<CommandRunner> {
    if (lost) {
      this.#log(`${lost.failure?.message} A new guardian takes its place.`)
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
