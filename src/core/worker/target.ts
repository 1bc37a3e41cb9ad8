import { decideRetry } from '../decide/retry.ts'
import type { Claim, ClaimedTarget, Outcome } from '../model/claim.ts'
import { isUnusable, LeaseLostError, messageOf, toError } from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { policyForGroup } from '../model/policy.ts'
import type { Cursor } from '../model/target.ts'
import { withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import type { HeartbeatClient } from '../heartbeat/client.ts'
import { abortable } from './abortable.ts'
import type { Clock } from '../host/clock.ts'
import type { Crawl, PageResult } from './crawl.ts'
import { makeCheckpoint, validatePage } from './page.ts'

/** One claimed target on its way from its cursor to its end. */
export type TargetContext = {
  readonly store: Store
  readonly heartbeat: HeartbeatClient
  readonly crawl: Crawl
  readonly clock: Clock
  readonly claimed: ClaimedTarget
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
export async function crawlTarget(context: TargetContext): Promise<void> {
  const { claimed, emit } = context
  const { run, target, key, epoch } = claimed
  emit({ type: 'target_start', run, target, key, epoch, page: claimed.page })
  let position: Cursor = claimed
  try {
    while (!context.stop.aborted) {
      const step = await crawlPage(context, position)
      position = step.position
      if (!step.done) continue
      emit({ type: 'target_complete', run, target, key, page: position.page })
      return
    }
    await releaseTarget(context, position)
  } catch (thrown) {
    const error = toError(thrown)
    // Nothing can be handed back or counted as an error of the page: the whole worker ends.
    if (isUnusable(error)) throw error
    if (context.abort.aborted || error instanceof LeaseLostError)
      await releaseTarget(context, position, error)
    else await failTarget(context, position, error)
  }
}

async function crawlPage(
  context: TargetContext,
  position: Cursor,
): Promise<{ position: Cursor; done: boolean }> {
  const { claimed, crawl, store, heartbeat, abort, emit } = context
  const { run, target, key, group, url } = claimed
  const page = position.page + 1
  const result: PageResult = await abortable(abort, () =>
    crawl.page({
      target: { id: target, key, group, url },
      url: position.next ?? url ?? '',
      page,
      cursor: position.cursor,
      lastItemId: position.lastItemId,
      signal: abort,
      log: context.log,
    }),
  )
  const checkpoint = makeCheckpoint(claimed, position, validatePage(result, page))
  const save = (): Promise<Outcome<number>[]> =>
    heartbeat.measure('checkpoint', () => store.checkpoint([checkpoint], result.inTransaction))
  const [saved] = await withRetry(save, abort)
  const seq = valueOf(saved!)
  emit({ type: 'page_complete', run, target, key, page, items: checkpoint.items.length })
  const { replaced: count = 0 } = checkpoint
  if (count > 0) emit({ type: 'text_replaced', run, target, key, page, count })
  context.onProgress()
  const { next, done, pageTarget, lastItemId, cursor } = checkpoint
  return {
    done,
    position: {
      seq,
      page,
      next,
      pageTarget: pageTarget ?? position.pageTarget,
      lastItemId: lastItemId ?? position.lastItemId,
      cursor: cursor === undefined ? position.cursor : cursor,
    },
  }
}

/** A stop costs the target nothing. When it is no longer ours, the store says so and nothing changes. */
async function releaseTarget(
  context: TargetContext,
  position: Cursor,
  because?: unknown,
): Promise<void> {
  const { claimed, store, emit } = context
  const { run, target, key } = claimed
  const outcome = await endClaim(() => store.release([claimOf(claimed)]))
  if (outcome?.ok) return emit({ type: 'target_released', run, target, key, page: position.page })
  // Who cut the page short knows better why than the store, which only sees that it is gone.
  const why = because instanceof LeaseLostError ? because : (outcome?.error ?? because)
  emit({ type: 'lease_lost', run, target, key, because: messageOf(why) })
}

/** The page handler threw: try again later, or give up. */
async function failTarget(context: TargetContext, position: Cursor, error: unknown): Promise<void> {
  const { claimed, store, crawl, clock, emit } = context
  const { run, target, key } = claimed
  const policy = policyForGroup(crawl.policy, claimed.group)
  const errorsBefore = position.seq > claimed.seq ? 0 : claimed.errors
  const decision = decideRetry(error, errorsBefore, policy, clock.random(), Date.now())
  const retryInMs = decision.action === 'retry' ? decision.afterMs : null
  const message = messageOf(error)
  const outcome = await endClaim(() =>
    store.fail([{ ...claimOf(claimed), error: message, retryInMs }]),
  )
  if (outcome?.ok)
    emit({
      type: 'target_error',
      run,
      target,
      key,
      page: position.page + 1,
      error: message,
      retryInMs,
    })
  else emit({ type: 'lease_lost', run, target, key, because: messageOf(outcome?.error ?? error) })
}

const END_TIMEOUT_MS = 10_000

/** Ends a claim; a store that is away is waited for a while. Null: it stayed away, and recovery will see to it. */
async function endClaim(call: () => Promise<Outcome<void>[]>): Promise<Outcome<void> | null> {
  try {
    const [outcome] = await withRetry(call, AbortSignal.timeout(END_TIMEOUT_MS))
    return outcome!
  } catch (error) {
    return { ok: false, error: toError(error) }
  }
}

function claimOf({ target, epoch, claimId, worker }: ClaimedTarget): Claim {
  return { target, epoch, claimId, worker }
}

function valueOf<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw outcome.error
  return outcome.value
}
