import { spawn, type ChildProcess } from 'node:child_process'
import { readdirSync } from 'node:fs'
import process from 'node:process'
import { REAL_CLOCK } from '../clock.ts'
import { readStat } from '../../store/host.ts'
import { endTree } from './end-tree.ts'
import type { CommandSpec, FromWard } from './guardian-messages.ts'
import { LogFile } from './log-file.ts'
import { CommandOutput } from './output.ts'
import {
  cookieVariable,
  countOomKills,
  descendants,
  isAlive,
  memoryOf,
  type Member,
  type Roots,
} from './tree.ts'

const PULSE_MS = 1_000
/** A process that was handed the pipe may hold it open after its end was seen; what comes later is not waited for. */
const LAST_WORDS_MS = 500

/** A command in the guardian's care: its processes, what they print, and their end. */
export class Ward {
  readonly #spec: CommandSpec
  readonly #tell: (message: FromWard) => void
  readonly #hurry = new AbortController()
  readonly #log: LogFile
  readonly #oomBefore = countOomKills()
  readonly #over = Promise.withResolvers<void>()
  readonly #known = new Map<number, Member>()
  #child: ChildProcess | null = null
  #output: CommandOutput | null = null
  #leader: Member | undefined
  #exit: { exitCode: number | null; signal: string | null } | null = null
  #ending: Promise<number> | null = null
  #pulse: NodeJS.Timeout | undefined
  #isActive = false
  #artifacts = 0
  #memory: number | null = null
  #peakMemory: number | null = null
  #measuredAt = -Infinity

  constructor(spec: CommandSpec, tell: (message: FromWard) => void) {
    this.#spec = spec
    this.#tell = tell
    this.#log = new LogFile(spec.log, { maxBytes: spec.logBytes })
  }

  /** Resolves when every process of the command is gone. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  start(): void {
    const { id, command, cwd, env, cookie, channel } = this.#spec
    const [file, ...args] = command
    const child = spawn(file!, args, {
      cwd,
      // A session and a group of its own: it is ended as a whole, and Ctrl-C reaches only Unstuck.
      detached: true,
      env: { ...env, [cookieVariable(cookie)]: id },
      stdio: ['ignore', 'pipe', 'pipe', ...(channel ? ['ipc' as const] : [])],
    })
    child.once('error', (error: NodeJS.ErrnoException) => this.#refused(error))
    const { pid } = child
    if (pid === undefined) return
    this.#child = child
    this.#leader = { pid, startTicks: readStat(pid)?.startTicks ?? 0 }
    const { run, quiet, secrets } = this.#spec
    this.#output = new CommandOutput({
      run,
      stdout: child.stdout!,
      stderr: child.stderr!,
      log: this.#log,
      live: process,
      quiet,
      secrets,
      onActivity: () => (this.#isActive = true),
    })
    child.on('message', (message) => {
      if (message === 'ready') this.#tell({ type: 'ready', id })
    })
    child.once('exit', (exitCode, signal) => {
      this.#exit = { exitCode, signal }
      void this.#finish()
    })
    this.#pulse = setInterval(() => this.#look(), PULSE_MS)
    this.#tell({ type: 'spawned', id, pid })
  }

  /** Ends all of it: politely, with the kill timeout; `now`: at once, also when it was asked politely before. */
  end(now: boolean): void {
    if (now) this.#hurry.abort()
    if (this.#child) void this.#endTree()
  }

  #endTree(): Promise<number> {
    // Who is there before the end is remembered: orphans without a cookie are found by it.
    this.#remember()
    const { killTimeoutMs, id } = this.#spec
    this.#ending ??= endTree(this.#roots, {
      killTimeoutMs,
      clock: REAL_CLOCK,
      hurry: this.#hurry.signal,
      onStubborn: (pids) => this.#tell({ type: 'stubborn', id, pids }),
    })
    return this.#ending
  }

  get #roots(): Roots {
    const { cookie, id } = this.#spec
    return { cookie, execution: id, leader: this.#leader, known: [...this.#known.values()] }
  }

  async #finish(): Promise<void> {
    const killed = await this.#endTree()
    clearInterval(this.#pulse)
    await this.#output?.finish(LAST_WORDS_MS)
    const { id, outputDir } = this.#spec
    const artifacts = countFiles(outputDir)
    const oomKills = countOomKills() - this.#oomBefore
    const { peakMemory } = this
    this.#log.close()
    this.#tell({ type: 'over', id, ...this.#exit!, oomKills, artifacts, peakMemory, killed })
    this.#over.resolve()
  }

  get peakMemory(): number | null {
    return this.#peakMemory
  }

  #refused(error: NodeJS.ErrnoException): void {
    // A message that could not be sent is an error here too.
    if (this.#child) return
    const { id } = this.#spec
    this.#tell({ type: 'refused', id, code: error.code ?? 'UNKNOWN', text: error.message })
    this.#over.resolve()
  }

  #look(): void {
    this.#remember()
    const { id, outputDir, measureEveryMs } = this.#spec
    const now = REAL_CLOCK.now()
    if (now - this.#measuredAt >= measureEveryMs) {
      this.#measuredAt = now
      this.#memory = memoryOf([...this.#known.values()].filter(isAlive))
      this.#peakMemory = Math.max(this.#peakMemory ?? 0, this.#memory ?? 0) || null
    }
    const artifacts = countFiles(outputDir)
    const isActive = this.#isActive || artifacts !== this.#artifacts
    this.#isActive = false
    this.#artifacts = artifacts
    this.#tell({ type: 'pulse', id, isActive, artifacts, memory: this.#memory })
  }

  #remember(): void {
    for (const [pid, member] of this.#known) if (!isAlive(member)) this.#known.delete(pid)
    const roots = [...(this.#leader ? [this.#leader] : []), ...this.#known.values()]
    for (const { pid } of roots) {
      for (const member of descendants(pid)) this.#known.set(member.pid, member)
    }
  }
}

/** Files below a folder, links not followed; what cannot be read counts as nothing. */
export function countFiles(folder: string): number {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).length
  } catch {
    return 0
  }
}
