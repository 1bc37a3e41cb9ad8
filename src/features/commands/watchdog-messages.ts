import type { Claim } from '../../core/model/claim.ts'
import type { RunId } from '../../core/model/id.ts'
import type { FromService, HeartbeatOptions, ToService } from '../../core/heartbeat/transport.ts'
import type { Tracking } from './start-tagged.ts'

/** Everything the guardian must know to start a command, and to end it alone if it has to. */
export type CommandSpec = {
  /** Of the execution. */
  readonly id: string
  readonly run: RunId
  /** In whose name its activity is noted, also when Unstuck is gone. */
  readonly claim: Claim
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
  /** The source's; every process of the command carries it. */
  readonly processTag: string
  readonly killTimeoutMs: number
  readonly outputDir: string
  readonly logPath: string
  readonly maxLogBytes: number
  readonly quiet: boolean
  /** Values that no line may show. */
  readonly secrets: readonly string[]
  /** Whether Node's own channel is opened, for a program that says `process.send('ready')`. */
  readonly hasIpcChannel: boolean
  /** How often its memory is looked at. */
  readonly measureIntervalMs: number
}

export type WatchdogStart = { readonly db: string; readonly heartbeat: HeartbeatOptions }

export type ToWatchdog =
  | ToService
  | ({ readonly type: 'begin' } & WatchdogStart)
  | { readonly type: 'run'; readonly spec: CommandSpec }
  /** Politely, or at once. */
  | { readonly type: 'end'; readonly id: string; readonly force: boolean }
  /** Its run has ended before it did: there is nothing more to note. */
  | { readonly type: 'settled'; readonly id: string }
  /** Its run was claimed again: activity is noted in the name of this claim. */
  | { readonly type: 'claimed'; readonly id: string; readonly claim: Claim }

export type FromWatchdog = FromService | ManagedProcessEvent

/** What is heard of a command. */
export type ManagedProcessEvent =
  | { readonly type: 'refused'; readonly id: string; readonly code: string; readonly text: string }
  | { readonly type: 'tracked'; readonly id: string; readonly tracking: Tracking }
  | { readonly type: 'ready'; readonly id: string }
  /** The command itself; what it started may still be there. */
  | { readonly type: 'exited'; readonly id: string }
  /** Of all its processes together, in bytes. */
  | { readonly type: 'memory'; readonly id: string; readonly bytes: number }
  | { readonly type: 'stubborn'; readonly id: string; readonly pids: readonly number[] }
  /** Every process of it is gone. */
  | ({ readonly type: 'over'; readonly id: string } & ManagedProcessExit)

export type ManagedProcessExit = {
  readonly exitCode: number | null
  readonly signal: string | null
  readonly oomKills: number
  readonly artifacts: number
  readonly peakMemory: number | null
  /** Processes that had to be killed. */
  readonly killed: number
}
