import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'

/** What the files are made of. Paths are those of this machine. */
export type Facts = {
  readonly folder: string
  /** The crawl's file, as seen from the folder, with forward slashes. */
  readonly module: string
  /** `unstuck-` and the source: good for a unit, an image, a pod. */
  readonly name: string
  readonly workers: number
  /** The Node that runs now. */
  readonly node: string
  /** The program itself, absolute, and as seen from the folder. */
  readonly bin: string
  readonly binFromFolder: string
  readonly user: string
  /** There is a lock file that `npm ci` can go by. */
  readonly locked: boolean
}

export type NewFile = {
  /** As seen from the folder, with forward slashes. */
  readonly path: string
  readonly text: string
  /** For people: what it is. */
  readonly about: string
  /** With a byte order mark, as Windows writes such files itself. Else UTF-8. */
  readonly utf16?: true
}

/** Files for one way of being run, and the commands that put them to use. */
export type Supervisor = {
  readonly files: (facts: Facts) => readonly NewFile[]
  readonly next: (facts: Facts) => readonly string[]
}

/** How long a supervisor waits before it kills: longer than a stop takes, with room for a slow machine. */
export const KILL_AFTER_SECONDS = STOP_DEADLINE_MS / 1_000 + 15

/** Exit codes after which another start would end the same way: wrong usage, something left for a person, schema. */
export const NO_RESTART_CODES = [2, 3, 9] as const

/** Asked to stop, and stopped with work left. Nobody but who asked should start it again. */
export const STOPPED_CODE = 75
