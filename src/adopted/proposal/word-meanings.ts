import type { AdoptedStatuses } from '../mapping.ts'

export type Meaning = keyof AdoptedStatuses

/**
 * What people call the states of their runs. Those that come first are the better choice where one of several has to be
 * written. `paused` is in none: somebody did that on purpose, and nothing is to be done about it.
 */
const MEANINGS = {
  active: [
    'running',
    'in_progress',
    'inprogress',
    'processing',
    'crawling',
    'scraping',
    'fetching',
    'extracting',
    'importing',
    'exporting',
    'syncing',
    'executing',
    'working',
    'started',
    'starting',
    'progress',
    'ongoing',
    'busy',
    'claimed',
    'locked',
    'leased',
    'reserved',
    'in_flight',
    'retrying',
    'active',
  ],
  queued: [
    'queued',
    'enqueued',
    'pending',
    'waiting',
    'planned',
    'scheduled',
    'ready',
    'todo',
    'to_do',
    'new',
    'created',
    'submitted',
    'received',
    'not_started',
    'available',
    'retry',
  ],
  interrupted: ['interrupted', 'resumable'],
  succeeded: [
    'succeeded',
    'success',
    'successful',
    'completed',
    'complete',
    'done',
    'finished',
    'processed',
    'ok',
    'passed',
  ],
  failed: ['failed', 'failure', 'fail', 'error', 'errored', 'crashed', 'exception', 'dead'],
  cancelled: [
    'cancelled',
    'canceled',
    'aborted',
    'stopped',
    'killed',
    'terminated',
    'revoked',
    'skipped',
  ],
  abandoned: [
    'abandoned',
    'timeout_auto_cleaned',
    'auto_cleaned',
    'timeout',
    'timed_out',
    'timedout',
    'expired',
    'stale',
    'orphaned',
  ],
  stuck: ['stuck', 'held', 'on_hold', 'blocked'],
  parked: ['parked', 'dead_letter', 'quarantined', 'set_aside', 'ignored'],
} as const satisfies Partial<Record<Meaning, readonly string[]>>

/** Of a target, what waits is planned. */
const OF_TARGETS: ReadonlySet<Meaning> = new Set(['stuck', 'parked'])

/** Said of nothing but work; `active` or `pending` are said of customers and orders too. */
const SURELY_WORK = new Set<string>(MEANINGS.active.slice(0, 13))

/** What a word probably means, and how good a choice it is to be written; null: nobody knows. */
export function meaningOf(
  word: string,
  kind: 'runs' | 'targets',
): { meaning: Meaning; rank: number } | null {
  const plain = plainWord(word)
  for (const [meaning, words] of Object.entries(MEANINGS) as [Meaning, readonly string[]][]) {
    const rank = words.indexOf(plain)
    if (rank < 0) continue
    if (kind === 'runs') return OF_TARGETS.has(meaning) ? null : { meaning, rank }
    return {
      meaning: meaning === 'queued' || meaning === 'interrupted' ? 'planned' : meaning,
      rank,
    }
  }
  return null
}

export function isSurelyWork(word: string): boolean {
  return SURELY_WORK.has(plainWord(word))
}

/** `pending` may wait for its turn or be at work already: it depends on whose word it is. */
export function isPending(word: string): boolean {
  return plainWord(word) === 'pending'
}

/** A word that is not there, spelled as those that are: `FAILED` where there is `RUNNING`. */
export function spelledLike(word: string, others: readonly string[]): string {
  const letters = others.join('').replaceAll(/[^a-z]/gi, '')
  if (letters !== '' && letters === letters.toUpperCase()) return word.toUpperCase()
  const areCapitalised = others.length > 0 && others.every((other) => /^[A-Z][a-z]/.test(other))
  return areCapitalised ? word[0]!.toUpperCase() + word.slice(1) : word
}

/** Only what is made of plain letters means anything: a look-alike does not. */
function plainWord(word: string): string {
  if (!/^[a-z][a-z0-9 _.–-]{0,59}$/i.test(word)) return ''
  return word
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[ _.–-]+/g, '_')
}
