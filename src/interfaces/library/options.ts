import type { DatabaseOptions } from '../../app/config.ts'
import type { UnstuckEvent } from '../../core/model/event.ts'
import type { PolicyOptions } from '../../lib/validate/policy-options.ts'
import type { RunStatus } from '../../core/model/run.ts'
import type { StandardSchema } from '../../core/model/standard-schema.ts'
import type { TargetStatus } from '../../core/model/target.ts'
import type { Duration, Timestamp } from '../../core/model/time.ts'

/**
 * A run: its id, the last 8 digits of it, a run from a result, or a source: its live run, else its newest. A call that
 * changes something takes only the live run of a source; `resume` takes its last run that can be resumed.
 */
export type RunRef = string | { readonly id: string } | { readonly source: string }

/** A target: its id, the last 8 digits of it, or a target from a result. */
export type TargetRef = string | { readonly id: string }

/** A source: its name, or a crawl or a run of it. */
export type SourceRef = string | { readonly source: string }

/** From when: an age, a time as text, or a `Date`. */
export type Since = Duration | (Timestamp & {}) | Date

/** Part of the options of every asynchronous call. */
export type Abortable = {
  /** Rejects with `signal.reason`. A write that is under way may still happen. @default none */
  signal?: AbortSignal | undefined
}

/** Options of `open`. */
export type OpenOptions = DatabaseOptions &
  Abortable & {
    /** For runs begun here; the config's `policies[source]` wins. @default {} */
    policy?: PolicyOptions | undefined
    /** Gets each event. An error that it throws is ignored. @default none */
    onEvent?: ((event: UnstuckEvent) => void) | undefined
    /** Gets lines that pages write with `context.log`, and warnings about tables of your own. @default none */
    log?: ((line: string) => unknown) | undefined
    /** Whether SIGTERM and SIGINT stop open runs. Set to `false` to handle the signals yourself. @default true */
    signals?: boolean | undefined
  }

/** Options of `begin`. */
export type BeginOptions<C = unknown, S = unknown, D = S> = Abortable & {
  /** Throws `AlreadyDoneError` if a run of this source has succeeded. @default false */
  once?: boolean | undefined
  /** The cursor before the first page; gives `cursor` its type. @default null */
  initialCursor?: C
  /** Checks data at run time. @default none */
  schema?: BeginSchemas<C, S, D> | undefined
  /** For this run, over that of `open`; the config's `policies[source]` wins. @default {} */
  policy?: PolicyOptions | undefined
}

/** Standard Schemas (Zod, Valibot, ArkType …) of a run. */
export type BeginSchemas<C, S, D> = {
  /** Checks and converts the data of each item before it is saved. @default none */
  item?: StandardSchema<S, D>
  /** Checks a stored cursor, perhaps of an older version of the program. @default none */
  cursor?: StandardSchema<unknown, C>
}

/** Part of the options of every call that changes something. */
export type ActOptions = Abortable & {
  /** Reports what would be done and changes nothing. @default false */
  dryRun?: boolean | undefined
}

/** Options of calls that record a reason. */
export type ReasonOptions = ActOptions & {
  /** The reason, for the audit trail. @default the action and the process */
  because?: string | undefined
}

/** Options of `check` and `summary`. */
export type AgeOptions = Abortable & {
  /** Age from which a run without worker, progress and checkpoint is dead. @default that of the policy */
  abandonAfter?: Duration | undefined
}

/** Options of `enqueue`. */
export type EnqueueOptions = Abortable & {
  /** Any JSON up to 100 KB: a wrapped command finds it in `UNSTUCK_INPUT`. @default null */
  input?: unknown
}

/** Options of `work`. */
export type WorkOptions = Abortable & {
  /** Ends when no work is left, instead of waiting for the next run. @default false */
  drain?: boolean | undefined
  /** Starts a run if the source has none. @default true */
  start?: boolean | undefined
  /** Longest time from a stop to the end. @default '25s' */
  stopDeadline?: Duration | undefined
}

