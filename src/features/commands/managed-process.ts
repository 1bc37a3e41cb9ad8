import { spawn, type ChildProcess } from 'node:child_process'
import { watch, type FSWatcher } from 'node:fs'
import { readdir } from 'node:fs/promises'
import process from 'node:process'
import type { Claim } from '../../core/model/claim.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { readStat } from '../../core/host/identity.ts'
import { removeCgroups } from '../../core/host/cgroup.ts'
import { endTree } from '../../core/host/end-tree.ts'
import type { CommandSpec, FromWard } from './watchdog-messages.ts'
import { LogFile } from './log-file.ts'
import { CommandOutput } from './output.ts'
import { startErrorCode } from './start-error.ts'
import { startMarked, type Tracking } from './start-tagged.ts'
import {
  cookieVariable,
  countOomKills,
  descendants,
  findTree,
  isAlive,
  memoryOf,
  type Member,
  type Roots,
} from '../../core/host/process-tree.ts'

const LOOK_EVERY_MS = 1_000
/** Counting thousands of files takes a while, and only the first is news. */
const COUNT_EVERY_MS = 10_000
const TOUCH_EVERY_MS = 5_000
/** A process that was handed the pipe may hold it open after its end was seen; what comes later is not waited for. */
const OUTPUT_GRACE_MS = 500

/** Who hears of a command. */
export type WardHost = {
  readonly tell: (message: FromWard) => void
  /** It shows signs of activity; so many files are in its output directory. */
  readonly touch: (claim: Claim, artifacts: number) => Promise<void>
}

/** A command in the guardian's care: its processes, what they print, and their end. */
export class Ward {
  readonly #spec: CommandSpec
  readonly #host: WardHost
  readonly #hurry = new AbortController()
  readonly #log: LogFile
  readonly #oomBefore = countOomKills()
  readonly #over = Promise.withResolvers<void>()
  readonly #known = new Map<number, Member>()
  #child: ChildProcess | null = null
  #claim: Claim
  #output: CommandOutput | null = null
  #leader: Member | undefined
  #tracking: Tracking = 'environment'
  #exit: { exitCode: number | null; signal: string | null } | null = null
  #ending: Promise<number> | null = null
  #looking: NodeJS.Timeout | undefined
  #folder: FSWatcher | undefined
  #isActive = false
  #isSettled = false
  #isCounting = false
  #artifacts = 0
  #peakMemory: number | null = null
  #measuredAt = -Infinity
  #countedAt = -Infinity
  #touchedAt = -Infinity

  constructor(spec: CommandSpec, host: WardHost) {
    this.#spec = spec
    this.#claim = spec.claim
    this.#host = host
    this.#log = new LogFile(spec.log, { maxBytes: spec.logBytes })
  }

  /** Resolves when every process of the command is gone. */
  get over(): Promise<void> {
    return this.#over.promise
  }

