import type { Severity } from '../core/decide/health.ts'
import type { Role } from '../lib/http/role.ts'
import type { RunStatus } from '../core/model/run.ts'
import type { TargetStatus } from '../core/model/target.ts'
import type { RunOrigin } from '../core/model/traits.ts'
import type { Timestamp } from '../core/model/time.ts'
import type { AllowedAction } from './allowed-actions.ts'
import type {
  AuditCount,
  AuditEntry,
  Counts,
  Item,
  ListedRun,
  Rate,
  Run,
  Source,
  Target,
  Worker,
  AssessedRun,
} from './records.ts'
import type * as results from './results.ts'

export type * from './records.ts'
export type * from './results.ts'
export type { AllowedAction } from './allowed-actions.ts'

/**
 * The JSON responses of the HTTP API. The OpenAPI document is made of these types and their comments
 * (`npm run openapi`): of each exported type by its name.
 */
export type Responses = {
  advice: Advice
  actionResult: results.ActionResult
  alerts: AlertList
  cleaning: Cleaning
  config: Config
  deadLetterReplan: DeadLetterReplan
  deadLetters: DeadLetters
  deadLetterTargets: List<DeadLetterTarget>
  deletion: Deletion
  explanation: Explanation
  itemPreviews: { readonly items: readonly ItemPreview[] }
  history: History
  logPage: LogPage
  openApi: Readonly<Record<string, unknown>>
  operations: List<Operation, number>
  overview: Overview
  progress: Progress
  recovery: Recovery
  run: Run
  runDetail: RunDetail
  runs: List<ListedRun>
  series: Series
  session: Session
  summary: Summary
  target: TargetDetail
  targets: List<Target>
  workers: List<Worker>
}

/** A page of a list. */
export type List<T, Position = string> = {
  readonly items: readonly T[]
  /** `after` of the next page; null after the last. */
  readonly next: Position | null
}

type Offers = {
  /** What can be done now. */
  readonly actions: readonly AllowedAction[]
  /** How to revert what was just done; null if nothing was, or it cannot be reverted. */
  readonly undo: results.Undo | null
}

/** `check --json` */
export type Advice = results.Check & Offers

/** `summary --json` */
export type Summary = results.Summary & Offers

/** `explain --json` */
export type Explanation = results.Explanation & Offers

/** `show --json` */
export type RunDetail = Omit<results.RunDetail, 'source'> &
  Offers & {
    /** Whether its source is paused, when its command starts again, and what can be done with it. */
    readonly source: Source & Pick<Offers, 'actions'>
  }

/** `recover --json`; of long lists the first entries. */
export type Recovery = results.Recovery & Offers

/** `clean --json` */
export type Cleaning = Omit<results.Cleaning, 'dead'> &
  Offers & {
    /** Without worker, progress and checkpoint, for longer than `abandonAfter`. */
    readonly dead: readonly (AssessedRun & Pick<Offers, 'actions'>)[]
  }

/** `status --json` */
export type Overview = Omit<results.Status, 'sources'> &
  Offers & {
    /** Sources that are paused, or whose supervisor waits for their next start. */
    readonly sources: readonly (Source & Pick<Offers, 'actions'>)[]
    /** Sources that a wrapped command holds, also between two runs. */
    readonly sourceLocks: readonly SourceLock[]
    /** Alerts that are open now. */
    readonly alerts: readonly Alert[]
    /** All runs ever, by status. */
    readonly totals: Readonly<Partial<Record<RunStatus, number>>>
  }

/** Alerts, with the severity of the overview at the same moment. */
export type AlertList = {
  readonly severity: Severity
  readonly summary: string
  /** How many things need attention, with or without an alert. */
  readonly attention: number
  readonly open: readonly Alert[]
  readonly recent: readonly Alert[]
}

/** An item as a page shows it. */
export type ItemPreview = Pick<
  Item,
  'key' | 'url' | 'run' | 'group' | 'dataset' | 'version' | 'changedAt'
> & {
  /** The first fields of its data, each with the start of its value as text: JSON, if it is not text. */
  readonly fields: readonly {
    readonly name: string
    readonly value: string
    /** The value is longer. */
    readonly isCut: boolean
  }[]
  /** How many more fields it has. */
  readonly omitted: number
}

/** A wrapped command's hold on its source. */
export type SourceLock = {
  readonly source: string
  /** The worker that runs the command; null: none does. */
  readonly worker: string | null
  readonly since: Timestamp | null
  /** When its command was asked to end. */
  readonly endingSince: Timestamp | null
  /** Set when the restart limit is reached. */
  readonly gaveUp: { readonly at: Timestamp; readonly because: string } | null
}

export type Alert = {
  readonly cause: string
  readonly rule: string
  /** Null: it is about several sources. */
  readonly source: string | null
  readonly run: string | null
  readonly because: string
  /** The command that shows or solves it. */
  readonly command: string
  readonly since: Timestamp
  readonly lastSentAt: Timestamp | null
  readonly resolvedAt: Timestamp | null
}

