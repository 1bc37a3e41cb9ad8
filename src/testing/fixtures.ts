import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import type { Checkpoint } from '../core/model/checkpoint.ts'
import type { Claim, Claimed, Outcome } from '../core/model/claim.ts'
import { LeaseLost } from '../core/model/errors.ts'
import { newId, type RunId, type TargetId, type WorkerId } from '../core/model/id.ts'
import { makeItem, type NewItem } from '../core/model/item.ts'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import type { NewTarget, Target } from '../core/model/target.ts'
import type { Action } from '../core/model/verdict.ts'
import type { Evidence } from '../core/model/worker.ts'
import { thisProcess } from '../core/host/identity.ts'
import type { Begun, ClaimRequest, Judgement, NewWorker, Store } from '../core/store/store.ts'

/** The people of the tests: workers, crawls and pages with as little ado as possible. */

export const SOURCE = 'shop'

/** Registers a worker that lives in this process. */
export async function hire(store: Store, worker: Partial<NewWorker> = {}): Promise<WorkerId> {
  const id = worker.id ?? newId()
  await store.register({
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

type NewCrawl = {
  source?: string
  policy?: Partial<Policy>
  planned?: boolean
}

/** Queues a run with these targets, or with this many. */
export async function startCrawl(
  store: Store,
  targets: number | readonly (string | NewTarget)[],
  { source = SOURCE, policy = {}, planned = true }: NewCrawl = {},
): Promise<RunId> {
  const id = newId()
  await store.enqueue({ id, source, kind: 'crawl', policy: { ...DEFAULT_POLICY, ...policy } })
  await store.plan(id, typeof targets === 'number' ? someTargets(targets) : targets.map(asTarget))
  if (planned) await store.finishPlanning(id)
  return id
}

/** Queues a run with one target. */
export async function queueSingle(store: Store, source = SOURCE): Promise<RunId> {
  const id = newId()
  await store.enqueue({ id, source, kind: 'single', policy: DEFAULT_POLICY })
  return id
}

export function someTargets(count: number): NewTarget[] {
  return Array.from({ length: count }, (_, n) => ({ key: `t${String(n).padStart(4, '0')}` }))
}

function asTarget(target: string | NewTarget): NewTarget {
  return typeof target === 'string' ? { key: target } : target
}

/** Claims up to `count` targets, as a process with its hands full unless told otherwise. */
export function claim(
  store: Store,
  worker: WorkerId,
  count = 1,
  request: Partial<ClaimRequest> = {},
): Promise<Claimed[]> {
  return store.claim({
    worker,
    source: SOURCE,
    claimIds: Array.from({ length: count }, newId),
    empty: false,
    alone: false,
    ...request,
  })
}

/** Claims one target that must be there. */
export async function claimOne(
  store: Store,
  worker: WorkerId,
  request: Partial<ClaimRequest> = {},
): Promise<Claimed> {
  const [claimed] = await claim(store, worker, 1, request)
  assert.ok(claimed, 'there was nothing to claim')
  return claimed
}

/** A source's run with one target, begun by this worker. */
export function begin(
  store: Store,
  worker: WorkerId,
  { source = SOURCE, policy = {} }: { source?: string; policy?: Partial<Policy> } = {},
): Promise<Begun> {
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
): Promise<Claimed> {
  const begun = await begin(store, worker, options)
  assert.ok(begun.claimed, 'another run is in the way')
  return begun.claimed
}

type NewPage = Partial<Omit<Checkpoint, 'claim' | 'items' | 'hash'>> & {
  items?: readonly NewItem[]
  hash?: string
}

/** The page that follows what the claim says was done so far. */
export function page(claim: Claimed, { items = [], ...given }: NewPage = {}): Checkpoint {
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
export async function save(store: Store, claim: Claimed, given: NewPage = {}): Promise<Claimed> {
  const next = page(claim, given)
  const [outcome] = await store.checkpoint([next])
  return { ...claim, seq: ok(outcome!), page: next.page, next: next.next }
}

export function someItems(from: number, count: number, data: unknown = {}): NewItem[] {
  return Array.from({ length: count }, (_, n) => ({ key: `item-${from + n}`, data }))
}

export function ok<T>(outcome: Outcome<T>): T {
  if (!outcome.ok) throw outcome.error
  return outcome.value
}

export function allOk(outcomes: readonly Outcome<unknown>[]): void {
  for (const outcome of outcomes) ok(outcome)
}

export function assertLeaseLost(outcome: Outcome<unknown> | undefined, what = 'it'): void {
  assert.ok(outcome && !outcome.ok, `${what} went through`)
  assert.ok(outcome.error instanceof LeaseLost, `${what}: ${String(outcome.error)}`)
}

/** Every fenced verb once, in the name of this claim, with its answer. */
export async function tryEverything(
  store: Store,
  claim: Claimed,
): Promise<Record<string, Outcome<unknown>>> {
  const wrong: Claim = claim
  return {
    save: (await store.checkpoint([page(claim, { items: [{ key: 'late', data: 'late' }] })]))[0]!,
    'save the last page': (await store.checkpoint([page(claim, { done: true })]))[0]!,
    finish: (await store.finish([wrong]))[0]!,
    'fail for good': (await store.fail([{ ...wrong, error: 'late', retryInMs: null }]))[0]!,
    'fail and retry': (await store.fail([{ ...wrong, error: 'late', retryInMs: 5 }]))[0]!,
    release: (await store.release([wrong]))[0]!,
    park: (await store.park([{ ...wrong, reason: 'late' }]))[0]!,
    touch: await store.touch(wrong, 7),
    report: await store.reportProgress(wrong, { done: 1, total: 2 }),
  }
}

export const EVIDENCE: Evidence = {
  presence: 'free',
  presenceKind: 'file',
  process: 'gone',
  beatAgeMs: 1_234,
  heartbeatMs: 1_000,
  leaseMs: 15_000,
  loopLagMs: 0,
  host: 'elsewhere',
  pid: 4242,
}

/** What somebody who takes this worker for dead would ask the store to do, as of now. */
export async function judge(
  store: Store,
  worker: WorkerId,
  action: Action = 'resume',
): Promise<Judgement[]> {
  const held = await store.heldBy(worker, null, 1_000)
  return held.map((held) => ({
    held,
    decision: { action, because: `process 4242 on elsewhere has ended (${action})` },
    sign: 'gone',
    evidence: EVIDENCE,
    newRun: newId(),
  }))
}

/** The worker is taken for dead: all that it holds is taken back. */
export async function bury(
  store: Store,
  worker: WorkerId,
  action: Action = 'resume',
): Promise<boolean[]> {
  return store.applyJudgements(await judge(store, worker, action), 'the tests')
}

export async function targetOf(store: Store, id: TargetId): Promise<Target> {
  const target = await store.target(id)
  assert.ok(target)
  return target
}

/** All targets of a run, page by page. */
export async function allTargets(store: Store, run: RunId, limit = 500): Promise<Target[]> {
  const all: Target[] = []
  for (let after: string | null | undefined; after !== null;) {
    const { items, next } = await store.targets(run, { after, limit })
    all.push(...items)
    after = next
  }
  return all
}
