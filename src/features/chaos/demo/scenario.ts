import process from 'node:process'
import { deploy } from './deploy.ts'
import { killOne } from './kill.ts'
import { pause } from './pause.ts'
import type { Deeds } from './report.ts'
import type { Act } from './schedule.ts'
import type { Deploy, Kill, Stage, Zombie } from './scenario-context.ts'
import { zombie } from './zombie.ts'

const LOOK_EVERY_MS = 100
/** A crawl that is slower than expected is not waited for: the acts come by the clock then. */
const PATIENCE = 1.5

export type StoryOptions = {
  readonly kills: number
  readonly workers: number
  readonly pages: number
  readonly expectedMs: number
}

/** What is done to the workers from the first page to the last, and what came of it. */
export class Story implements Deeds {
  readonly killsAsked: number
  readonly kills: Kill[] = []
  readonly deploys: Deploy[] = []
  readonly zombies: Zombie[] = []
  readonly skipped: string[] = []
  readonly #options: StoryOptions

  constructor(options: StoryOptions) {
    this.#options = options
    this.killsAsked = options.kills
  }

  /** Plays the acts in turn. Ends early when the run does. */
  async play(stage: Stage, acts: readonly Act[]): Promise<void> {
    const startedAt = performance.now()
    for (const act of acts) {
      await this.#due(stage, act, startedAt)
      await this.#perform(stage, act)
    }
  }

  /** In a few words. */
  soFar(): string {
    const recoveries = this.kills.flatMap((kill) => kill.recoveries.map((one) => one.takenUpMs))
    return [
      `kill -9: ${this.kills.length} of ${this.killsAsked}`,
      `deploys: ${this.deploys.length}`,
      `zombies: ${this.zombies.length}`,
      ...(recoveries.length > 0 ? [`slowest recovery ${Math.max(...recoveries)} ms`] : []),
    ].join(', ')
  }

  async #due({ look, over }: Stage, { at }: Act, startedAt: number): Promise<void> {
    const { pages, expectedMs } = this.#options
    while (!over.aborted) {
      if (performance.now() - startedAt > at * expectedMs * PATIENCE) return
      if ((await look()).run.counts.pages >= at * pages) return
      await pause(LOOK_EVERY_MS, over)
    }
  }

  async #perform(stage: Stage, { kind }: Act): Promise<void> {
    if (kind === 'kill') {
      if (stage.over.aborted) return
      const kill = await killOne(stage)
      if (kill) this.kills.push(kill)
    } else if (kind === 'deploy') {
      if (stage.over.aborted) this.skipped.push('deploy: the run was over before it')
      else this.deploys.push(await deploy(stage))
    } else await this.#performZombie(stage)
  }

  async #performZombie(stage: Stage): Promise<void> {
    const reason = this.#whyNoZombie(stage)
    const played = reason === null ? await zombie(stage) : null
    if (played) this.zombies.push(played)
    else this.skipped.push(`zombie: ${reason ?? 'no worker was in the middle of a page'}`)
  }

  #whyNoZombie({ over }: Stage): string | null {
    if (process.platform === 'win32') return 'Windows cannot stop a process and wake it up again'
    if (this.#options.workers < 2) return 'it takes a second worker to take over'
    return over.aborted ? 'the run was over before it' : null
  }
}
