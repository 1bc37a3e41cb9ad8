import {
  ADOPTED_DEEDS,
  type AdoptedDeed,
  type AdoptedRun,
  type RunStatus,
} from '../../../core/model/run.ts'
import type { TargetStatus } from '../../../core/model/target.ts'
import type { Action } from '../../../core/model/verdict.ts'
import type { AdoptedStatuses, Mapping } from '../mapping.ts'

type Meaning = keyof AdoptedStatuses

/** What each of the user's words means for a row that is a run. */
const AS_RUN = {
  active: 'running',
  queued: 'queued',
  interrupted: 'interrupted',
  succeeded: 'succeeded',
  failed: 'failed',
  cancelled: 'cancelled',
  abandoned: 'abandoned',
} as const satisfies Partial<Record<Meaning, RunStatus>>

/** The same for a row that is a target. Of one that was cancelled nothing is left to do, and nobody is to look at it. */
const AS_TARGET = {
  active: 'in_progress',
  planned: 'planned',
  succeeded: 'done',
  failed: 'failed',
  stuck: 'stuck',
  parked: 'parked',
  cancelled: 'done',
  abandoned: 'failed',
} as const satisfies Partial<Record<Meaning, TargetStatus>>

/**
 * A run's one target, which no row of its own speaks of. Of a run that is running it is at work, whether or not it is
 * known by whom; one that was cancelled or abandoned never got done, as in runs of our own.
 */
const TARGET_OF_RUN: Readonly<Record<RunStatus, TargetStatus>> = {
  queued: 'planned',
  running: 'in_progress',
  interrupted: 'planned',
  succeeded: 'done',
  failed: 'failed',
  cancelled: 'planned',
  abandoned: 'planned',
}

export function runStatusOf(mapping: Mapping, word: string): RunStatus {
  return meaningIn(AS_RUN, mapping, word) ?? guessedEnd(word)
}

export function targetStatusOf(mapping: Mapping, word: string): TargetStatus {
  if (mapping.kind === 'runs') return TARGET_OF_RUN[runStatusOf(mapping, word)]
  const status = meaningIn(AS_TARGET, mapping, word)
  if (status !== null) return status
  const end = guessedEnd(word)
  return end === 'failed' || end === 'abandoned' ? 'failed' : 'done'
}

/** All words that were mapped to what counts as one of these. Words that nobody mapped are not among them. */
export function wordsOf(
  mapping: Mapping,
  statuses: readonly (RunStatus | TargetStatus)[],
): string[] {
  return Object.entries(mapping.kind === 'runs' ? AS_RUN : AS_TARGET)
    .filter(([, status]) => statuses.includes(status))
    .flatMap(([meaning]) => mapping.words[meaning as Meaning])
}

export function isMapped(mapping: Mapping, word: string): boolean {
  return meaningIn(mapping.kind === 'runs' ? AS_RUN : AS_TARGET, mapping, word) !== null
}

/** Where a verdict leads: the first of these that the user has a word for. */
const RUN_WORDS: Readonly<Partial<Record<Action | 'cancel', readonly Meaning[]>>> = {
  fail: ['failed'],
  park: ['failed'],
  hold: ['failed'],
  retry: ['failed'],
  resume: ['interrupted', 'queued'],
  replan: ['interrupted', 'queued'],
  abandon: ['abandoned', 'failed'],
  cancel: ['cancelled'],
}
const TARGET_WORDS: typeof RUN_WORDS = {
  fail: ['failed'],
  park: ['parked', 'stuck', 'failed'],
  hold: ['stuck'],
  resume: ['planned'],
  replan: ['planned'],
}

/** What is to be written, or the names in `statuses` of which one has to be mapped for it. */
export function wordFor(
  mapping: Mapping,
  action: Action | 'cancel',
): { word: string } | { missing: readonly Meaning[] } {
  const meanings = (mapping.kind === 'runs' ? RUN_WORDS : TARGET_WORDS)[action] ?? []
  const word = meanings.flatMap((meaning) => mapping.words[meaning])[0]
  return word === undefined ? { missing: meanings } : { word }
}

/** For the log and for people: what to write into the config. */
export function notMapped(
  { name, kind }: Mapping,
  action: Action | 'cancel',
  missing: readonly string[],
): string {
  const words = missing.map((meaning) => `adopted.${name}.statuses.${meaning}`).join(' or ')
  const what = kind === 'runs' ? 'run' : 'target'
  return words === ''
    ? `The verdict ${action} means nothing for a ${what} of ${name}`
    : `There is no word for what ${action} makes of a ${what} of ${name}: map ${words} in the config`
}

/** Verdicts that cannot be carried out on its rows, each with what to map. */
export function lackingIn(mapping: Mapping): Readonly<Record<string, string>> {
  const actions = Object.keys(mapping.kind === 'runs' ? RUN_WORDS : TARGET_WORDS) as Action[]
  return Object.fromEntries(
    actions.flatMap((action) => {
      const found = wordFor(mapping, action)
      return 'missing' in found ? [[action, notMapped(mapping, action, found.missing)]] : []
    }),
  )
}

/** The row as a run, or the table (whose key is empty): whose it is, and what can become of it. */
export function adoptedRun(mapping: Mapping, key: string): AdoptedRun {
  const known = WITHOUT_KEY.get(mapping) ?? withoutKey(mapping)
  WITHOUT_KEY.set(mapping, known)
  return { ...known, key }
}

/** The same for each row of a table, of which there may be very many. */
const WITHOUT_KEY = new WeakMap<Mapping, Omit<AdoptedRun, 'key'>>()

function withoutKey(mapping: Mapping): Omit<AdoptedRun, 'key'> {
  const cannot = lackingIn(mapping)
  const isAny = Object.keys(cannot).length > 0
  return { table: mapping.name, can: deedsOf(mapping), ...(isAny && { cannot }) }
}

/** What people can have done to its rows. A row that is a run is never set aside; a whole table is never ended. */
function deedsOf(mapping: Mapping): AdoptedDeed[] {
  const can = (action: Action | 'cancel'): boolean => 'word' in wordFor(mapping, action)
  const { parked, stuck } = mapping.words
  const canPark = mapping.kind === 'targets' && parked.length + stuck.length > 0
  return ADOPTED_DEEDS.filter((deed) => (deed === 'park' ? canPark : can(deed)))
}

/** What the word is in one of the tables above. */
function meaningIn<Status>(
  means: Readonly<Partial<Record<Meaning, Status>>>,
  { words }: Mapping,
  word: string,
): Status | null {
  const asked = word.toLowerCase()
  const found = (Object.keys(means) as Meaning[]).find((meaning) =>
    words[meaning].some((one) => one.toLowerCase() === asked),
  )
  return (found && means[found]) ?? null
}

/** What nobody mapped has ended, whatever it says: nothing is done to it. Its word only tells how. */
function guessedEnd(word: string): RunStatus {
  if (/fail|error|crash/i.test(word)) return 'failed'
  if (/time.?out|timed.?out|abandon|clean|expired/i.test(word)) return 'abandoned'
  if (/succe|done|complete|finish|\bok\b/i.test(word)) return 'succeeded'
  return 'cancelled'
}
