import { decideRetry, type RetryDecision } from '../decide/retry.ts'
import { claimOf, type ClaimedTarget, type Outcome } from '../model/claim.ts'
import { isUnusable, LeaseLostError, messageOf, toError } from '../model/errors.ts'
import type { Emit } from '../model/event.ts'
import { describeValue, isObject } from '../model/fields.ts'
import { RetryLaterError } from '../model/page-errors.ts'
import { policyForGroup } from '../model/policy.ts'
import type { Cursor } from '../model/target.ts'
import { parseDuration } from '../model/time.ts'
import { withRetry } from '../store/open.ts'
import type { Store } from '../store/store.ts'
import type { HeartbeatClient } from '../heartbeat/client.ts'
import { abortable } from './abortable.ts'
import type { Clock } from '../host/clock.ts'
import type { CrawlDefinition } from './crawl.ts'
import type { ErrorDecision } from './crawl-options.ts'
import { cursorAfter, makeCheckpoint, validatePage } from './page.ts'
import { applyItemSchema, makePageContext, resolveAddresses } from './page-context.ts'

/** What is needed to work on one claimed target. */
export type TargetContext = {
  readonly store: Store
  readonly heartbeat: HeartbeatClient
  readonly crawl: CrawlDefinition
  readonly clock: Clock
  readonly claimed: ClaimedTarget
  /** Fires to release the target instead of starting another page. */
  readonly stop: AbortSignal
  /** Aborts the page in progress: the deadline has come, or the claim was lost. */
  readonly abort: AbortSignal
  /** What `setup` returned. */
  readonly resources: unknown
  readonly emit: Emit
  readonly log: (message: string) => void
  /** Called after each saved page: the target then no longer counts as one that crashes its workers. */
  readonly onProgress: () => void
}

/** Works on a target page by page, each page with one checkpoint, until it is done, failed or released. The claim has then ended. */
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
    // The target can be neither released nor failed without the database: the worker stops.
    if (isUnusable(error)) throw error
    if (context.abort.aborted || error instanceof LeaseLostError)
      await releaseTarget(context, position, error)
    else await failTarget(context, position, error)
  }
}

/** Calls `page()` and saves what it returns. Returns the cursor after the page. */
async function crawlPage(
  context: TargetContext,
  position: Cursor,
): Promise<{ position: Cursor; done: boolean }> {
  const { claimed, crawl, store, heartbeat, abort, emit } = context
  const { run, target, key } = claimed
  const page = position.page + 1
  const pageContext = await makePageContext(context, position)
  const result = await abortable(abort, async () => crawl.page(pageContext))
  const report = resolveAddresses(validatePage(result, page), position.next ?? claimed.url)
  const { items } = report
  if (items) report.items = await applyItemSchema(crawl.schema.item, items, page)
  const checkpoint = makeCheckpoint(claimed, position, report)
  const save = (): Promise<Outcome<{ seq: number }>[]> =>
    heartbeat.measure('checkpoint', () => store.checkpoint([checkpoint], result.inTransaction))
  const [saved] = await withRetry(save, abort)
  const { seq } = valueOf(saved!)
  emit({ type: 'page_complete', run, target, key, page, items: checkpoint.items.length })
  const { replaced: count = 0 } = checkpoint
  if (count > 0) emit({ type: 'text_replaced', run, target, key, page, count })
  context.onProgress()
  return { done: checkpoint.done, position: cursorAfter(position, checkpoint, seq) }
}

/** Releases the target without counting an error or a crash. If the claim was lost, the store refuses and nothing changes. */
async function releaseTarget(
  context: TargetContext,
  position: Cursor,
  because?: unknown,
): Promise<void> {
  const { claimed, store, emit } = context
  const { run, target, key } = claimed
  const outcome = await endClaim(() => store.release([claimOf(claimed)]))
  if (outcome.ok) return emit({ type: 'target_released', run, target, key, page: position.page })
  // The reason of the abort is more exact than the store's, which only sees that the claim is gone.
  const why = because instanceof LeaseLostError ? because : outcome.error
  emit({ type: 'lease_lost', run, target, key, because: messageOf(why) })
}

/** Stores the error of a page: the target is retried later, or fails. */
async function failTarget(context: TargetContext, position: Cursor, error: unknown): Promise<void> {
  const { claimed, store, emit } = context
  const { run, target, key } = claimed
  const decision = await decideFailure(context, position, error)
  const retryInMs = decision.action === 'retry' ? decision.afterMs : null
  const message = messageOf(error)
  const becomes =
    retryInMs !== null ? { retryInMs } : decision.action === 'park' ? 'parked' : 'failed'
  const outcome = await endClaim(() =>
    store.fail([{ ...claimOf(claimed), error: message, becomes }]),
  )
  const page = position.page + 1
  if (outcome.ok) emit({ type: 'target_error', run, target, key, page, error: message, retryInMs })
  else emit({ type: 'lease_lost', run, target, key, because: messageOf(outcome.error) })
}

/** Asks the crawl's `onError` first; without an opinion of its own the policy decides. */
async function decideFailure(
  context: TargetContext,
  position: Cursor,
  error: unknown,
): Promise<RetryDecision | { readonly action: 'park' }> {
  const { claimed, crawl, clock } = context
  const policy = policyForGroup(crawl.policy, claimed.group)
  const errorsBefore = position.seq > claimed.seq ? 0 : claimed.errors
  const own = await askCrawl(context, position, error)
  if (own === 'fail' || own === 'park') return { action: own }
  const asked = typeof own === 'object' ? new RetryLaterError(own.retryAfter) : error
  const limit = own === undefined ? policy.retries : Infinity
  const cause = own === 'retry' ? null : asked
  const allowed = { ...policy, retries: limit }
  return decideRetry(cause, errorsBefore, allowed, clock.random(), Date.now())
}

async function askCrawl(
  context: TargetContext,
  position: Cursor,
  error: unknown,
): Promise<ErrorDecision | undefined> {
  const { crawl, log } = context
  if (!crawl.onError) return undefined
  try {
    const pageContext = await makePageContext(context, position)
    const { attempt } = pageContext
    const decision = await crawl.onError({ error, attempt, context: pageContext })
    if (decision === undefined || isErrorDecision(decision)) return decision
    log(`onError returned ${describeValue(decision)}, which is no decision: the policy decides`)
  } catch (thrown) {
    log(`onError threw: ${messageOf(thrown)}. The policy decides`)
  }
  return undefined
}

function isErrorDecision(value: unknown): value is ErrorDecision {
  if (isObject(value)) return parseDuration(value['retryAfter']) !== null
  return value === 'retry' || value === 'fail' || value === 'park'
}

const END_TIMEOUT_MS = 10_000

/** Ends a claim, with retries while the store is unreachable. If it stays unreachable, recovery ends the claim. */
async function endClaim(call: () => Promise<Outcome<void>[]>): Promise<Outcome<void>> {
  try {
    const [outcome] = await withRetry(call, AbortSignal.timeout(END_TIMEOUT_MS))
    return outcome!
  } catch (error) {
    return { ok: false, error: toError(error) }
  }
}

function valueOf<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw outcome.error
  return outcome.value
}
