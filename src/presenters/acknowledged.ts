import type { RunId } from '../core/model/id.ts'
import type { Run } from '../core/model/run.ts'
import type { SourceLock } from '../core/model/source-lock.ts'
import { DEAD_LETTER_STATUSES, type DeadLetterStatus } from '../core/model/target.ts'
import type { Millis } from '../core/model/time.ts'
import type { Store } from '../core/store/store.ts'
import { ACKNOWLEDGE_STORE } from '../features/acknowledge/store/store.ts'
import { formatAgo } from './format.ts'

/** How many targets of each run are acknowledged, by status. Runs without any are left out. */
export type AcknowledgedTargets = ReadonlyMap<
  RunId,
  Readonly<Partial<Record<DeadLetterStatus, number>>>
>

/** Reads how many targets of these runs are acknowledged. Reads nothing if no target needs attention. */
export async function loadAcknowledged(
  store: Store,
  runs: readonly Run[],
): Promise<AcknowledgedTargets> {
  const ids = new Set(runs.filter((run) => countDeadLettersOf(run) > 0).map(({ id }) => id))
  if (ids.size === 0) return new Map()
  const found = new Map<RunId, Partial<Record<DeadLetterStatus, number>>>()
  const extension = await store.extend(ACKNOWLEDGE_STORE)
  for (const { run, status, count } of await extension.acknowledgedCounts([...ids]))
    found.set(run, { ...found.get(run), [status]: count })
  return found
}

/** Returns the run without its acknowledged targets; null if nothing of it is left that needs attention. */
export function withoutAcknowledged(run: Run, acknowledged: AcknowledgedTargets): Run | null {
  // Its targets were acknowledged with it: what changes one of them removes the mark of the run.
  if (run.acknowledgedAt !== null) return null
  const counts = acknowledged.get(run.id)
  if (!counts) return run
  const targets = { ...run.counts.targets }
  for (const status of DEAD_LETTER_STATUSES)
    targets[status] = Math.max(0, targets[status] - (counts[status] ?? 0))
  const left = { ...run, counts: { ...run.counts, targets } }
  return countDeadLettersOf(left) > 0 ? left : null
}

/** Returns the sources whose command reached its restart limit, except where the run that ended last is acknowledged. */
export function gaveUpUnacknowledged(locks: readonly SourceLock[]): SourceLock[] {
  return locks.filter(({ gaveUp }) => gaveUp !== null && !gaveUp.isAcknowledged)
}

/** `Acknowledged 2 h ago: it no longer counts as needing attention.` */
export function acknowledgedSentence(at: Millis, now: Millis): string {
  return `Acknowledged ${formatAgo(at, now)}: it no longer counts as needing attention.`
}

/** Returns how many targets of a run are acknowledged. */
export function countAcknowledgedOf(
  { id }: Pick<Run, 'id'>,
  acknowledged: AcknowledgedTargets,
): number {
  return Object.values(acknowledged.get(id) ?? {}).reduce((sum, count) => sum + count, 0)
}

/** Returns how many targets of a run are failed, stuck or parked. */
export function countDeadLettersOf({ counts }: Pick<Run, 'counts'>): number {
  return DEAD_LETTER_STATUSES.reduce((sum, status) => sum + counts.targets[status], 0)
}
