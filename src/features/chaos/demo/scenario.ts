import process from 'node:process'
import type { RunId } from '../../../core/model/id.ts'
import type { Store } from '../../../core/store/store.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import type { Random } from '../random.ts'
import { deploy, killWorker, runZombie, type Deploy, type Kill, type Zombie } from './faults.ts'
import type { Reporter } from './reporter.ts'
import { AVERAGE_PAGE_MS, type Site } from './site.ts'
import type { Snapshot, WorkerPool } from './worker-pool.ts'

/** What every fault needs. */
export type ScenarioContext = {
  readonly store: Store
  readonly run: RunId
  readonly workerPool: WorkerPool
  readonly site: Site
  readonly random: Random
  readonly reporter: Reporter
  /** Fires when the run has ended, or on Ctrl-C. */
  readonly over: AbortSignal
  readonly snapshot: () => Promise<Snapshot>
}

/** A fault, and the share of pages at which it is due. */
export type ScheduledFault = {
  readonly kind: 'kill' | 'deploy' | 'zombie'
  readonly atShare: number
}

const START_MS = 2_000
const DEPLOY_MS = 4_000
/** A lease, the recovery, the refused write. */
const ZOMBIE_MS = 8_000
const KILL_MS = 1_500
/** A worker that is killed more often than this is restarted with a delay. */
const MIN_LIFETIME_MS = 6_000
const SLOWDOWN_MAX = 5

export type DemoSize = {
  readonly pages: number
  readonly targets: number
  readonly workers: number
  readonly kills: number
}

/** Estimates how long the crawl takes. */
export function expectedMs({ pages, targets, workers }: DemoSize, slowdown: number): number {
  return START_MS + (pages * AVERAGE_PAGE_MS * slowdown) / Math.min(workers, targets)
}

/** Returns how much slower the site must be to leave time for every fault: 1 for a crawl that is long enough. */
export function slowdownFor(size: DemoSize): number {
  const needed =
    size.kills * Math.max(KILL_MS, MIN_LIFETIME_MS / size.workers) + DEPLOY_MS + ZOMBIE_MS
  return Math.min(SLOWDOWN_MAX, Math.max(1, needed / (expectedMs(size, 1) - START_MS)))
}

/** Spreads the kills over the crawl, with a deploy and a zombie between them. */
export function makeSchedule(kills: number, random: Random): ScheduledFault[] {
  const faults: ScheduledFault[] = Array.from({ length: kills }, (_, n) => ({
    kind: 'kill',
    atShare: 0.02 + (0.82 * (n + random.next())) / kills,
  }))
  faults.push({ kind: 'deploy', atShare: 0.38 }, { kind: 'zombie', atShare: 0.55 })
  return faults.sort((a, b) => a.atShare - b.atShare)
}

const POLL_MS = 100
/** On a slow machine, faults are due by the clock instead of by pages. */
const OVERTIME_FACTOR = 1.5

/** Injects the scheduled faults, and records what came of each. */
export class Scenario {
  readonly killsAsked: number
  readonly kills: Kill[] = []
  readonly deploys: Deploy[] = []
  readonly zombies: Zombie[] = []
  /** Faults that could not be injected, each with its reason. */
  readonly skipped: string[] = []
  readonly #options: DemoSize & { readonly expectedMs: number }

  constructor(options: DemoSize & { readonly expectedMs: number }) {
    this.#options = options
    this.killsAsked = options.kills
  }

  /** Injects one fault after the other. Ends early when the run does. */
  async run(context: ScenarioContext, schedule: readonly ScheduledFault[]): Promise<void> {
    const startedAt = performance.now()
    for (const fault of schedule) {
      await this.#waitUntilDue(context, fault, startedAt)
      await this.#inject(context, fault)
    }
  }

  /** Returns one line for the headline. */
  summary(): string {
    const recoveries = this.kills.flatMap((kill) => kill.recoveries.map((one) => one.reclaimedMs))
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
      await REAL_CLOCK.sleep(POLL_MS, over)
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
    if (this.#options.workers < 2) return 'it needs a second worker to take over'
    return over.aborted ? 'the run was over before it' : null
  }
}
