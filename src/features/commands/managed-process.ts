import { spawn, type ChildProcess } from 'node:child_process'
import { statSync, watch, type FSWatcher } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import process from 'node:process'
import type { Claim } from '../../core/model/claim.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { readProcessStat } from '../../core/host/identity.ts'
import { shortId } from '../../core/model/id.ts'
import { removeCgroups } from '../../lib/process/cgroup.ts'
import { endTree } from '../../lib/process/end-tree.ts'
import type { CommandSpec, ManagedProcessEvent } from './watchdog.ts'
import { LogFile } from './log-file.ts'
import { CommandOutput } from './output.ts'
import { startTagged, type Tracking } from './start-tagged.ts'
import {
  tagVariable,
  countOomKills,
  descendants,
  findTree,
  isAlive,
  memoryBytesOf,
  type ProcessRef,
  type TreeRoots,
} from '../../lib/process/process-tree.ts'

const POLL_MS = 1_000
/** Counting thousands of files is slow, and only the first one matters. */
const COUNT_INTERVAL_MS = 10_000
const ACTIVITY_INTERVAL_MS = 5_000
/** Another process may hold the pipe open after the command ended; later output is not waited for. */
const OUTPUT_GRACE_MS = 500

/** Receives the events of a command. */
export type ManagedProcessHost = {
  readonly send: (message: ManagedProcessEvent) => void
  /** Called on activity, with the number of files in the output directory. */
  readonly reportActivity: (claim: Claim, artifacts: number) => Promise<void>
}

/** A command under the watchdog: its processes, their output, and their end. */
export class ManagedProcess {
  readonly #spec: CommandSpec
  readonly #host: ManagedProcessHost
  readonly #force = new AbortController()
  readonly #log: LogFile
  readonly #oomBefore = countOomKills()
  readonly #ended = Promise.withResolvers<void>()
  readonly #knownProcesses = new Map<number, ProcessRef>()
  #child: ChildProcess | null = null
  #claim: Claim | null
  #output: CommandOutput | null = null
  #leader: ProcessRef | undefined
  #tracking: Tracking = 'environment'
  #exit: { exitCode: number | null; signal: string | null } | null = null
  #ending: Promise<number> | null = null
  #pollTimer: NodeJS.Timeout | undefined
  #folderWatcher: FSWatcher | undefined
  #isActive = false
  #isSettled = false
  #isCounting = false
  #artifacts = 0
  #peakMemory: number | null = null
  #measuredAt = -Infinity
  #countedAt = -Infinity
  #activityReportedAt = -Infinity

  constructor(spec: CommandSpec, host: ManagedProcessHost) {
    this.#spec = spec
    this.#claim = spec.claim
    this.#host = host
    this.#log = new LogFile(spec.logPath, { maxBytes: spec.maxLogBytes })
  }

  /** Resolves when every process of the command has ended. */
  get ended(): Promise<void> {
    return this.#ended.promise
  }

  /** It works on many targets, over the API of the process that started it. */
  get needsApi(): boolean {
    return this.#spec.claim === null
  }

