import { REAL_CLOCK } from '../core/host/clock.ts'
import { withRetry } from '../core/store/open.ts'
import type { ObserverHealth } from '../core/decide/liveness.ts'
import { pauseReason, type Paused, type Run } from '../core/model/run.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import { iso, type Millis } from '../core/model/time.ts'
import { isLost } from '../core/recovery/assess.ts'
import { assessSourceLock } from '../core/recovery/source-lock.ts'
import type { Store, WorkerObservation } from '../core/store/store.ts'
import { SOURCE_STORE, type SourceState } from '../features/sources/store/store.ts'
import type { Sentence } from '../lib/text/sentence.ts'
import { unstuckCommand } from '../lib/text/shell-command.ts'
import { unknownSource } from './find.ts'
import { formatAgo, formatIn } from './format.ts'
import type { Source } from './records.ts'

/** What applies to a source beyond its runs: pauses and the next start, for all interfaces. */

export type SourceReport = {
  readonly state: SourceState
  /** Its live run, else its last; null before its first. */
  readonly run: Run | null
}

/** Reads a source. A next start that a killed supervisor left behind counts for nothing. */
export async function loadSource(store: Store, source: string): Promise<SourceReport> {
  const [states, locks, live, last] = await Promise.all([
    store.extend(SOURCE_STORE).then((sources) => sources.sourceStates(source)),
    store.sourceLocks(source),
    store.liveRun(source),
    store.runs({ source, limit: 1 }),
  ])
  const run = live ?? last.items[0] ?? null
  if (run === null && states.length === 0 && locks.length === 0)
    throw await unknownSource(store, source)
  const observations = states[0]?.nextStartAt ? await store.observations() : []
  const [state] = currentStates(states, locks, observations)
  const unknown = { source, paused: null, nextStartAt: null, isRunNow: false, lastWork: null }
  return { run, state: state ?? unknown }
}

export async function findPause(store: Store, source: string): Promise<Paused | null> {
  const [state] = await (await store.extend(SOURCE_STORE)).sourceStates(source)
  return state?.paused ?? null
}

const POLL_MS = 1_000

/** Resolves when the pause of a source has ended, or the signal fires. */
export async function whenUnpaused(
  store: Store,
  source: string,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted && (await withRetry(() => findPause(store, source), signal)) !== null)
    await REAL_CLOCK.sleep(POLL_MS, signal)
}

/** Returns the states of sources, without the next starts of supervisors that are gone. */
export function currentStates(
  states: readonly SourceState[],
  locks: readonly SourceLock[],
  observations: readonly WorkerObservation[],
  observer?: ObserverHealth,
): SourceState[] {
  const waiting = new Set(
    locks
      .map((lock) => assessSourceLock(lock, observations, observer))
      .filter(({ holder }) => holder && !isLost(holder.assessment))
      .map(({ lock }) => lock.source),
  )
  return states
    .map((state) => (waiting.has(state.source) ? state : { ...state, nextStartAt: null }))
    .filter(({ paused, nextStartAt }) => paused !== null || nextStartAt !== null)
}

export function sourceView({ source, paused, nextStartAt }: SourceState): Source {
  return {
    source,
    paused: paused && { since: iso(paused.at), because: paused.because },
    nextStartAt: nextStartAt === null ? null : iso(nextStartAt),
  }
}

/** `paused 5 min ago: the site is down`, `next start in 3 h`; one or both; null: nothing is to be said. */
export function describeState(
  { paused, nextStartAt }: Pick<SourceState, 'paused' | 'nextStartAt'>,
  now: Millis,
): string | null {
  const parts = [
    paused && `paused ${formatAgo(paused.at, now)}${pauseReason(paused)}`,
    nextStartAt !== null &&
      `next start ${formatIn(nextStartAt, now)}${paused ? ' if unpaused' : ''}`,
  ].filter(Boolean)
  return parts.length > 0 ? parts.join('; ') : null
}

/** `Paused: shop, 5 min ago: their site is down. Undo: …` */
export function pausedSentences(states: readonly SourceState[], now: Millis): Sentence[] {
  return states.flatMap(({ source, paused }): Sentence[] =>
    paused
      ? [
          [
            `Paused: ${source}, ${formatAgo(paused.at, now)}${pauseReason(paused)}. End it with \`${unstuckCommand('unpause', [source])}\`.`,
          ],
        ]
      : [],
  )
}
