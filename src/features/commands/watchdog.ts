import { fork, type ChildProcess } from 'node:child_process'
import type { Claim } from '../../core/model/claim.ts'
import { UnstuckError } from '../../core/model/errors.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { HeartbeatClient, type HeartbeatHandlers } from '../../core/heartbeat/client.ts'
import type { RunId } from '../../core/model/id.ts'
import type {
  FromService,
  HeartbeatOptions,
  HeartbeatTransport,
  ToService,
} from '../../core/heartbeat/transport.ts'
import { endTree } from '../../lib/process/end-tree.ts'
import type { CycleOptions } from './cycle.ts'
import type { Tracking } from './start-tagged.ts'

/** What the watchdog needs to start a command, and to end it without Unstuck. */
export type CommandSpec = Pick<
  CycleOptions,
  'command' | 'cwd' | 'processTag' | 'killTimeoutMs' | 'maxLogBytes' | 'quiet' | 'secrets'
> & {
  /** The execution's id. */
  readonly id: string
  readonly run: RunId
  /** The claim under which its activity is reported, also after Unstuck died; null: it reports its pages itself. */
  readonly claim: Claim | null
  /** Names the process in front of each line that is shown; null: the run. */
  readonly label: string | null
  readonly env: Readonly<Record<string, string>>
  readonly outputDir: string
  readonly logPath: string
  /** Open Node's IPC channel, for a program that calls `process.send('ready')`. */
  readonly hasIpcChannel: boolean
  /** How often its memory is measured. */
  readonly measureIntervalMs: number
}

export type WatchdogStart = { readonly db: string; readonly heartbeat: HeartbeatOptions }

export type ToWatchdog =
  | ToService
  | ({ readonly type: 'begin' } & WatchdogStart)
  | { readonly type: 'run'; readonly spec: CommandSpec }
  /** Ends the command: SIGTERM first, or SIGKILL at once. */
  | { readonly type: 'end'; readonly id: string; readonly force: boolean }
  /** The run ended before the command: no more activity to report. */
  | { readonly type: 'run-ended'; readonly id: string }
  /** The run was claimed again: activity is reported under this claim. */
  | { readonly type: 'claimed'; readonly id: string; readonly claim: Claim }

export type FromWatchdog = FromService | ManagedProcessEvent

/** What the watchdog reports about a command. */
export type ManagedProcessEvent =
  | {
      readonly type: 'start-failed'
      readonly id: string
      readonly code: string
      readonly text: string
    }
  | { readonly type: 'tracked'; readonly id: string; readonly tracking: Tracking }
  | { readonly type: 'ready'; readonly id: string }
  /** The command's own process ended; its child processes may still run. */
  | ({ readonly type: 'exited'; readonly id: string } & ProcessExit)
  /** The sum over all its processes, in bytes. */
  | { readonly type: 'memory'; readonly id: string; readonly bytes: number }
  | { readonly type: 'unkillable'; readonly id: string; readonly pids: readonly number[] }
  /** Every process of the command has ended. */
  | ({ readonly type: 'ended'; readonly id: string } & ManagedProcessExit)

/** How the command's own process ended. */
export type ProcessExit = { readonly exitCode: number | null; readonly signal: string | null }

export type ManagedProcessExit = ProcessExit & {
  /** How many processes the kernel killed for lack of memory while it ran, in this cgroup or on the machine. */
  readonly oomKills: number
  /** The line of its stderr that describes an error, without secrets; null if stderr is empty. */
  readonly errorLine: string | null
  readonly artifacts: number
  readonly peakMemory: number | null
  /** The number of processes that had to be killed. */
  readonly killed: number
}

/** Receives the events of a running command. */
export type CommandHost = {
  onMemory(bytes: number): void
  /** The command ended by itself; its remaining processes are being ended. */
  onExit(exit: ProcessExit): void
  onReady(): void
  /** The command runs; its processes are found in this way. */
  onTracked(tracking: Tracking): void
  log(message: string): void
}

/** A command under the watchdog, as Unstuck controls it. */
export type CommandHandle = {
  /** Resolves when every process has ended; rejects with `CommandStartError` if it could not be started. */
  readonly ended: Promise<ManagedProcessExit>
  terminate(force: boolean): void
  /** The run has ended before the command. */
  markSettled(): void
  /** The run was claimed again. */
  setClaim(claim: Claim): void
}

/** The program does not exist, or may not be executed. */
export class CommandStartError extends UnstuckError<'E_COMMAND'> {
  constructor(command: string, code: string, text: string) {
    const isMissing = code === 'ENOENT'
    super(
      'E_COMMAND',
      isMissing
        ? `There is no program ${JSON.stringify(command)} (or no such working folder). Check the name and the PATH; after -- comes the program itself, not a shell line.`
        : `${JSON.stringify(command)} could not be started: ${text}. Check that it may be executed.`,
      { command, reason: code },
    )
  }
}

