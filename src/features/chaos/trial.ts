import { ProcessRun, type KillTarget } from './process-run.ts'
import type { Progress } from './progress.ts'
import type { Signal } from './schedule.ts'
import type { PhaseContext } from './scratch.ts'

/** What is to be tried out, and how. */
export type Trial = {
  readonly command: readonly string[]
  readonly seed: number
  /** At most so many; undefined: as many as fit into `forMs`. */
  readonly kills: number | undefined
  /** Kills only for so long. */
  readonly forMs: number | undefined
  readonly signal: Signal | 'mix'
  readonly whom: KillTarget
  /** After its first page a life lasts at most so long; undefined: as the reference suggests. */
  readonly withinMs: number | undefined
  /** From a start to an end, at most. */
  readonly timeoutMs: number
  /** The command's own file, as seen from its UNSTUCK_CHAOS_DIR. */
  readonly output: string | undefined
  readonly ignoreData: boolean
  readonly keep: boolean
  /** Where databases are made and dropped; null: SQLite files. */
  readonly server: string | null
  readonly progress: Progress
  /** Ctrl-C. */
  readonly interrupted: AbortSignal
}

/** Something that is wrong. */
export type Problem = {
  /** Its name: stable, for scripts. */
  readonly what: string
  /** In a sentence. */
  readonly says: string
  readonly count: number
  /** The first few of what it is about. */
  readonly examples: readonly string[]
  /** What to do, or where to look; null when there is nothing to add. */
  readonly hint: string | null
}

/** Every life of the command, so that none is left behind. */
export class ProcessRuns {
  readonly #command: readonly string[]
  #all: ProcessRun[] = []

  constructor(command: readonly string[]) {
    this.#command = command
  }

  async start(phase: PhaseContext): Promise<ProcessRun> {
    const run = await ProcessRun.start(this.#command, phase)
    this.#all.push(run)
    return run
  }

  /** Processes that still run. */
  remaining(): number {
    this.#all = this.#all.filter((run) => run.processes().length > 0)
    return this.#all.reduce((sum, run) => sum + run.processes().length, 0)
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#all.map((run) => run.kill()))
    this.#all = []
  }

  /** In the moment before the end of this process. */
  killNow(): void {
    for (const run of this.#all) run.killNow()
  }
}
