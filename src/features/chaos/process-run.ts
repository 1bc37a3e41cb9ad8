import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import process from 'node:process'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { newId, shortId } from '../../core/model/id.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { endTree } from '../../core/host/end-tree.ts'
import {
  cookieVariable,
  findTree,
  isAlive,
  SEES_TREES,
  signalAll,
  signalGroup,
  type Member,
  type Roots,
} from '../../core/host/process-tree.ts'
import { readStat } from '../../core/host/identity.ts'
import type { Signal } from './schedule.ts'
import type { Place } from './scratch.ts'

/** `all` processes of the command, only the one that was started, or one of them by the dice. */
export const WHOM = ['all', 'command', 'one'] as const
export type Whom = (typeof WHOM)[number]

export type LifeEnd = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** The user's command from one start to one end, with all processes that it starts. */
export class Life {
  readonly startedAt = performance.now()
  readonly ended: Promise<LifeEnd>
  /** Fires when the process that was started is gone. */
  readonly over: AbortSignal
  readonly #child: ChildProcess
  readonly #leader: Member
  readonly #cookie: string

  private constructor(child: ChildProcess, cookie: string) {
    this.#child = child
    this.#cookie = cookie
    this.#leader = { pid: child.pid!, startTicks: readStat(child.pid!)?.startTicks ?? 0 }
    const over = new AbortController()
    this.over = over.signal
    this.ended = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        over.abort()
        resolve({ code, signal })
      })
    })
  }

  /** Without a shell in between. Its session is its own: Ctrl-C is for who kills it, not for the killed. */
  static async start(command: readonly string[], place: Place): Promise<Life> {
    const [program = '', ...args] = command
    const cookie = `chaos_${shortId(newId())}`
    const log = openSync(place.log, 'a', 0o600)
    try {
      const child = spawn(program, args, {
        detached: true,
        stdio: ['ignore', log, log],
        env: {
          ...process.env,
          [cookieVariable(cookie)]: '1',
          UNSTUCK_DB: place.address,
          UNSTUCK_CHAOS_DIR: place.files,
        },
      })
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve).once('error', reject)
      })
      return new Life(child, cookie)
    } catch (error) {
      throw new UsageError(
        `The command could not be started: ${messageOf(error)}. ` +
          'Write it after two dashes, as you would type it: unstuck chaos -- node crawl.ts',
        { cause: error },
      )
    } finally {
      closeSync(log)
    }
  }

  /** The process that was started still runs. */
  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Every process of it that lives. */
  members(): Member[] {
    if (SEES_TREES) return findTree(this.#roots)
    return this.isRunning ? [this.#leader] : []
  }

  /** Whom a blow is for. */
  choose(whom: Whom, pick: number): Member[] {
    if (whom === 'command') return this.isRunning ? [this.#leader] : []
    const members = this.members()
    return whom === 'all' ? members : [members[Math.floor(pick * members.length)]!].filter(Boolean)
  }

  /** Answers how many were there to get it. */
  signal(signal: Signal | 'SIGCONT', members: readonly Member[]): number {
    if (!SEES_TREES) return signalGroup(this.#leader, signal) ? 1 : 0
    const living = members.filter(isAlive)
    signalAll(living, signal)
    return living.length
  }

  /** How it ended; null when the signal fired first. */
  endedBefore(limit: AbortSignal): Promise<LifeEnd | null> {
    const fired = new Promise<null>((resolve) => {
      if (limit.aborted) resolve(null)
      limit.addEventListener('abort', () => resolve(null), { once: true })
    })
    return Promise.race([this.ended, fired])
  }

  /** A death that the kernel knows of is known here too. */
  async noticed(): Promise<void> {
    if (!isAlive(this.#leader)) await this.ended
  }

  /** Resolves when none of its processes is left. */
  async kill(): Promise<void> {
    await endTree(this.#roots, { killTimeoutMs: 0, clock: REAL_CLOCK })
  }

  /** The same in the moment before the end of this process: nothing can be waited for. */
  killNow(): void {
    if (SEES_TREES) signalAll(findTree(this.#roots), 'SIGKILL')
    else signalGroup(this.#leader, 'SIGKILL')
  }

  get #roots(): Roots {
    return { cookie: this.#cookie, leader: this.#leader }
  }
}
