import type { Claim } from '../../core/model/claim.ts'
import type { RunId } from '../../core/model/id.ts'
import type { FromService, HeartbeatOptions, ToService } from '../../core/heartbeat/transport.ts'
import type { Tracking } from './start-tagged.ts'

/** What the watchdog needs to start a command, and to end it without Unstuck. */
export type CommandSpec = {
  /** The execution's id. */
  readonly id: string
  readonly run: RunId
  /** The claim under which its activity is reported, also after Unstuck died. */
  readonly claim: Claim
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** The source's tag; every process of the command carries it. */
  readonly processTag: string
  readonly killTimeoutMs: number
  readonly outputDir: string
  readonly logPath: string
  readonly maxLogBytes: number
  readonly quiet: boolean
  /** Values to redact from the output. */
  readonly secrets: readonly string[]
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
  | { readonly type: 'exited'; readonly id: string }
  /** The sum over all its processes, in bytes. */
  | { readonly type: 'memory'; readonly id: string; readonly bytes: number }
  | { readonly type: 'unkillable'; readonly id: string; readonly pids: readonly number[] }
  /** Every process of the command has ended. */
  | ({ readonly type: 'ended'; readonly id: string } & ManagedProcessExit)

export type ManagedProcessExit = {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly oomKills: number
  readonly artifacts: number
  readonly peakMemory: number | null
  /** The number of processes that had to be killed. */
  readonly killed: number
}
