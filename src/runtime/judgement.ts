import { decide, type Snapshot } from '../decide/recovery.ts'
import { readSign, STEADY, type Judge, type Reading } from '../decide/sign.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import type { Decision } from '../model/verdict.ts'
import type { Store, Witnessed } from '../store/store.ts'

/** Whether anything of a run is worth keeping. */
export function hasProgress({ counts, progress }: Run): boolean {
  const { pages, itemsNew, itemsUpdated, skipped } = counts
  return pages + itemsNew + itemsUpdated + skipped > 0 || (progress?.done ?? 0) > 0
}

/** A run's part of what `decide` looks at. */
export function runSnapshot(run: Run): Snapshot['run'] {
  return { ...run, hasProgress: hasProgress(run), reverted: false }
}

export type JudgedRun = {
  readonly decision: Decision
  /** Who holds it and what is known of them; null when nobody does. */
  readonly owner: (Witnessed & { readonly reading: Reading }) | null
}

/** What `decide` says about a live run as a whole, by the best sign of life of those who work on it. */
export async function judgeRun(store: Store, run: Run, judge: Judge = STEADY): Promise<JudgedRun> {
  const workers = (await store.workers()).filter(({ worker }) =>
    run.kind === 'single' ? worker.id === run.owner : worker.source === run.source,
  )
  const read = workers.map((witnessed) => ({
    ...witnessed,
    reading: readSign(witnessed.evidence, judge),
  }))
  const owner = read.find(({ reading }) => reading.sign === 'present') ?? read[0] ?? null
  const policy = { ...DEFAULT_POLICY, ...run.policy }
  const target = await heldTarget(store, run)
  const snapshot: Snapshot = { run: runSnapshot(run), target, owner: owner?.reading ?? null }
  return { decision: decide(snapshot, policy, await store.now()), owner }
}

/** The one target of a run that has only one, while somebody holds it. */
async function heldTarget(store: Store, run: Run): Promise<Snapshot['target']> {
  if (run.kind !== 'single') return null
  const [target] = (await store.targets(run.id, { status: 'in_progress', limit: 1 })).items
  return target ? { ...target, hasProgress: target.seq > 0 } : null
}
