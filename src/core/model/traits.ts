import { unstuckCommand } from './shell-command.ts'
import { shortId, type Id } from './id.ts'
import type { Action } from './verdict.ts'

/** Actions on a run, in the order in which they are offered. */
export const RUN_ACTIONS = [
  'resume',
  'reset-failed',
  'unpark',
  'acknowledge',
  'retry',
  'revert',
  'fail',
  'cancel',
  'delete',
] as const
export type RunAction = (typeof RUN_ACTIONS)[number]

/** Actions on a target, in the order in which they are offered. */
export const TARGET_ACTIONS = ['reset', 'unpark', 'acknowledge', 'park', 'rewind'] as const
export type TargetAction = (typeof TARGET_ACTIONS)[number]

/** The row of a table of your own that a run or a target is. */
export type RunOrigin = {
  /** The name of the table in the config. */
  readonly table: string
  /** The key of the row, as text; empty: the whole table is one run. */
  readonly key: string
}

/** What can be done with a run, set by the source that returns it. */
export type RunTraits = {
  /** Null: a run of Unstuck's own tables. */
  readonly origin: RunOrigin | null
  /** Actions that its source supports at all, whatever the status. */
  readonly actions: readonly (RunAction | TargetAction)[]
  /** Verdicts that cannot be applied, and a refused `delete`, each with a sentence that names the setting that would allow it. */
  readonly blocked: Readonly<Partial<Record<Action | 'delete', string>>>
  /** False: a process may work on it without being recorded as its owner, so silence proves nothing. */
  readonly ownerIsKnown: boolean
  /** No time of it is known: `createdAt` and `lastActivityAt` are when it was read. */
  readonly isUndated: boolean
  /** Which program goes on with it. */
  readonly continuedBy: 'worker' | 'own-program'
  /** Which processes recover it: any worker within a second, or a server within a minute. */
  readonly recoveredBy: 'worker' | 'server'
  /** How long recovery may take before an orphaned run is reported. */
  readonly alertAfterMs: number
  /** Whether it has targets that are listed on their own. */
  readonly hasTargets: boolean
  /** Whether its source has at most one live run. */
  readonly isOnlyLive: boolean
  /** Where its results are: in items, or in the datasets of its crawler. */
  readonly items: 'items' | 'datasets'
  /** The cursor of a target is its task, so that `rewind` keeps it. */
  readonly rewindKeepsCursor: boolean
}

/** Runs of Unstuck's own tables. */
const STANDARD: RunTraits = {
  origin: null,
  // A run of its own is cancelled, not failed, by hand.
  actions: [...new Set([...RUN_ACTIONS, ...TARGET_ACTIONS])].filter((one) => one !== 'fail'),
  blocked: {},
  ownerIsKnown: true,
  isUndated: false,
  continuedBy: 'worker',
  recoveredBy: 'worker',
  alertAfterMs: 60_000,
  hasTargets: true,
  isOnlyLive: true,
  items: 'items',
  rewindKeepsCursor: false,
}

/** How a run of Unstuck's own tables is stored. `requests`: a queue whose targets are requests, kept in the cursor. */
export type RunProfile = 'standard' | 'requests'

export const PROFILE_TRAITS: Readonly<Record<RunProfile, RunTraits>> = {
  standard: STANDARD,
  requests: { ...STANDARD, items: 'datasets', rewindKeepsCursor: true },
}

/** `row 4711 of courses`, or `the table courses`. */
export function describeOrigin({ table, key }: RunOrigin): string {
  return key === '' ? `the table ${table}` : `row ${key} of ${table}`
}

/** How a run is named in sentences and commands: `courses:4711` for a row of your own, else the end of its id. */
export function runName(run: {
  readonly id: Id
  readonly traits: Pick<RunTraits, 'origin'>
}): string {
  return rowName(run.traits.origin) ?? shortId(run.id)
}

/** Null for a whole table, and for a key that is not safe to print and type. */
export function rowName(origin: RunOrigin | null): string | null {
  if (origin === null || origin.key === '') return null
  const name = `${origin.table}:${origin.key}`
  return SAFE_NAME.test(name) ? name : null
}

/** Letters of any script and single spaces, but no quotes and nothing that acts on a terminal. */
const SAFE_NAME = /^\w(?:[\p{L}\p{M}\p{N}_@+:,./?=%~#-]| (?! |$)){0,120}$/u

/** `unstuck VERB NAME`, for a run or a row by its name. */
export function commandOn(verb: string, name: string): string {
  return unstuckCommand(verb, [name])
}
