import { REAL_CLOCK } from '../core/host/clock.ts'
import { withRetry } from '../core/store/open.ts'
import { runName } from '../core/model/traits.ts'
import { pauseReason, type Paused, type Run } from '../core/model/run.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import { iso, type Millis } from '../core/model/time.ts'
import { isLost } from '../core/recovery/assess.ts'
import type { SourceLockState } from '../core/recovery/source-lock.ts'
import type { Store } from '../core/store/store.ts'
import { SOURCE_STORE, type SourceState } from '../features/sources/store/store.ts'
import type { Sentence } from '../lib/text/sentence.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { formatAgo, formatIn } from './format.ts'
import type { Source } from './records.ts'

/** What applies to a source beyond its runs: pauses and the next start, for all interfaces. */

export type SourceReport = {
  readonly state: SourceState
  /** Its live run, else its last; null before its first. */
  readonly run: Run | null
}

export async function findPause(store: Store, source: string): Promise<Paused | null> {
  const [state] = await (await store.extend(SOURCE_STORE)).sourceStates([source])
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
  locks: readonly SourceLockState[],
): SourceState[] {
  const waiting = new Set(
    locks
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
    // It is stored by the clock of the database, a fraction of a second beside that of the schedule.
    nextStartAt: nextStartAt === null ? null : iso(Math.round(nextStartAt / 1_000) * 1_000),
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

/** Returns when the supervisor that waits starts a run; null: it does not wait for one. */
export function describeNextStart(
  { kind, status, paused }: Run,
  { source, nextStartAt }: SourceState,
  now: Millis,
): string | null {
  const isIdle = status === 'queued' || status === 'interrupted'
  if (!isIdle || kind === 'crawl' || paused || nextStartAt === null) return null
  return `Its supervisor starts it ${formatIn(nextStartAt, now)}; \`${unstuckCommand('run-now', [source])}\` starts it now.`
}

type StatesBySource = ReadonlyMap<string, SourceState>

export function bySource(states: readonly SourceState[]): StatesBySource {
  return new Map(states.map((state) => [state.source, state]))
}

/** Returns whether a supervisor that waits starts this run. */
export function startsByItself(run: Run, states: StatesBySource, now: Millis): boolean {
  const state = states.get(run.source)
  return state !== undefined && describeNextStart(run, state, now) !== null
}

/** `Wrapped: portal, between two runs, next start in 3 h`, for commands that do not run now. */
export function wrappedSentences(
  locks: readonly SourceLock[],
  live: readonly Run[],
  states: StatesBySource,
  now: Millis,
): Sentence[] {
  const runs = new Map(live.map((run) => [run.source, run]))
  return locks.flatMap(({ source, worker, unlockingSince }): Sentence[] => {
    const run = runs.get(source)
    if (worker === null || (run && !startsByItself(run, states, now))) return []
    if (unlockingSince !== null) return [[`Wrapped: ${source}, its command is being ended`]]
    const state = states.get(source)
    if (run && state)
      return [
        [`Wrapped: ${source}, run ${runName(run)} waits. ${describeNextStart(run, state, now)}`],
      ]
    const text = state && describeState(state, now)
    return [[`Wrapped: ${source}, between two runs${text ? `, ${text}` : ''}`]]
  })
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
