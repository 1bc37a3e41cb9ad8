import { Life, type Whom } from './process-run.ts'
import type { Progress } from './progress.ts'
import type { Signal } from './schedule.ts'
import type { Place } from './scratch.ts'

/** What is to be tried out, and how. */
export type Trial = {
  readonly command: readonly string[]
  readonly seed: number
  /** At most so many; undefined: as many as fit into `forMs`. */
  readonly kills: number | undefined
  /** Kills only for so long. */
  readonly forMs: number | undefined
  readonly signal: Signal | 'mix'
  readonly whom: Whom
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
export class Lives {
  readonly #command: readonly string[]
  #all: Life[] = []

  constructor(command: readonly string[]) {
    this.#command = command
  }

  async start(place: Place): Promise<Life> {
    const life = await Life.start(this.#command, place)
    this.#all.push(life)
    return life
  }

  /** Processes that still run. */
  remaining(): number {
    this.#all = this.#all.filter((life) => life.members().length > 0)
    return this.#all.reduce((sum, life) => sum + life.members().length, 0)
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#all.map((life) => life.kill()))
    this.#all = []
  }

  /** In the moment before the end of this process. */
  killNow(): void {
    for (const life of this.#all) life.killNow()
  }
}
