import process from 'node:process'
import { deploy } from './deploy.ts'
import { killWorker } from './kill.ts'
import { pause } from './pause.ts'
import type { InjectedFaults } from './report.ts'
import type { ScheduledFault } from './schedule.ts'
import type { Deploy, Kill, ScenarioContext, Zombie } from './scenario-context.ts'
import { runZombie } from './zombie.ts'

const POLL_MS = 100
/** A crawl that is slower than expected is not waited for: the acts come by the clock then. */
const OVERTIME_FACTOR = 1.5

export type ScenarioOptions = {
  readonly kills: number
  readonly workers: number
  readonly pages: number
  readonly expectedMs: number
}

/** What is done to the workers from the first page to the last, and what came of it. */
export class Scenario implements InjectedFaults {
  readonly killsAsked: number
  readonly kills: Kill[] = []
  readonly deploys: Deploy[] = []
  readonly zombies: Zombie[] = []
  readonly skipped: string[] = []
  readonly #options: ScenarioOptions

  constructor(options: ScenarioOptions) {
    this.#options = options
    this.killsAsked = options.kills
  }

  /** Plays the acts in turn. Ends early when the run does. */
  async run(context: ScenarioContext, schedule: readonly ScheduledFault[]): Promise<void> {
    const startedAt = performance.now()
    for (const fault of schedule) {
      await this.#waitUntilDue(context, fault, startedAt)
      await this.#inject(context, fault)
    }
  }

  /** In a few words. */
  summary(): string {
    const recoveries = this.kills.flatMap((kill) => kill.recoveries.map((one) => one.takenUpMs))
    return [
      `kill -9: ${this.kills.length} of ${this.killsAsked}`,
      `deploys: ${this.deploys.length}`,
      `zombies: ${this.zombies.length}`,
      ...(recoveries.length > 0 ? [`slowest recovery ${Math.max(...recoveries)} ms`] : []),
    ].join(', ')
  }

  async #waitUntilDue(
    { snapshot, over }: ScenarioContext,
    { atShare }: ScheduledFault,
    startedAt: number,
  ): Promise<void> {
    const { pages, expectedMs } = this.#options
    while (!over.aborted) {
      if (performance.now() - startedAt > atShare * expectedMs * OVERTIME_FACTOR) return
      if ((await snapshot()).run.counts.pages >= atShare * pages) return
      await pause(POLL_MS, over)
    }
  }

  async #inject(context: ScenarioContext, { kind }: ScheduledFault): Promise<void> {
    if (kind === 'kill') {
      if (context.over.aborted) return
      const kill = await killWorker(context)
      if (kill) this.kills.push(kill)
    } else if (kind === 'deploy') {
      if (context.over.aborted) this.skipped.push('deploy: the run was over before it')
      else this.deploys.push(await deploy(context))
    } else await this.#injectZombie(context)
  }

  async #injectZombie(context: ScenarioContext): Promise<void> {
    const reason = this.#zombieSkipReason(context)
    const result = reason === null ? await runZombie(context) : null
    if (result) this.zombies.push(result)
    else this.skipped.push(`zombie: ${reason ?? 'no worker was in the middle of a page'}`)
  }

  #zombieSkipReason({ over }: ScenarioContext): string | null {
    if (process.platform === 'win32') return 'Windows cannot stop a process and wake it up again'
    if (this.#options.workers < 2) return 'it takes a second worker to take over'
    return over.aborted ? 'the run was over before it' : null
  }
}
