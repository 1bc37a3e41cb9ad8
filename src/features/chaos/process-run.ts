import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import process from 'node:process'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { newId, shortId } from '../../core/model/id.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { endTree } from '../../core/host/end-tree.ts'
import {
  tagVariable,
  findTree,
  isAlive,
  HAS_PROC,
  signalAll,
  signalGroup,
  type ProcessRef,
  type TreeRoots,
} from '../../core/host/process-tree.ts'
import { readProcessStat } from '../../core/host/identity.ts'
import type { Signal } from './schedule.ts'
import type { PhaseContext } from './scratch.ts'

/** `all` processes of the command, only the one that was started, or one of them by the dice. */
export const KILL_TARGETS = ['all', 'command', 'one'] as const
export type KillTarget = (typeof KILL_TARGETS)[number]

export type ProcessExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

/** The user's command from one start to one end, with all processes that it starts. */
export class ProcessRun {
  readonly startedAt = performance.now()
  readonly exited: Promise<ProcessExit>
  /** Fires when the process that was started is gone. */
  readonly exitSignal: AbortSignal
  readonly #child: ChildProcess
  readonly #leader: ProcessRef
  readonly #processTag: string

  private constructor(child: ChildProcess, processTag: string) {
    this.#child = child
    this.#processTag = processTag
    this.#leader = { pid: child.pid!, startTicks: readProcessStat(child.pid!)?.startTicks ?? 0 }
    const exit = new AbortController()
    this.exitSignal = exit.signal
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        exit.abort()
        resolve({ code, signal })
      })
    })
  }

  /** Without a shell in between. Its session is its own: Ctrl-C is for who kills it, not for the killed. */
  static async start(command: readonly string[], phase: PhaseContext): Promise<ProcessRun> {
    const [program = '', ...args] = command
    const processTag = `chaos_${shortId(newId())}`
    const log = openSync(phase.logPath, 'a', 0o600)
    try {
      const child = spawn(program, args, {
        detached: true,
        stdio: ['ignore', log, log],
        env: {
          ...process.env,
          [tagVariable(processTag)]: '1',
          UNSTUCK_DB: phase.address,
          UNSTUCK_CHAOS_DIR: phase.outputDir,
        },
      })
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve).once('error', reject)
      })
      return new ProcessRun(child, processTag)
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
  processes(): ProcessRef[] {
    if (HAS_PROC) return findTree(this.#roots)
    return this.isRunning ? [this.#leader] : []
  }

  /** Whom a blow is for. */
  selectProcesses(whom: KillTarget, pick: number): ProcessRef[] {
    if (whom === 'command') return this.isRunning ? [this.#leader] : []
    const processes = this.processes()
    return whom === 'all'
      ? processes
      : [processes[Math.floor(pick * processes.length)]!].filter(Boolean)
  }

  /** Answers how many were there to get it. */
  signal(signal: Signal | 'SIGCONT', processes: readonly ProcessRef[]): number {
    if (!HAS_PROC) return signalGroup(this.#leader, signal) ? 1 : 0
    const living = processes.filter(isAlive)
    signalAll(living, signal)
    return living.length
  }

  /** How it ended; null when the signal fired first. */
  exitedBefore(limit: AbortSignal): Promise<ProcessExit | null> {
    const fired = new Promise<null>((resolve) => {
      if (limit.aborted) resolve(null)
      limit.addEventListener('abort', () => resolve(null), { once: true })
    })
    return Promise.race([this.exited, fired])
  }

  /** A death that the kernel knows of is known here too. */
  async waitIfDead(): Promise<void> {
    if (!isAlive(this.#leader)) await this.exited
  }

  /** Resolves when none of its processes is left. */
  async kill(): Promise<void> {
    await endTree(this.#roots, { killTimeoutMs: 0, clock: REAL_CLOCK })
  }

  /** The same in the moment before the end of this process: nothing can be waited for. */
  killNow(): void {
    if (HAS_PROC) signalAll(findTree(this.#roots), 'SIGKILL')
    else signalGroup(this.#leader, 'SIGKILL')
  }

  get #roots(): TreeRoots {
    return { processTag: this.#processTag, leader: this.#leader }
  }
}