/** The watchdog process ended: nothing holds the source, and only Unstuck can end the command. */
export class WatchdogLostError extends UnstuckError<'E_GUARDIAN'> {
  constructor(how: string) {
    super('E_GUARDIAN', `The watchdog process ${how}.`, { reason: how })
  }
}

/** The watchdog process as its parent sees it: it sends the heartbeats, and its commands are its children. */
export class Watchdog {
  readonly heartbeat: HeartbeatClient
  readonly #child: ChildProcess
  readonly #commands = new Map<
    string,
    { spec: CommandSpec; host: CommandHost; ended: PendingExit }
  >()
  readonly #ended = Promise.withResolvers<void>()
  #hasExited = false

  constructor(db: string, heartbeat: HeartbeatOptions, handlers: HeartbeatHandlers) {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js'
    const child = fork(new URL(`./watchdog-process.${extension}`, import.meta.url), {
      // In a process group of its own, which signals to the group of this process do not reach.
      detached: true,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    })
    this.#child = child
    child.on('message', (message: FromWatchdog) => {
      if ('id' in message) this.#receive(message)
    })
    onExit(child, () => {
      this.#hasExited = true
      this.#killOrphans()
      this.#ended.resolve()
    })
    this.heartbeat = new HeartbeatClient(processTransport(child), heartbeat, handlers)
    send(child, { type: 'begin', db, heartbeat })
  }

  get pid(): number | undefined {
    return this.#child.pid
  }

  run(spec: CommandSpec, host: CommandHost): CommandHandle {
    const ended = Promise.withResolvers<ManagedProcessExit>()
    this.#commands.set(spec.id, { spec, host, ended })
    if (this.#hasExited) this.#killOrphans()
    else send(this.#child, { type: 'run', spec })
    return {
      ended: ended.promise,
      terminate: (force) => send(this.#child, { type: 'end', id: spec.id, force }),
      markSettled: () => send(this.#child, { type: 'run-ended', id: spec.id }),
      setClaim: (claim) => send(this.#child, { type: 'claimed', id: spec.id, claim }),
    }
  }

  /** Releases the presence; the watchdog then ends by itself. */
  async stop(): Promise<void> {
    await this.heartbeat.stop()
    await this.#ended.promise
  }

  #receive(message: ManagedProcessEvent): void {
    const command = this.#commands.get(message.id)
    if (!command) return
    const { spec, host, ended } = command
    switch (message.type) {
      case 'tracked':
        return host.onTracked(message.tracking)
      case 'exited':
        return host.onExit(message)
      case 'ready':
        return host.onReady()
      case 'memory':
        return host.onMemory(message.bytes)
      case 'unkillable':
        return host.log(`killed, but still running: processes ${message.pids.join(', ')}`)
      case 'start-failed':
        this.#commands.delete(message.id)
        return ended.reject(new CommandStartError(spec.command[0]!, message.code, message.text))
      case 'ended':
        this.#commands.delete(message.id)
        return ended.resolve(message)
    }
  }

  /** Ends the commands of a watchdog that died. */
  #killOrphans(): void {
    for (const [id, { spec, ended }] of this.#commands) {
      this.#commands.delete(id)
      const roots = { processTag: spec.processTag, execution: id }
      void endTree(roots, { killTimeoutMs: 0, clock: REAL_CLOCK }).then(
        (killed) => ended.resolve({ ...NOT_STARTED, signal: 'SIGKILL', killed }),
        ended.reject,
      )
    }
  }
}

/** Carries the heartbeat's messages over the channel to the watchdog process. Messages about commands have an `id`. */
function processTransport(child: ChildProcess): HeartbeatTransport {
  return {
    post: (message) => send(child, message),
    listen: (onMessage, onEnd) => {
      child.on('message', (message: FromWatchdog) => {
        if (!('id' in message)) onMessage(message)
      })
      onExit(child, (how) => onEnd(new WatchdogLostError(how)))
    },
    // The channel keeps the program running until `stop()`, as long as a command may run.
    ref: () => {},
    unref: () => {},
  }
}

function send(child: ChildProcess, message: ToWatchdog): void {
  if (child.connected) child.send(message, () => {})
}

/** Calls back when the process has ended or could not be started. */
function onExit(child: ChildProcess, callback: (how: string) => void): void {
  child.once('exit', (code, signal) => callback(`ended (${signal ?? `exit code ${code}`})`))
  child.on('error', (error) => {
    // A process that never started emits no exit.
    if (child.pid === undefined) callback(`could not be started: ${error.message}`)
  })
}

type PendingExit = PromiseWithResolvers<ManagedProcessExit>

/** The end of a command that never started. */
export const NOT_STARTED: ManagedProcessExit = {
  exitCode: null,
  signal: null,
  oomKills: 0,
  errorLine: null,
  artifacts: 0,
  peakMemory: null,
  killed: 0,
}
