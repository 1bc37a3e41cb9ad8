import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { TRUSTED_OBSERVER } from '../core/decide/liveness.ts'
import { REAL_CLOCK } from '../core/host/clock.ts'
import { makePolicyOf, NO_OVERRIDES } from '../core/model/policy-of.ts'
import { makeOperatorContext, type OperatorContext } from '../core/recovery/context.ts'
import type { Checkpoint } from '../core/model/checkpoint.ts'
import type { Claim, ClaimedTarget, Outcome } from '../core/model/claim.ts'
import { LeaseLostError } from '../core/model/errors.ts'
import { newId, type RunId, type TargetId, type WorkerId } from '../core/model/id.ts'
import { makeItem, type NewItem } from '../core/model/item.ts'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import type { TargetInput, Target } from '../core/model/target.ts'
import type { Action } from '../core/model/verdict.ts'
import type { Evidence } from '../core/model/worker.ts'
import { thisProcess } from '../core/host/identity.ts'
import type {
  BeginResult,
  ClaimRequest,
  PendingVerdict,
  NewWorker,
  Store,
} from '../core/store/store.ts'
import { ITEM_STORE, type SavedItem } from '../features/items/store/store.ts'
import { ACCESS_STORE, type OperationStore } from '../features/access/store/store.ts'

/** The people of the tests: workers, crawls and pages with as little ado as possible. */

export const SOURCE = 'shop'

/** Registers a worker that lives in this process. */
export async function registerWorker(
  store: Store,
  worker: Partial<NewWorker> = {},
): Promise<WorkerId> {
  const id = worker.id ?? newId()
  await store.registerWorker({
    id,
    source: SOURCE,
    process: thisProcess(),
    presence: { kind: 'none' },
    version: '0.0.0-test',
    // No shorter: it claims without ever beating.
    heartbeatMs: 5_000,
    leaseMs: 15_000,
    ...worker,
  })
  return id
}

type CrawlOptions = {
  source?: string
  policy?: Partial<Policy>
  planned?: boolean
}

/** Queues a run with these targets, or with this many. */
export async function enqueueCrawl(
  store: Store,
  targets: number | readonly (string | TargetInput)[],
  { source = SOURCE, policy = {}, planned = true }: CrawlOptions = {},
): Promise<RunId> {
  const id = newId()
  await store.enqueue({ id, source, kind: 'crawl', policy: { ...DEFAULT_POLICY, ...policy } })
  await store.plan(
    id,
    typeof targets === 'number' ? makeTargets(targets) : targets.map(toNewTarget),
  )
  if (planned) await store.finishPlanning(id)
  return id
}

/** The same, but a worker claimed a target and gave it back: the run is interrupted with nothing done. */
export async function enqueueInterrupted(
  store: Store,
  targets: Parameters<typeof enqueueCrawl>[1],
  options: CrawlOptions = {},
): Promise<RunId> {
  const run = await enqueueCrawl(store, targets, options)
  const { source = SOURCE } = options
  const worker = await registerWorker(store, { source })
  assertAllOk(await store.release([await claimOne(store, worker, { source })]))
  await store.retireWorker(worker)
  await store.settle(run)
  return run
}

/** Queues a run with one target. */
export async function enqueueSingle(store: Store, source = SOURCE): Promise<RunId> {
  const id = newId()
  await store.enqueue({ id, source, kind: 'single', policy: DEFAULT_POLICY })
  return id
}

export function makeTargets(count: number): TargetInput[] {
  return Array.from({ length: count }, (_, n) => ({ key: `t${String(n).padStart(4, '0')}` }))
}

function toNewTarget(target: string | TargetInput): TargetInput {
  return typeof target === 'string' ? { key: target } : target
}

/** Claims up to `count` targets, as a process with its hands full unless told otherwise. */
export function claim(
  store: Store,
  worker: WorkerId,
  count = 1,
  request: Partial<ClaimRequest> = {},
): Promise<ClaimedTarget[]> {
  return store.claim({
    worker,
    source: SOURCE,
    claimIds: Array.from({ length: count }, newId),
    isIdle: false,
    singleSlot: false,
    ...request,
  })
}

/** Claims one target that must be there. */
export async function claimOne(
  store: Store,
  worker: WorkerId,
  request: Partial<ClaimRequest> = {},
): Promise<ClaimedTarget> {
  const [claimed] = await claim(store, worker, 1, request)
  assert.ok(claimed, 'there was nothing to claim')
  return claimed
}

/** A source's run with one target, begun by this worker. */
export function begin(
  store: Store,
  worker: WorkerId,
  { source = SOURCE, policy = {} }: { source?: string; policy?: Partial<Policy> } = {},
): Promise<BeginResult> {
  return store.begin({
    source,
    worker,
    policy: { ...DEFAULT_POLICY, ...policy },
    run: newId(),
    target: newId(),
    claimId: newId(),
  })
}

export async function beginOne(
  store: Store,
  worker: WorkerId,
  options: { source?: string; policy?: Partial<Policy> } = {},
): Promise<ClaimedTarget> {
  const begun = await begin(store, worker, options)
  assert.ok(begun.claimed, 'another run is in the way')
  return begun.claimed
}

type PageOptions = Partial<Omit<Checkpoint, 'claim' | 'items' | 'hash'>> & {
  items?: readonly NewItem[]
  hash?: string
}

