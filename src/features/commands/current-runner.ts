import { CommandRunner, type RunnerOptions } from './runner.ts'

/** The runner at work. One whose guardian was lost is replaced by a new one, under a new identity. */
export class CurrentRunner {
  readonly #make: () => Promise<RunnerOptions>
  readonly #log: (message: string) => void
  #current: Promise<CommandRunner> | null = null
  #latest: CommandRunner | null = null

  constructor(make: () => Promise<RunnerOptions>, log: (message: string) => void) {
    this.#make = make
    this.#log = log
  }

  /** Its signs of life are accepted. While there has been none, nothing is held that could be lost. */
  get isHeard(): boolean {
    return this.#latest?.guardian.life.canClaim() ?? true
  }

  /** One that can work. Those who ask at the same moment get the same. Throws a failure that another would share. */
  async get(): Promise<CommandRunner> {
    const asked = (this.#current ??= this.#next(null))
    try {
      const runner = await asked
      if (!runner.failure) return runner
      if (runner.isOutdated) throw runner.failure
      if (this.#current === asked) this.#current = this.#next(runner)
    } catch (error) {
      // Whoever asks next tries again.
      if (this.#current === asked) this.#current = null
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

  async #next(lost: CommandRunner | null): Promise<CommandRunner> {
    if (lost) {
      this.#log(`${lost.failure?.message} A new guardian takes its place.`)
      await lost.close()
    }
    const runner = new CommandRunner(await this.#make())
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