/** Options of `recover`. */
export type RecoverOptions = ActOptions & {
  /** `plan` of a dry run: applies exactly that, or throws. @default whatever is found now */
  plan?: string | undefined
  /** Only runs and workers without a heartbeat for longer. @default everything */
  olderThan?: Duration | undefined
  /** Only runs of these sources. @default all */
  sources?: readonly string[] | undefined
  /** Only targets of these groups; runs as a whole are then left alone. @default all */
  groups?: readonly string[] | undefined
}

/** Options of `clean`. */
export type CleanOptions = ActOptions & {
  /** `plan` of a dry run: applies exactly that, or throws. @default whatever is found now */
  plan?: string | undefined
  /** Age from which a run without worker, progress and checkpoint is dead. @default that of the policy */
  abandonAfter?: Duration | undefined
}

/** Options of `acknowledge`. */
export type AcknowledgeOptions = ReasonOptions & {
  /** Removes the mark: it needs attention again. @default false */
  undo?: boolean | undefined
  /** Only targets of these groups. @default all */
  groups?: readonly string[] | undefined
}

/** Options of `unpark`. */
export type UnparkOptions = ActOptions & {
  /** Only these targets. @default all that are parked or stuck */
  targets?: readonly TargetRef[] | undefined
  /** Only targets of these groups. @default all */
  groups?: readonly string[] | undefined
}

/** Options of `resetFailed`. */
export type ResetFailedOptions = ActOptions & {
  /** Only these targets. @default all that failed */
  targets?: readonly TargetRef[] | undefined
  /** Only targets of these groups. @default all */
  groups?: readonly string[] | undefined
  /** Only targets that were tried at most this often. @default all */
  maxAttempts?: number | undefined
}

/** Options of `rewind`. */
export type RewindOptions = ActOptions & {
  /** The last page to keep; 0: from the beginning. */
  to: number
  /** The address of the page after `to`. @default the target's own address */
  next?: string | URL | undefined
  /** The cursor of the page after `to`. @default null */
  cursor?: unknown
}

/** Part of the options of every list. */
export type ListOptions = Abortable & {
  /** Entries per page, 1 to 500. @default 50 */
  limit?: number | undefined
  /** `next` of the page before. @default the first page */
  after?: string | undefined
}

/** Options of `runs`. */
export type RunsOptions = ListOptions & {
  /** Only runs in these statuses; `'live'`: all that have not ended. @default all */
  status?: RunStatus | 'live' | readonly (RunStatus | 'live')[] | undefined
  /** Only runs of this source. @default all */
  source?: SourceRef | undefined
  /** Only runs created since then. @default all */
  since?: Since | undefined
}

/** Options of `targets`. */
export type TargetsOptions = ListOptions & {
  /** Only targets in these statuses. @default all */
  status?: TargetStatus | readonly TargetStatus[] | undefined
  /** Only targets of this group; null: those without one. @default all */
  group?: string | null | undefined
}

/** Options of `items`. */
export type ItemsOptions = ListOptions & {
  /** Only items that this run was the last to save. @default all */
  run?: RunRef | undefined
  /** Only items that a target of this group was the last to save; null: of none. @default all */
  group?: string | null | undefined
  /** Only items that were new or changed since then. @default all */
  since?: Since | undefined
}

/** Options of `workers`. */
export type WorkersOptions = Abortable & {
  /** Only workers of this source. @default all */
  source?: SourceRef | undefined
}

/** Options of `history`. */
export type HistoryOptions = ListOptions & {
  /** Only changes of runs of this source. @default all */
  source?: SourceRef | undefined
  /** Only changes of this run. @default all */
  run?: RunRef | undefined
  /** Only this action, as in `'cancel'`. @default all */
  action?: string | undefined
  /** Only changes since then. @default all */
  since?: Since | undefined
}
