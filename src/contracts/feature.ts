import type { Clock } from '../core/host/clock.ts'
import type { Emit } from '../core/model/event.ts'
import type { WorkerId } from '../core/model/id.ts'
import type { Policy } from '../core/model/policy.ts'
import type { Run } from '../core/model/run.ts'
import type { Store } from '../core/store/store.ts'
import type { Finding } from './finding.ts'
import type { CliContext, CommandEntry, CommandResult } from './command.ts'
import type { LogPage } from '../presenters/responses.ts'
import type { Route } from './route.ts'
import type { Options } from './options.ts'
import type { ConfigSection, Secret, Settings } from './settings.ts'
import type { WorkHost, Workers } from './workers.ts'

/**
 * What a feature adds to the program. The command line, the config, the doctor, servers and workers iterate over the
 * list in `features/index.ts`. `--help` loads that list and nothing else, so everything behind it is loaded on demand.
 */
export type Feature = {
  readonly name: string
  readonly commands?: readonly FeatureCommand[]
  readonly config?: () => Promise<ConfigSection<any>>
  /** `unstuck work --exec`. */
  readonly execMode?: () => Promise<ExecMode>
  /** Adds runs of other sources to a store. */
  readonly wrapStore?: (store: Store, host: StoreHost) => Promise<Store>
  /** Calls of the HTTP API. */
  readonly routes?: () => Promise<readonly Route<any, any, any, any>[]>
  /** Logs of runs. The first feature that has one is used. */
  readonly runLog?: () => Promise<RunLogReader>
  readonly services?: (host: ServiceHost) => Promise<readonly BackgroundService[]>
  /** `unstuck doctor`. */
  readonly checks?: (host: CheckHost) => Promise<readonly Finding[]>
  /** `unstuck doctor --security`. `secrets`: those that the config file must not contain. */
  readonly securityChecks?: (
    settings: Settings,
    secrets: readonly Secret[],
  ) => Promise<readonly Finding[]>
}

export type FeatureCommand = CommandEntry & {
  readonly group: string
  /** The help lists it before this command; else at the end of its group. */
  readonly before?: string
}

export type ExecMode = {
  readonly options: Options
  run(context: CliContext<any, any>, command: readonly string[]): Promise<CommandResult>
  /** With `--targets`: copies of the command, each of which works on many targets of a source. */
  onTargets(context: CliContext<any, any>, command: readonly string[]): Promise<TargetWork>
}

/** Work on the targets of a source by copies of a command. */
export type TargetWork = {
  readonly source: string
  readonly policy: Policy
  /** How long a copy may take from SIGTERM to its end. */
  readonly killTimeoutMs: number
  /** The options about the command, for the command line that continues the work. */
  readonly flags: Readonly<Record<string, string | boolean | undefined>>
  readonly makeWorkers: (host: WorkHost) => Promise<Workers>
}

export type CheckHost = {
  /** Null: the config is invalid. */
  readonly settings: Settings | null
  /** Of the database; null: unknown. */
  readonly address: string | null
}

export type StoreHost = {
  readonly settings: Settings
  /** Of the store's database. */
  readonly address: string
  readonly log: (line: string) => void
}

export type LogHost = {
  readonly store: Store
  /** Logs are read only from this folder, and no link in it is followed. */
  readonly dataFolder: string
}

export type RunLogReader = {
  /** Returns a part of a run's log, after a position or its newest lines; null if there is none here. */
  read(
    host: LogHost,
    run: Run,
    after: string | null,
    limit: number,
  ): Promise<Omit<LogPage, 'because'> | null>
  /** Returns why there is no log; null if this feature does not know. */
  explainMissing(host: LogHost, run: Run): Promise<string | null>
}

/** Runs beside a server or a worker. Neither waits for it. */
export type BackgroundService = {
  start(): void
  /** Called when the work is done, before `stop`. */
  finish?(): Promise<void>
  stop(): Promise<void>
}

export type ServiceHost = {
  readonly process: 'server' | 'worker'
  /** Whether it recovers runs. */
  readonly recovers: boolean
  readonly settings: Settings
  /** Called for each use: the database may be unreachable at the start. */
  readonly open: () => Promise<Store>
  /** The worker of this process; null: none (yet). */
  readonly worker: () => WorkerId | null
  readonly emit: Emit
  readonly log: (line: string) => void
  readonly clock: Clock
}