/** `history --json` */
export type History = results.Presented &
  Offers &
  List<AuditEntry, number> & {
    readonly counts: readonly AuditCount[]
  }

/** `progress --json` */
export type Progress = List<{
  readonly run: Run
  readonly counts: Counts
  readonly by: 'group' | 'page' | 'status'
  readonly rows:
    | readonly GroupCounts[]
    | readonly { readonly page: number; readonly targets: number }[]
    | readonly { readonly status: TargetStatus; readonly targets: number }[]
}>

export type GroupCounts = results.RunDetail['groups'][number]

/** A target, its run, and why it is in its state. */
export type TargetDetail = {
  readonly target: Target
  readonly run: Run
  readonly explanation: Explanation
  readonly actions: readonly AllowedAction[]
}

/** What was deleted with a run, or would be. */
export type Deletion = results.Change & {
  readonly run: string
  readonly source: string
  /** The row of a table of your own that it is; null: a run of Unstuck's own. */
  readonly origin: RunOrigin | null
  readonly targets: number
  readonly items: number
  /** Those of its folders on the server's machine that are deleted, or would be. */
  readonly folders: readonly string[]
  /** What could not be removed, in sentences. */
  readonly failures: readonly string[]
}

/** Failed, stuck and parked targets by kind of error. */
export type DeadLetters = {
  readonly total: number
  readonly actions: readonly AllowedAction[]
  /** Not all were read: each count is a minimum, and groups may be missing. */
  readonly isPartial: boolean
  readonly groups: readonly (DeadLetterGroup & Pick<Offers, 'actions'>)[]
}

/** Dead letters with one kind of error. */
export type DeadLetterGroup = {
  readonly fingerprint: string
  /** One of the errors, whole. */
  readonly error: string
  readonly count: number
  readonly statuses: Readonly<Partial<Record<'failed' | 'stuck' | 'parked', number>>>
  readonly sources: readonly string[]
  readonly firstAt: Timestamp
  readonly lastAt: Timestamp
  readonly sample: readonly Pick<Target, 'id' | 'run' | 'origin' | 'key' | 'status'>[]
}

/** A target of a group of dead letters. */
export type DeadLetterTarget = Target & Pick<Offers, 'actions'>

/** Dead letters that are back in the queue, or would be. */
export type DeadLetterReplan = results.Change & {
  readonly targets: number
  /** How many more there are, for another call. */
  readonly left: number
  readonly runs: readonly {
    readonly run: string
    readonly targets: number
    /** Why none of this run are, in a sentence. */
    readonly refused: string | null
  }[]
  readonly plan: string
}

/** `config show --json` */
export type Config = {
  readonly path: string | null
  readonly db: { readonly address: string; readonly origin: string | null }
  readonly preset: string | null
  readonly policies: readonly {
    readonly source: string | null
    readonly settings: readonly results.Setting[]
  }[]
  readonly url: string | null
  readonly alerts: readonly { readonly when: string; readonly [setting: string]: unknown }[]
  readonly channels: Readonly<
    Record<string, { readonly host: string; readonly [setting: string]: unknown } | null>
  >
}

/** The caller and the server. */
export type Session = {
  readonly version: string
  readonly name: string
  readonly role: Role
  /** False: no login is needed (loopback without tokens). */
  readonly loggedIn: boolean
  readonly readOnly: boolean
  readonly store: { readonly engine: 'sqlite' | 'postgres'; readonly where: string }
  readonly now: Timestamp
}

/** Charts: one point per step. A step without a sample has null, which is not the same as 0. */
export type Series = {
  readonly since: Timestamp
  readonly until: Timestamp
  readonly stepSeconds: number
  readonly points: readonly {
    readonly at: Timestamp
    /** Over how much of the step it was counted: a run begins and ends within one. */
    readonly measuredSeconds: Rate
    readonly pages: number | null
    readonly items: number | null
    readonly recoveries: number
  }[]
}

/** A call of an operator through the API, whether or not it changed anything. */
export type Operation = {
  readonly id: number
  readonly at: Timestamp
  readonly actor: string
  readonly address: string | null
  readonly call: string
  readonly selection: unknown
  readonly plan: string | null
  readonly status: number
  readonly result: string
}

/** Lines of a run's log, from after a position in it. */
export type LogPage = {
  readonly lines: readonly {
    readonly at: Timestamp | null
    readonly stream: 'out' | 'err' | 'event'
    /** The event reports an error, or a run that did not succeed. */
    readonly failure?: true
    /** What was printed, or an event as a sentence. */
    readonly text: string
    /** The event as its journal has it: `page_complete key=ca/la page=3`. Null for what was printed. */
    readonly raw: string | null
  }[]
  /** `after` of the next page. */
  readonly next: string | null
  /** True: these are the newest lines, in place of what was shown before; false: they follow it. */
  readonly anew: boolean
  /** Why there is none: it was kept on another machine, or the run printed nothing. */
  readonly because: string | null
}