  start(): void {
    const { id, outputDir } = this.#spec
    const child = this.#spawn()
    const pid = child?.pid
    if (!child || pid === undefined) return
    this.#child = child
    this.#leader = { pid, startTicks: readProcessStat(pid)?.startTicks ?? 0 }
    const { run, label, quiet, secrets } = this.#spec
    this.#output = new CommandOutput({
      label: label ?? shortId(run),
      ...(label !== null && { logPrefix: `[${label}] ` }),
      stdout: child.stdout!,
      stderr: child.stderr!,
      log: this.#log,
      live: process,
      quiet,
      secrets,
      onActivity: () => (this.#isActive = true),
    })
    child.on('message', (message) => {
      if (message === 'ready') this.#host.send({ type: 'ready', id })
    })
    child.once('exit', (exitCode, signal) => {
      this.#exit = { exitCode, signal }
      this.#host.send({ type: 'exited', id, exitCode, signal })
      void this.#finish()
    })
    this.#host.send({ type: 'tracked', id, tracking: this.#tracking })
    this.#pollTimer = setInterval(() => this.#poll(), POLL_MS)
    this.#folderWatcher = tryWatch(outputDir, () => this.#onFolderChange())
  }

  #spawn(): ChildProcess | null {
    const { id, command, cwd, env, processTag, hasIpcChannel } = this.#spec
    const [file, ...args] = command
    try {
      const { started, tracking } = startTagged({ processTag, execution: id }, () =>
        spawn(file!, args, {
          cwd,
          // Its own session and group: it is ended as a whole, and Ctrl-C reaches only Unstuck.
          detached: true,
          env: { ...env, [tagVariable(processTag)]: id },
          stdio: ['ignore', 'pipe', 'pipe', ...(hasIpcChannel ? ['ipc' as const] : [])],
        }),
      )
      this.#tracking = tracking
      return started.once('error', (error) => this.#onStartError(error))
    } catch (error) {
      // Some errors are thrown, such as arguments that are too long.
      this.#onStartError(error as NodeJS.ErrnoException)
      return null
    }
  }

  /** Ends all processes: SIGTERM, then SIGKILL after the kill timeout. `force` kills at once, also after a first call. */
  terminate(force: boolean): void {
    if (force) this.#force.abort()
    if (this.#child) void this.#endTree()
  }

  /** Reports activity under a new claim from now on. */
  setClaim(claim: Claim): void {
    this.#claim = claim
  }

  /** Stops reporting activity: the run has ended before the command. */
  markSettled(): void {
    this.#isSettled = true
  }

  #endTree(): Promise<number> {
    // Remembers the processes that run before the end, to find orphans without a tag.
    this.#rememberProcesses()
    const { killTimeoutMs, id } = this.#spec
    this.#ending ??= endTree(this.#roots, {
      killTimeoutMs,
      clock: REAL_CLOCK,
      force: this.#force.signal,
      onUnkillable: (pids) => this.#host.send({ type: 'unkillable', id, pids }),
    })
    return this.#ending
  }

  get #roots(): TreeRoots {
    const { processTag, id } = this.#spec
    return {
      processTag,
      execution: id,
      leader: this.#leader,
      known: [...this.#knownProcesses.values()],
    }
  }

  async #finish(): Promise<void> {
    const killed = await this.#endTree()
    clearInterval(this.#pollTimer)
    this.#folderWatcher?.close()
    await this.#output?.finish(OUTPUT_GRACE_MS)
    this.#log.close()
    const { id, outputDir } = this.#spec
    const artifacts = await countFiles(outputDir)
    if (artifacts !== this.#artifacts && !this.#isSettled && this.#claim)
      await this.#host.reportActivity(this.#claim, artifacts)
    const oomKills = countOomKills() - this.#oomBefore
    const peakMemory = this.#peakMemory
    const errorLine = this.#output?.errorLine ?? null
    const seen = { oomKills, errorLine, artifacts, peakMemory, killed }
    this.#host.send({ type: 'ended', id, ...this.#exit!, ...seen })
    this.#ended.resolve()
  }

  #onStartError(error: NodeJS.ErrnoException): void {
    // A failed `send` is reported here too.
    if (this.#child) return
    const { id, processTag } = this.#spec
    removeCgroups({ processTag, execution: id })
    const code = startErrorCode(error, this.#spec)
    this.#host.send({ type: 'start-failed', id, code, text: error.message })
    this.#ended.resolve()
  }

  #poll(): void {
    this.#rememberProcesses()
    const now = REAL_CLOCK.now()
    if (now - this.#measuredAt >= this.#spec.measureIntervalMs) {
      this.#measuredAt = now
      this.#measure()
    }
    if (this.#artifacts === 0 || now - this.#countedAt >= COUNT_INTERVAL_MS)
      void this.#countArtifacts()
    if (this.#isActive && now - this.#activityReportedAt >= ACTIVITY_INTERVAL_MS)
      this.#reportActivity(now)
  }

  #measure(): void {
    // Processes orphaned between two measurements are found by their tag.
    for (const member of findTree(this.#roots)) this.#knownProcesses.set(member.pid, member)
    const bytes = memoryBytesOf([...this.#knownProcesses.values()].filter(isAlive))
    if (bytes === null) return
    this.#peakMemory = Math.max(this.#peakMemory ?? 0, bytes)
    this.#host.send({ type: 'memory', id: this.#spec.id, bytes })
  }

  async #countArtifacts(): Promise<void> {
    if (this.#isCounting) return
    this.#isCounting = true
    const artifacts = await countFiles(this.#spec.outputDir)
    this.#isCounting = false
    this.#countedAt = REAL_CLOCK.now()
    if (artifacts === this.#artifacts) return
    this.#artifacts = artifacts
    this.#reportActivity(this.#countedAt)
  }

  /** The first file counts as progress, so it is reported at once. */
  #onFolderChange(): void {
    if (this.#artifacts === 0) void this.#countArtifacts()
  }

  #reportActivity(now: number): void {
    this.#isActive = false
    this.#activityReportedAt = now
    if (!this.#isSettled && this.#claim)
      void this.#host.reportActivity(this.#claim, this.#artifacts)
  }

  #rememberProcesses(): void {
    for (const [pid, member] of this.#knownProcesses)
      if (!isAlive(member)) this.#knownProcesses.delete(pid)
    const roots = [...(this.#leader ? [this.#leader] : []), ...this.#knownProcesses.values()]
    for (const { pid } of roots) {
      for (const member of descendants(pid)) this.#knownProcesses.set(member.pid, member)
    }
  }
}

/** Returns null if the system has no watches left; the folder is then read every second. */
function tryWatch(folder: string, onChange: () => void): FSWatcher | undefined {
  try {
    return watch(folder, onChange).on('error', () => {})
  } catch {
    return undefined
  }
}

/** Counts the files below a folder without following links. Unreadable folders count as empty. */
async function countFiles(folder: string): Promise<number> {
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true })
    return entries.filter((entry) => entry.isFile()).length
  } catch {
    return 0
  }
}

/** The system's search path without a PATH. */
const DEFAULT_PATH = '/bin:/usr/bin'

/**
 * Returns the system's code for a command that could not be started. The system reports EACCES when it may not enter one
 * of the folders of the PATH. Shells skip such a folder: a program that is in none of the others does not exist.
 */
function startErrorCode(
  { code = 'UNKNOWN' }: NodeJS.ErrnoException,
  { command: [program = ''], cwd, env }: Pick<CommandSpec, 'command' | 'cwd' | 'env'>,
): string {
  if (code !== 'EACCES' || program.includes('/')) return code
  const folders = (env['PATH'] ?? DEFAULT_PATH).split(delimiter)
  return folders.some((folder) => isFile(resolve(cwd, folder, program))) ? code : 'ENOENT'
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile()
  } catch {
    return false
  }
}
