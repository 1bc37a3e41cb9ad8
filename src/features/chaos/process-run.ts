import { spawn, type ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import process from 'node:process'
import { messageOf, UsageError } from '../../core/model/errors.ts'
import { newId, shortId } from '../../core/model/id.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { endTree } from '../../lib/process/end-tree.ts'
import {
  tagVariable,
  findTree,
  isAlive,
  HAS_PROC,
  signalAll,
  signalGroup,
  type ProcessRef,
  type TreeRoots,
} from '../../lib/process/process-tree.ts'
import { readProcessStat } from '../../core/host/identity.ts'
import type { Store } from '../../core/store/store.ts'
import { whenAborted } from './poll.ts'
import type { Progress } from './progress.ts'
import type { Signal } from './schedule.ts'
import type { PhaseContext } from './scratch.ts'

/** `all` processes of the command, only the one that was started, or a random one. */
export const KILL_TARGETS = ['all', 'command', 'one'] as const
export type KillTarget = (typeof KILL_TARGETS)[number]

export type ProcessExit = { readonly code: number | null; readonly signal: NodeJS.Signals | null }

export type ProcessOptions = {
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Receives stdout and stderr. */
  readonly logPath: string
  /** Opens an IPC channel: the command notices when this process dies. */
  readonly hasChannel?: boolean
}

/** A command from one start to one exit, with all processes that it starts. */
export class ProcessRun {
  readonly startedAt = performance.now()
  readonly exited: Promise<ProcessExit>
  /** Fires when the started process has exited. */
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

  /** Starts the command without a shell, in a session of its own: Ctrl-C reaches only this process. */
  static async start({ command, env, logPath, hasChannel }: ProcessOptions): Promise<ProcessRun> {
    const [program = '', ...args] = command
    const processTag = `chaos_${shortId(newId())}`
    const log = openSync(logPath, 'a', 0o600)
    try {
      const child = spawn(program, args, {
        detached: true,
        stdio: ['ignore', log, log, ...(hasChannel ? (['ipc'] as const) : [])],
        env: { ...process.env, ...env, [tagVariable(processTag)]: '1' },
      })
      await new Promise<void>((resolve, reject) => {
        child.once('spawn', resolve).once('error', reject)
      })
      return new ProcessRun(child, processTag)
    } catch (error) {
      throw new UsageError(
        `The command could not be started: ${startFailure(program, error)}. ` +
          'Write it after two dashes, as you would type it: unstuck chaos -- node crawl.ts',
        { cause: error },
      )
    } finally {
      closeSync(log)
    }
  }

  get pid(): number {
    return this.#leader.pid
  }

  /** Whether the started process still runs. */
  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null
  }

  /** Returns every live process of it. */
  processes(): ProcessRef[] {
    if (HAS_PROC) return findTree(this.#roots)
    return this.isRunning ? [this.#leader] : []
  }

  /** Returns the processes that a fault is for. */
  selectProcesses(whom: KillTarget, pick: number): ProcessRef[] {
    if (whom === 'command') return this.isRunning ? [this.#leader] : []
    const processes = this.processes()
    return whom === 'all'
      ? processes
      : [processes[Math.floor(pick * processes.length)]!].filter(Boolean)
  }

  /** Sends a signal. Returns the number of live processes that got it. */
  signal(signal: Signal | 'SIGCONT', processes: readonly ProcessRef[]): number {
    if (!HAS_PROC) return signalGroup(this.#leader, signal) ? 1 : 0
    const living = processes.filter(isAlive)
    signalAll(living, signal)
    return living.length
  }

  /** Returns how it ended; null when the signal fired first. */
  exitedBefore(limit: AbortSignal): Promise<ProcessExit | null> {
    return Promise.race([this.exited, whenAborted(limit)])
  }

  /** Waits for the exit event of a process that the kernel reports as dead. */
  async waitIfDead(): Promise<void> {
    if (!isAlive(this.#leader)) await this.exited
  }

  /** Kills the whole process tree. Resolves when none of it is left. */
  async kill(): Promise<void> {
    await endTree(this.#roots, { killTimeoutMs: 0, clock: REAL_CLOCK })
  }

  /** The same without waiting, for the `exit` event of this process. */
  killNow(): void {
    if (HAS_PROC) signalAll(findTree(this.#roots), 'SIGKILL')
    else signalGroup(this.#leader, 'SIGKILL')
  }

  get #roots(): TreeRoots {
    return { processTag: this.#processTag, leader: this.#leader }
  }
}

function startFailure(program: string, error: unknown): string {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') {
    return program.includes('/')
      ? `there is no file ${program}, or its interpreter is missing`
      : `no folder of the PATH has a program named ${program}`
  }
  if (code === 'EACCES') return `${program} is not an executable file`
  return messageOf(error)
}

/** Every start of the command, so that no process is left behind. */
export class ProcessRuns {
  readonly #command: readonly string[]
  #all: ProcessRun[] = []

  constructor(command: readonly string[]) {
    this.#command = command
  }

  async start({ address, outputDir, logPath }: PhaseContext): Promise<ProcessRun> {
    const env = { UNSTUCK_DB: address, UNSTUCK_CHAOS_DIR: outputDir }
    const run = await ProcessRun.start({ command: this.#command, env, logPath })
    this.#all.push(run)
    return run
  }

  /** Returns the number of processes that still run. */
  remaining(): number {
    this.#all = this.#all.filter((run) => run.processes().length > 0)
    return this.#all.reduce((sum, run) => sum + run.processes().length, 0)
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#all.map((run) => run.kill()))
    this.#all = []
  }

  /** Kills without waiting, for the `exit` event of this process. */
  killNow(): void {
    for (const run of this.#all) run.killNow()
  }
}

const LEASE_MS = 15_000
/** Beyond the lease: the other copy must notice, and take over. */
const BEYOND_LEASE_MS = 2_000

/**
 * Copies of the command that are stopped (SIGSTOP) for longer than their lease while a second copy works. Then they
 * continue and write, and the fence must refuse that.
 */
export class PausedProcesses {
  readonly #store: Store
  readonly #progress: Progress
  readonly #paused: { readonly run: ProcessRun; readonly timer: NodeJS.Timeout }[] = []

  constructor(store: Store, progress: Progress) {
    this.#store = store
    this.#progress = progress
  }

  /** Schedules the SIGCONT of a copy that was just stopped. */
  async add(run: ProcessRun, processes: readonly ProcessRef[]): Promise<void> {
    const pausedMs = (await longestLeaseMs(this.#store)) + BEYOND_LEASE_MS
    const timer = setTimeout(() => {
      this.#progress.log('SIGCONT to the stopped copy')
      run.signal('SIGCONT', processes)
    }, pausedMs)
    this.#paused.push({ run, timer })
  }

  /** Continues all, so that no process stays stopped. */
  resumeAll(): void {
    for (const { run, timer } of this.#paused.splice(0)) {
      clearTimeout(timer)
      run.signal('SIGCONT', run.processes())
    }
  }
}

/** Returns the longest lease of the live workers. */
export async function longestLeaseMs(store: Store): Promise<number> {
  const leases = (await store.observations()).map(({ worker }) => worker.leaseMs)
  return Math.max(...(leases.length > 0 ? leases : [LEASE_MS]))
}