  start(): void {
    const { id, outputDir } = this.#spec
    const child = this.#spawn()
    const pid = child?.pid
    if (!child || pid === undefined) return
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
      if (message === 'ready') this.#host.tell({ type: 'ready', id })
    })
    child.once('exit', (exitCode, signal) => {
      this.#exit = { exitCode, signal }
      this.#host.tell({ type: 'exited', id })
      void this.#finish()
    })
    this.#host.tell({ type: 'tracked', id, tracking: this.#tracking })
    this.#looking = setInterval(() => this.#look(), LOOK_EVERY_MS)
    this.#folder = tryToWatch(outputDir, () => this.#firstFile())
  }

  #spawn(): ChildProcess | null {
    const { id, command, cwd, env, cookie, channel } = this.#spec
    const [file, ...args] = command
    try {
      const { started, tracking } = startMarked({ cookie, execution: id }, () =>
        spawn(file!, args, {
          cwd,
          // A session and a group of its own: it is ended as a whole, and Ctrl-C reaches only Unstuck.
          detached: true,
          env: { ...env, [cookieVariable(cookie)]: id },
          stdio: ['ignore', 'pipe', 'pipe', ...(channel ? ['ipc' as const] : [])],
        }),
      )
      this.#tracking = tracking
      return started.once('error', (error) => this.#refused(error))
    } catch (error) {
      // Some reasons come this way, such as arguments that are too long.
      this.#refused(error as NodeJS.ErrnoException)
      return null
    }
  }

  /** Ends all of it: politely, with the kill timeout; `now`: at once, also when it was asked politely before. */
  end(now: boolean): void {
    if (now) this.#hurry.abort()
    if (this.#child) void this.#endTree()
  }

  /** Its run was claimed again. */
  claimed(claim: Claim): void {
    this.#claim = claim
  }

  /** Its run has ended before it did: a late note would only be refused. */
  settled(): void {
    this.#isSettled = true
  }

  #endTree(): Promise<number> {
    // Who is there before the end is remembered: orphans without a cookie are found by it.
    this.#remember()
    const { killTimeoutMs, id } = this.#spec
    this.#ending ??= endTree(this.#roots, {
      killTimeoutMs,
      clock: REAL_CLOCK,
      hurry: this.#hurry.signal,
      onStubborn: (pids) => this.#host.tell({ type: 'stubborn', id, pids }),
    })
    return this.#ending
  }

  get #roots(): Roots {
    const { cookie, id } = this.#spec
    return { cookie, execution: id, leader: this.#leader, known: [...this.#known.values()] }
  }

  async #finish(): Promise<void> {
    const killed = await this.#endTree()
    clearInterval(this.#looking)
    this.#folder?.close()
    await this.#output?.finish(OUTPUT_GRACE_MS)
    this.#log.close()
    const { id, outputDir } = this.#spec
    const artifacts = await countFiles(outputDir)
    if (artifacts !== this.#artifacts && !this.#isSettled)
      await this.#host.touch(this.#claim, artifacts)
    const oomKills = countOomKills() - this.#oomBefore
    const peakMemory = this.#peakMemory
    this.#host.tell({ type: 'over', id, ...this.#exit!, oomKills, artifacts, peakMemory, killed })
    this.#over.resolve()
  }

  #refused(error: NodeJS.ErrnoException): void {
    // A message that could not be sent is an error here too.
    if (this.#child) return
    const { id, cookie } = this.#spec
    removeCgroups({ cookie, execution: id })
    const code = startErrorCode(error, this.#spec)
    this.#host.tell({ type: 'refused', id, code, text: error.message })
    this.#over.resolve()
  }

  #look(): void {
    this.#remember()
    const now = REAL_CLOCK.now()
    if (now - this.#measuredAt >= this.#spec.measureEveryMs) {
      this.#measuredAt = now
      this.#measure()
    }
    if (this.#artifacts === 0 || now - this.#countedAt >= COUNT_EVERY_MS) void this.#count()
    if (this.#isActive && now - this.#touchedAt >= TOUCH_EVERY_MS) this.#touch(now)
  }

  #measure(): void {
    // Those that were orphaned between two looks are found by what they carry.
    for (const member of findTree(this.#roots)) this.#known.set(member.pid, member)
    const bytes = memoryOf([...this.#known.values()].filter(isAlive))
    if (bytes === null) return
    this.#peakMemory = Math.max(this.#peakMemory ?? 0, bytes)
    this.#host.tell({ type: 'memory', id: this.#spec.id, bytes })
  }

  async #count(): Promise<void> {
    if (this.#isCounting) return
    this.#isCounting = true
    const artifacts = await countFiles(this.#spec.outputDir)
    this.#isCounting = false
    this.#countedAt = REAL_CLOCK.now()
    if (artifacts === this.#artifacts) return
    this.#artifacts = artifacts
    this.#touch(this.#countedAt)
  }

  /** The first file makes the run worth going on with: that is kept at once, whatever happens next. */
  #firstFile(): void {
    if (this.#artifacts === 0) void this.#count()
  }

  #touch(now: number): void {
    this.#isActive = false
    this.#touchedAt = now
    if (!this.#isSettled) void this.#host.touch(this.#claim, this.#artifacts)
  }

  #remember(): void {
    for (const [pid, member] of this.#known) if (!isAlive(member)) this.#known.delete(pid)
    const roots = [...(this.#leader ? [this.#leader] : []), ...this.#known.values()]
    for (const { pid } of roots) {
      for (const member of descendants(pid)) this.#known.set(member.pid, member)
    }
  }
}

/** Where the system has no more watches to give, the look of every second must do. */
function tryToWatch(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    return watch(folder, onChange).on('error', () => {})
  } catch {
    return undefined
  }
}

/** Files below a folder, links not followed; what cannot be read counts as nothing. Beats go on meanwhile. */
async function countFiles(folder: string): Promise<number> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).length
  } catch {
    return 0
  }
}
