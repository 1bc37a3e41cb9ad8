import { setTimeout as sleep } from 'node:timers/promises'
import type { Claimed } from '../model/claim.ts'
import { AlreadyDone, AlreadyRunning, HeartbeatOverdue } from '../model/errors.ts'
import { newId, type RunId } from '../model/id.ts'
import type { Policy } from '../model/policy.ts'
import type { Run } from '../model/run.ts'
import { inWords, iso } from '../model/time.ts'
import { whenAvailable } from '../store/open.ts'
import type { BeginRequest, Begun, RunMove, Store } from '../store/store.ts'
import { clearGuard } from '../recovery/source-lock.ts'
import { isLost, judgeRun, type JudgedRun } from '../recovery/assess.ts'
import { moveOf, recover, type Door } from '../recovery/recover.ts'
import type { SignsOfLife } from '../heartbeat/client.ts'

const TRIES = 5

export type Claimant = Pick<BeginRequest, 'source' | 'worker' | 'policy'>

/**
 * Starts or resumes the source's run, atomically, in the name of a worker that beats. Throws `AlreadyRunning` when
 * somebody lives and works on it. `giveUp`: a database that is away is waited for until this fires.
 */
export async function beginRun(
  door: Door & { readonly life: SignsOfLife },
  claimant: Claimant,
  giveUp?: AbortSignal,
): Promise<Extract<Begun, { resumed: boolean }>> {
  const { store, life } = door
  const claimId = newId()
  const ids = { run: newId(), target: newId(), claimId }
  life.asking([claimId])
  try {
    for (let tries = 1; ; tries++) {
      // With the same ids: one whose answer got lost is the same run.
      const ask = async (): Promise<Begun> => {
        const clean = await deadOne(door, claimant.source)
        return store.begin({ ...claimant, ...ids, clean })
      }
      const begun = await (giveUp ? whenAvailable(ask, giveUp) : heard(ask, claimant.policy))
      if (begun.claimed) {
        life.answered([claimId], [claimId])
        return begun
      }
      if ('guard' in begun) {
        const { guard } = begun
        await heard(() => clearGuard(store, guard, claimant.worker), claimant.policy)
        continue
      }
      const run = await store.run(begun.inTheWay)
      if (run) await clearTheWay(door, run, tries, claimant.worker)
    }
  } catch (error) {
    life.answered([claimId], [])
    throw error
  }
}

/**
 * Claims a run again that recovery took from this worker while it was silent. Returns null when another has the run or
 * its source by now, or the run has ended.
 */
export async function claimAgain(
  { store, life }: { readonly store: Store; readonly life: SignsOfLife },
  claimant: Claimant,
  run: RunId,
  giveUp: AbortSignal,
): Promise<Claimed | null> {
  const claimId = newId()
  const ids = { run: newId(), target: newId(), claimId, only: run }
  life.asking([claimId])
  let claimed: Claimed | null = null
  try {
    const begun = await whenAvailable(() => store.begin({ ...claimant, ...ids }), giveUp)
    claimed = begun.claimed
    return claimed
  } finally {
    life.answered([claimId], claimed ? [claimId] : [])
  }
}

/** Waits for the next heartbeat, for as long as a lease: the database may just be back. */
async function heard<T>(call: () => Promise<T>, { heartbeatMs, leaseMs }: Policy): Promise<T> {
  for (const giveUpAt = performance.now() + leaseMs; ;) {
    try {
      return await call()
    } catch (error) {
      if (!(error instanceof HeartbeatOverdue) || performance.now() > giveUpAt) throw error
      await sleep(heartbeatMs / 4)
    }
  }
}

/** Says no when a run of the source has succeeded: for work that is to be done once, however often it is asked for. */
export async function refuseIfDone(store: Store, source: string): Promise<void> {
  const [done] = (await store.runs({ source, statuses: ['succeeded'], limit: 1 })).items
  if (done) throw new AlreadyDone(source, done.id, iso(done.finishedAt ?? done.lastActivityAt))
}

/** A live run of the source that is dead: it is abandoned in the step that begins the new one. */
async function deadOne(door: Door, source: string): Promise<RunMove | undefined> {
  const run = await door.store.liveRun(source)
  if (!run || run.counts.targets.in_progress > 0) return undefined
  const judged = await judgeRun(door.store, run)
  return judged.decision.action === 'abandon' ? moveOf(door, judged) : undefined
}

/** Someone holds the run: recover it if they are gone, else say who they are. */
async function clearTheWay(door: Door, run: Run, tries: number, self: string): Promise<void> {
  const judged = await judgeRun(door.store, run)
  const lost = judged.owner !== null && isLost(judged.owner.reading)
  if (run.kind === 'single' && lost && tries < TRIES) {
    await recover(door, { self })
    return
  }
  throw new AlreadyRunning(run.source, run.id, describeOwner(run, judged, await door.store.now()))
}

function describeOwner(run: Run, { owner, decision }: JudgedRun, now: number): string {
  if (!owner) return `${run.status}, last sign of life ${inWords(now - run.lastActivityAt)} ago`
  return `since ${iso(run.startedAt ?? run.createdAt)}, ${decision.because}`
}
