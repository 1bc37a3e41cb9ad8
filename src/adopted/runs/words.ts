import type { RunStatus } from '../../model/run.ts'
import type { TargetStatus } from '../../model/target.ts'
import type { Action } from '../../model/verdict.ts'
import type { AdoptedStatuses, Mapping } from '../mapping.ts'

type Meaning = keyof AdoptedStatuses

/** What each of the user's words means for a row that is a run. */
const AS_RUN: Readonly<Record<Meaning, RunStatus>> = {
  active: 'running',
  queued: 'queued',
  planned: 'queued',
  interrupted: 'interrupted',
  succeeded: 'succeeded',
  failed: 'failed',
  stuck: 'failed',
  parked: 'failed',
  cancelled: 'cancelled',
  abandoned: 'abandoned',
}

/** The same for a row that is a target. */
const AS_TARGET: Readonly<Record<Meaning, TargetStatus>> = {
  active: 'in_progress',
  queued: 'planned',
  planned: 'planned',
  interrupted: 'planned',
  succeeded: 'done',
  failed: 'failed',
  stuck: 'stuck',
  parked: 'parked',
  cancelled: 'done',
  abandoned: 'failed',
}

/** A run's one target, which no row of its own speaks of. */
const TARGET_OF_RUN: Readonly<Record<RunStatus, TargetStatus>> = {
  queued: 'planned',
  running: 'planned',
  interrupted: 'planned',
  succeeded: 'done',
  failed: 'failed',
  cancelled: 'planned',
  abandoned: 'planned',
}

export function runStatusOf(mapping: Mapping, word: string): RunStatus {
  const meaning = meaningIn(mapping, word)
  return meaning === null ? guessedEnd(word) : AS_RUN[meaning]
}

export function targetStatusOf(mapping: Mapping, word: string): TargetStatus {
  if (mapping.kind === 'runs') return TARGET_OF_RUN[runStatusOf(mapping, word)]
  const meaning = meaningIn(mapping, word)
  if (meaning !== null) return AS_TARGET[meaning]
  const end = guessedEnd(word)
  return end === 'failed' || end === 'abandoned' ? 'failed' : 'done'
}

/** All words that were mapped to what counts as one of these. Words that nobody mapped are not among them. */
export function wordsOf(
  mapping: Mapping,
  statuses: readonly (RunStatus | TargetStatus)[],
): string[] {
  const means: Readonly<Record<Meaning, RunStatus | TargetStatus>> =
    mapping.kind === 'runs' ? AS_RUN : AS_TARGET
  return (Object.keys(means) as Meaning[])
    .filter((meaning) => statuses.includes(means[meaning]))
    .flatMap((meaning) => mapping.words[meaning])
}

export function isMapped(mapping: Mapping, word: string): boolean {
  return meaningIn(mapping, word) !== null
}

/** Where a verdict leads: the first of these that the user has a word for. */
const RUN_WORDS: Readonly<Partial<Record<Action | 'cancel', readonly Meaning[]>>> = {
  fail: ['failed'],
  park: ['failed'],
  hold: ['failed'],
  retry: ['failed'],
  resume: ['interrupted', 'queued', 'planned'],
  replan: ['interrupted', 'queued', 'planned'],
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

function meaningIn({ words }: Mapping, word: string): Meaning | null {
  const asked = word.toLowerCase()
  const found = (Object.keys(words) as Meaning[]).find((meaning) =>
    words[meaning].some((one) => one.toLowerCase() === asked),
  )
  return found ?? null
}

/** What nobody mapped has ended, whatever it says: nothing is done to it. Its word only tells how. */
function guessedEnd(word: string): RunStatus {
  if (/fail|error|crash/i.test(word)) return 'failed'
  if (/time.?out|timed.?out|abandon|clean|expired/i.test(word)) return 'abandoned'
  if (/succe|done|complete|finish|\bok\b/i.test(word)) return 'succeeded'
  return 'cancelled'
}