/** The page that follows what the claim says was done so far. */
export function nextCheckpoint(
  claim: ClaimedTarget,
  { items = [], ...given }: PageOptions = {},
): Checkpoint {
  const { target, epoch, claimId, worker } = claim
  const content = {
    claim: { target, epoch, claimId, worker },
    source: claim.source,
    expectedSeq: claim.seq,
    page: claim.page + 1,
    next: `https://shop.example/?page=${claim.page + 2}`,
    skipped: 0,
    done: false,
    items: items.map((item) => makeItem(item)!),
    ...given,
  }
  return { ...content, hash: given.hash ?? hash('sha256', JSON.stringify(content)) }
}

/** Saves one page, and answers the claim as it stands behind it. */
export async function savePage(
  store: Store,
  claim: ClaimedTarget,
  given: PageOptions = {},
): Promise<ClaimedTarget> {
  const next = nextCheckpoint(claim, given)
  const [outcome] = await store.checkpoint([next])
  return { ...claim, ...unwrap(outcome!), page: next.page, next: next.next }
}

export function makeItems(from: number, count: number, data: unknown = {}): NewItem[] {
  return Array.from({ length: count }, (_, n) => ({ key: `item-${from + n}`, data }))
}

export function unwrap<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw outcome.error
  return outcome.value
}

export function assertAllOk(outcomes: readonly Outcome<unknown>[]): void {
  for (const outcome of outcomes) unwrap(outcome)
}

export function assertLeaseLost(outcome: Outcome<unknown> | undefined, what = 'it'): void {
  assert.ok(outcome && !outcome.ok, `${what} went through`)
  assert.ok(outcome.error instanceof LeaseLostError, `${what}: ${String(outcome.error)}`)
}

/** Every fenced verb once, in the name of this claim, with its answer. */
export async function tryAllWrites(
  store: Store,
  claim: ClaimedTarget,
): Promise<Record<string, Outcome<unknown>>> {
  const wrong: Claim = claim
  return {
    save: (
      await store.checkpoint([nextCheckpoint(claim, { items: [{ key: 'late', data: 'late' }] })])
    )[0]!,
    'save the last page': (await store.checkpoint([nextCheckpoint(claim, { done: true })]))[0]!,
    finish: (await store.finish([wrong]))[0]!,
    'fail for good': (await store.fail([{ ...wrong, error: 'late', becomes: 'failed' }]))[0]!,
    'fail and retry': (
      await store.fail([{ ...wrong, error: 'late', becomes: { retryInMs: 5 } }])
    )[0]!,
    release: (await store.release([wrong]))[0]!,
    park: (await store.fail([{ ...wrong, error: 'late', becomes: 'parked' }]))[0]!,
    touch: await store.reportActivity(wrong, 7),
    report: await store.reportProgress(wrong, { done: 1, total: 2 }),
  }
}

export const EVIDENCE: Evidence = {
  presence: 'free',
  presenceKind: 'file',
  process: 'gone',
  heartbeatAgeMs: 1_234,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 0,
  host: 'elsewhere',
  pid: 4242,
}

/** The verdict that a process would apply now if it considered this worker dead. */
export async function pendingVerdicts(
  store: Store,
  worker: WorkerId,
  action: Action = 'resume',
): Promise<PendingVerdict[]> {
  const held = await store.claimsOf(worker, null, 1_000)
  return held.map((held) => ({
    held,
    decision: { action, because: `process 4242 on elsewhere has ended (${action})` },
    liveness: 'gone',
    evidence: EVIDENCE,
    newRun: newId(),
  }))
}

/** The worker is taken for dead: all that it holds is taken back. */
export async function recoverWorker(
  store: Store,
  worker: WorkerId,
  action: Action = 'resume',
): Promise<boolean[]> {
  return store.applyVerdicts(await pendingVerdicts(store, worker, action), 'the tests')
}

export async function getTarget(store: Store, id: TargetId): Promise<Target> {
  const target = await store.target(id)
  assert.ok(target)
  return target
}

/** All targets of a run, page by page. */
export async function listTargets(store: Store, run: RunId, limit = 500): Promise<Target[]> {
  const all: Target[] = []
  for (let after: string | null | undefined; after !== null;) {
    const { items, next } = await store.targets(run, { after, limit })
    all.push(...items)
    after = next
  }
  return all
}

/** A context with the policies that are stored with the runs. */
export function operatorContext(store: Store, actor = 'the tests'): OperatorContext {
  const policyOf = makePolicyOf(NO_OVERRIDES)
  const clock = REAL_CLOCK
  return makeOperatorContext({ store, actor, policyOf, observer: TRUSTED_OBSERVER, clock })
}

/** Returns the first page of the operations that were recorded. */
export async function listOperations(
  store: Store,
  limit: number,
): ReturnType<OperationStore['operations']> {
  return (await store.extend(ACCESS_STORE)).operations({ limit })
}

/** Returns items of a source, by key. */
export async function itemsOf(
  store: Store,
  source = SOURCE,
  after: string | null = null,
  limit = 1_000,
): Promise<SavedItem[]> {
  const items = await store.extend(ITEM_STORE)
  const filter = { source, after: after ?? undefined, limit }
  return [...(await items.readItems('items', filter)).items]
}
