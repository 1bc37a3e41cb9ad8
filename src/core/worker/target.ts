import { decideRetry } from '../decide/retry.ts'
import type { Claim, Claimed, Outcome } from '../model/claim.ts'
import { isUnusable, LeaseLost, messageOf, toError } from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { policyOfGroup } from '../model/policy.ts'
import type { Cursor } from '../model/target.ts'
import { whenAvailable } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import { abortable } from './abortable.ts'
import type { Clock } from '../host/clock.ts'
import type { Crawl, PageResult } from './crawl.ts'
import { makeCheckpoint, readPage } from './page.ts'

/** One claimed target on its way from its cursor to its end. */
export type TargetJourney = {
  readonly store: Store
  readonly crawl: Crawl
  readonly clock: Clock
  readonly claimed: Claimed
  /** Looked at before each page: hand the target back instead of starting another. */
  readonly stop: AbortSignal
  /** Cuts the page in hand short: the deadline has come, or the target is no longer ours. */
  readonly abort: AbortSignal
  readonly emit: Emit
  readonly log: (message: string) => void
  /** A page is saved: the target is no longer under suspicion. */
  readonly onProgress: () => void
}

/** Page by page: fetch, parse, then one checkpoint. However it ends, the claim is over afterwards. */
export async function crawlTarget(journey: TargetJourney): Promise<void> {
  const { claimed, emit } = journey
  const { run, target, key, epoch } = claimed
  emit({ type: 'target_start', run, target, key, epoch, page: claimed.page })
  let at: Cursor = claimed
  try {
    while (!journey.stop.aborted) {
      const step = await crawlPage(journey, at)
      at = step.at
      if (!step.done) continue
      emit({ type: 'target_complete', run, target, key, page: at.page })
      return
    }
    await handBack(journey, at)
  } catch (thrown) {
    const error = toError(thrown)
    // Nothing can be handed back or counted as an error of the page: the whole worker ends.
    if (isUnusable(error)) throw error
    if (journey.abort.aborted || error instanceof LeaseLost) await handBack(journey, at, error)
    else await giveIn(journey, at, error)
  }
}

async function crawlPage(
  journey: TargetJourney,
  at: Cursor,
): Promise<{ at: Cursor; done: boolean }> {
  const { claimed, crawl, store, abort, emit } = journey
  const { run, target, key, group, url } = claimed
  const page = at.page + 1
  const result: PageResult = await abortable(abort, () =>
    crawl.page({
      target: { id: target, key, group, url },
      url: at.next ?? url ?? '',
      page,
      cursor: at.cursor,
      lastItemId: at.lastItemId,
      signal: abort,
      log: journey.log,
    }),
  )
  const checkpoint = makeCheckpoint(claimed, at, readPage(result, page))
  const [saved] = await whenAvailable(
    () => store.checkpoint([checkpoint], result.inTransaction),
    abort,
  )
  const seq = valueOf(saved!)
  emit({ type: 'page_complete', run, target, key, page, items: checkpoint.items.length })
  const { replaced: count = 0 } = checkpoint
  if (count > 0) emit({ type: 'text_replaced', run, target, key, page, count })
  journey.onProgress()
  const { next, done, pageTarget, lastItemId, cursor } = checkpoint
  return {
    done,
    at: {
      seq,
      page,
      next,
      pageTarget: pageTarget ?? at.pageTarget,
      lastItemId: lastItemId ?? at.lastItemId,
      cursor: cursor === undefined ? at.cursor : cursor,
    },
  }
}

/** A stop costs the target nothing. When it is no longer ours, the store says so and nothing changes. */
async function handBack(journey: TargetJourney, at: Cursor, because?: unknown): Promise<void> {
  const { claimed, store, emit } = journey
  const { run, target, key } = claimed
  const outcome = await end(() => store.release([claimOf(claimed)]))
  if (outcome?.ok) return emit({ type: 'target_released', run, target, key, page: at.page })
  // Who cut the page short knows better why than the store, which only sees that it is gone.
  const why = because instanceof LeaseLost ? because : (outcome?.error ?? because)
  emit({ type: 'lease_lost', run, target, key, because: messageOf(why) })
}

/** The page handler threw: try again later, or give up. */
async function giveIn(journey: TargetJourney, at: Cursor, error: unknown): Promise<void> {
  const { claimed, store, crawl, clock, emit } = journey
  const { run, target, key } = claimed
  const policy = policyOfGroup(crawl.policy, claimed.group)
  const errorsBefore = at.seq > claimed.seq ? 0 : claimed.errors
  const decision = decideRetry(error, errorsBefore, policy, clock.random())
  const retryInMs = decision.action === 'retry' ? decision.afterMs : null
  const message = messageOf(error)
  const outcome = await end(() => store.fail([{ ...claimOf(claimed), error: message, retryInMs }]))
  if (outcome?.ok)
    emit({ type: 'target_error', run, target, key, page: at.page + 1, error: message, retryInMs })
  else emit({ type: 'lease_lost', run, target, key, because: messageOf(outcome?.error ?? error) })
}

const END_PATIENCE_MS = 10_000

/** Ends a claim; a store that is away is waited for a while. Null: it stayed away, and recovery will see to it. */
async function end(call: () => Promise<Outcome<void>[]>): Promise<Outcome<void> | null> {
  try {
    const [outcome] = await whenAvailable(call, AbortSignal.timeout(END_PATIENCE_MS))
    return outcome!
  } catch (error) {
    return { ok: false, error: toError(error) }
  }
}

function claimOf({ target, epoch, claimId, worker }: Claimed): Claim {
  return { target, epoch, claimId, worker }
}

function valueOf<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw outcome.error
  return outcome.value
}
