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

  /** One that can work. Those who ask at the same moment get the same. */
  async get(): Promise<CommandRunner> {
    const current = (this.#current ??= this.#start())
    const runner = await current
    if (!runner.failure) return runner
    if (this.#current === current) {
      this.#log(`${runner.failure.message} A new guardian takes its place.`)
      this.#current = this.#start()
      await close(runner)
    }
    return this.get()
  }

  /** Lets go of the presence, after what was held has been freed. */
  async stop(): Promise<void> {
    const runner = await this.#current?.catch(() => null)
    this.#current = null
    if (runner) await close(runner)
  }

  async #start(): Promise<CommandRunner> {
    const options = await this.#make()
    const runner = new CommandRunner(options)
    try {
      await runner.start()
      this.#latest = runner
      return runner
    } catch (error) {
      this.#current = null
      await close(runner)
      throw error
    }
  }
}

async function close(runner: CommandRunner): Promise<void> {
  await runner.stop()
  await runner.options.store.close()
}
