import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { open } from '../../src/index.ts'
import type { RunId, TargetId, WorkerId } from '../../src/core/model/id.ts'
import type { Policy } from '../../src/core/model/policy.ts'
import { thisProcess } from '../../src/core/host/identity.ts'
import type { Store } from '../../src/core/store/store.ts'
import {
  beginOne,
  claimOne,
  registerWorker,
  unwrap,
  savePage,
  enqueueCrawl,
} from '../../src/testing/fixtures.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { TestDatabase } from '../../src/testing/test-database.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'

/**
 * Every row of the verdict table, through every door, on both stores: what is seen, what is decided, and what has
 * become of the run and its target afterwards.
 */

/** Both engines in the long proof: what decides is the same function. */
const ENGINES = isLong ? [sqliteEngine, postgresEngine] : [sqliteEngine]
const MINUTE = 60_000
const HOUR = 60 * MINUTE
const SOURCE = 'shop'

type Verdict = {
  run: string
  target: string | null
  action: string
  because: string
  outcome: string
}
type Advice = { action: string; because: string }

/** The same question, asked in code and on the command line. */
type EntryPoint = {
  readonly name: string
  recover(db: string): Promise<readonly Verdict[]>
  check(db: string): Promise<Advice>
  clean(db: string): Promise<readonly Verdict[]>
}

const LIBRARY: EntryPoint = {
  name: 'library',
  async recover(db) {
    await using unstuck = await open({ db, signals: false })
    return (await unstuck.recover()).verdicts
  },
  async check(db) {
    await using unstuck = await open({ db, signals: false })
    return await unstuck.check(SOURCE)
  },
  async clean(db) {
    await using unstuck = await open({ db, signals: false })
    return (await unstuck.clean()).cleaned
  },
}

async function cliJson<T>(codes: readonly number[], ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await unstuck([...args, '--json'], { cwd: '/' })
  assert.ok(codes.includes(code!), `${args.join(' ')} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout) as T
}

const CLI: EntryPoint = {
  name: 'command line',
  recover: async (db) =>
    (await cliJson<{ verdicts: Verdict[] }>([0, 3], 'recover', '--yes', '--db', db)).verdicts,
  check: (db) => cliJson<Advice>([0, 5], 'check', SOURCE, '--db', db),
  clean: async (db) =>
    (await cliJson<{ cleaned: Verdict[] }>([0, 3], 'clean', '--yes', '--db', db)).cleaned,
}

/** A stage set for one row. */
type VerdictTestContext = {
  readonly db: TestDatabase
  readonly store: Store
  readonly policy: Partial<Policy>
  /** A worker in this process, which lives. */
  registerLiveWorker(): Promise<WorkerId>
  /** A worker whose process is proven gone. */
  registerDeadWorker(): Promise<WorkerId>
  /** A worker on another host: nothing is known of it but its beats. */
  registerRemoteWorker(): Promise<WorkerId>
}
type Situation = { run: RunId; target?: TargetId; worker?: WorkerId }

type Case = {
  readonly situation: string
  readonly policy?: Partial<Policy>
  readonly arrange: (ctx: VerdictTestContext) => Promise<Situation>
  /** What `recover` decides; null: it has nothing to say. */
  readonly verdict: { action: string; because: RegExp; applied: boolean } | null
  readonly run: string
  readonly target?: string
  /** What a starter is told before anything is recovered. */
  readonly check: 'start' | 'resume' | 'clean' | 'wait'
  /** What `clean` makes of it, asked instead of `recover`. */
  readonly cleaned?: boolean
  readonly afterwards?: (ctx: VerdictTestContext, situation: Situation) => Promise<void>
}

/** A crawl with two targets, one of which this worker holds. */
async function createHeldCrawl(
  ctx: VerdictTestContext,
  worker: WorkerId,
  pages = 0,
): Promise<Situation> {
  const run = await enqueueCrawl(ctx.store, 2, { policy: ctx.policy })
  let claimed = await claimOne(ctx.store, worker, { singleSlot: true, isIdle: true })
  for (let page = 0; page < pages; page++) claimed = await savePage(ctx.store, claimed)
  return { run, target: claimed.target, worker }
}

/** A run with one target, held by this worker. */
async function createHeldRun(
  ctx: VerdictTestContext,
  worker: WorkerId,
  pages = 0,
): Promise<Situation> {
  let claimed = await beginOne(ctx.store, worker, { policy: ctx.policy })
  for (let page = 0; page < pages; page++) claimed = await savePage(ctx.store, claimed)
  return { run: claimed.run, target: claimed.target, worker }
}

/** A run that was released, so that it has no owner. */
async function createReleasedRun(ctx: VerdictTestContext, pages = 0): Promise<Situation> {
  const worker = await ctx.registerLiveWorker()
  const situation = await createHeldRun(ctx, worker, pages)
  const held = await ctx.store.claimsOf(worker, null, 1)
  const { id, epoch, claimId } = held[0]!.target
  unwrap((await ctx.store.release([{ target: id, epoch, claimId: claimId!, worker }]))[0]!)
  await ctx.store.retireWorker(worker)
  return situation
}

async function heartbeat({ store }: VerdictTestContext, { worker }: Situation): Promise<void> {
  const held = await store.claimsOf(worker!, null, 10)
  const claimIds = held.map(({ target }) => target.claimId!)
  await store.heartbeat({ worker: worker!, claimIds, loopLagMs: 0 })
}

/** Its worker lives, but for this long nothing was saved. */
async function stalledFor(
  ms: number,
  ctx: VerdictTestContext,
  situation: Situation,
): Promise<Situation> {
  await ctx.db.advanceClock(ms)
  await heartbeat(ctx, situation)
  return situation
}

async function agedBy(
  ms: number,
  ctx: VerdictTestContext,
  situation: Situation,
): Promise<Situation> {
  await ctx.db.advanceClock(ms)
  return situation
}

const CASES: readonly Case[] = [
  {
    situation: 'owner present, progressing',
    arrange: async (ctx) => createHeldCrawl(ctx, await ctx.registerLiveWorker(), 1),
    verdict: null,
    run: 'running',
    target: 'in_progress',
    check: 'wait',
    cleaned: false,
  },
  {
    situation: 'owner present for 26 h with fresh beats and nothing saved',
    arrange: async (ctx) =>
      stalledFor(26 * HOUR, ctx, await createHeldRun(ctx, await ctx.registerLiveWorker())),
    verdict: {
      action: 'alert',
      because: /^process .* alive.*no progress for 26 h/,
      applied: false,
    },
    run: 'running',
    target: 'in_progress',
    check: 'wait',
    cleaned: false,
  },
  {
    situation: 'owner present but stalled beyond maxSilence, by policy resume',
    policy: { onStalled: 'resume' },
    arrange: async (ctx) =>
      stalledFor(16 * MINUTE, ctx, await createHeldCrawl(ctx, await ctx.registerLiveWorker(), 1)),
    verdict: { action: 'resume', because: /^timeout: .*no progress for 16 min/, applied: true },
    run: 'running',
    target: 'planned',
    check: 'wait',
    afterwards: async ({ store }, { target }) => {
      const { lastError, crashes, errors, page } = (await store.target(target!))!
      assert.match(lastError!, /^timeout/)
      assert.deepEqual([crashes, errors, page], [0, 1, 1], 'an error, and no crash')
    },
  },
  {
    situation: 'owner present but stalled beyond maxSilence, by policy fail',
    policy: { onStalled: 'fail' },
    arrange: async (ctx) =>
      stalledFor(16 * MINUTE, ctx, await createHeldRun(ctx, await ctx.registerLiveWorker(), 1)),
    verdict: { action: 'fail', because: /^timeout/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'wait',
    afterwards: async ({ store }, { run }) =>
      assert.match((await store.run(run))!.error!, /^timeout/),
  },
  {
    situation: "a group's targets stalled beyond the group's own maxSilence",
    policy: { groups: { CA: { maxSilenceMs: 5 * MINUTE, onStalled: 'resume' } } },
    arrange: async (ctx) => {
      const worker = await ctx.registerLiveWorker()
      const targets = [
        { key: 'a', group: 'CA' },
        { key: 'b', group: 'TX' },
      ]
      const run = await enqueueCrawl(ctx.store, targets, { policy: ctx.policy })
      const [ca] = [await claimOne(ctx.store, worker), await claimOne(ctx.store, worker)]
      return stalledFor(6 * MINUTE, ctx, { run, target: ca.target, worker })
    },
    verdict: { action: 'resume', because: /^timeout/, applied: true },
    run: 'running',
    target: 'planned',
    check: 'wait',
    afterwards: async ({ store }, { run }) => {
      const { in_progress: held } = (await store.run(run))!.counts.targets
      assert.equal(held, 1, 'the other group goes by the other limit')
    },
  },
  {
    situation: 'owner present, run beyond maxDuration',
    policy: { maxDurationMs: HOUR },
    arrange: async (ctx) =>
      stalledFor(61 * MINUTE, ctx, await createHeldRun(ctx, await ctx.registerLiveWorker())),
    verdict: { action: 'alert', because: /longer than maxDuration 60 min/, applied: false },
    run: 'running',
    target: 'in_progress',
    check: 'wait',
  },
  {
    situation: 'owner present, crawl beyond maxDuration, by policy fail',
    policy: { maxDurationMs: HOUR, maxSilenceMs: 10 * HOUR, onStalled: 'fail' },
    arrange: async (ctx) =>
      stalledFor(61 * MINUTE, ctx, await createHeldCrawl(ctx, await ctx.registerLiveWorker(), 1)),
    verdict: { action: 'fail', because: /^timeout: running for 61 min/, applied: true },
    run: 'failed',
    target: 'planned',
    check: 'wait',
    afterwards: async ({ store }, { run, worker, target }) => {
      assert.match((await store.run(run))!.error!, /^timeout/)
      const { lastError, crashes } = (await store.target(target!))!
      assert.match(lastError!, /^timeout/)
      assert.equal(crashes, 0)
      assert.deepEqual(await store.claimsOf(worker!, null, 5), [], 'its worker has lost it')
    },
  },
  {
    situation: 'owner present, crawl beyond maxDuration, by policy resume',
    policy: { maxDurationMs: HOUR, maxSilenceMs: 10 * HOUR, onStalled: 'resume' },
    arrange: async (ctx) =>
      stalledFor(61 * MINUTE, ctx, await createHeldCrawl(ctx, await ctx.registerLiveWorker(), 1)),
    verdict: { action: 'resume', because: /^timeout: running for 61 min/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'wait',
  },
  {
    situation: 'owner gone, and a checkpoint exists',
    arrange: async (ctx) => createHeldCrawl(ctx, await ctx.registerDeadWorker(), 1),
    verdict: {
      action: 'resume',
      because: /no longer exists.*continues after page 1/,
      applied: true,
    },
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
  {
    situation: 'owner silent, and a checkpoint exists',
    arrange: async (ctx) =>
      agedBy(MINUTE, ctx, await createHeldRun(ctx, await ctx.registerRemoteWorker(), 1)),
    verdict: { action: 'resume', because: /silent: last heartbeat 6\d s ago/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
  {
    situation: 'owner gone, a checkpoint, by policy onCrash fail',
    policy: { onCrash: 'fail' },
    arrange: async (ctx) => createHeldRun(ctx, await ctx.registerDeadWorker(), 1),
    verdict: { action: 'fail', because: /^process ended unexpectedly/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'clean',
  },
  {
    situation: 'owner gone, a checkpoint, by policy onCrash hold',
    policy: { onCrash: 'hold' },
    arrange: async (ctx) => createHeldRun(ctx, await ctx.registerDeadWorker(), 1),
    verdict: { action: 'hold', because: /^process ended unexpectedly/, applied: true },
    run: 'failed',
    target: 'stuck',
    check: 'clean',
  },
  {
    situation: 'owner gone, nothing done yet, a run with one target',
    arrange: async (ctx) => createHeldRun(ctx, await ctx.registerDeadWorker()),
    verdict: { action: 'retry', because: /nothing was done yet/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'start',
    afterwards: async ({ store }, { run }) => {
      const next = (await store.liveRun(SOURCE))!
      assert.deepEqual([next.status, next.retryOf, next.retries], ['queued', run, 1])
      const [entry] = await store.audit({ run, limit: 5 })
      assert.deepEqual(entry!.after, { status: 'failed', newRun: next.id })
    },
  },
  {
    situation: 'owner gone, no page saved, but it had said how far it was',
    arrange: async (ctx) => {
      const situation = await createHeldRun(ctx, await ctx.registerDeadWorker())
      const [held] = await ctx.store.claimsOf(situation.worker!, null, 1)
      const { id, epoch, claimId } = held!.target
      const claim = { target: id, epoch, claimId: claimId!, worker: situation.worker! }
      unwrap(await ctx.store.reportProgress(claim, { done: 500, total: 1_000 }))
      return situation
    },
    verdict: { action: 'resume', because: /no longer exists/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
  {
    situation: 'owner gone, nothing done yet, and it was retried before',
    policy: { runRetries: 0 },
    arrange: async (ctx) => createHeldRun(ctx, await ctx.registerDeadWorker()),
    verdict: { action: 'fail', because: /unexpectedly with nothing done/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'clean',
    afterwards: async ({ store }) => assert.equal(await store.liveRun(SOURCE), null),
  },
  {
    situation: 'owner gone, nothing done yet, a target of a crawl',
    arrange: async (ctx) => createHeldCrawl(ctx, await ctx.registerDeadWorker()),
    verdict: { action: 'replan', because: /no page was done yet/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'start',
    cleaned: false,
  },
  {
    situation: 'target took its worker down maxCrashes times while it was claimed alone',
    policy: { maxCrashes: 1 },
    arrange: async (ctx) => createHeldCrawl(ctx, await ctx.registerDeadWorker()),
    verdict: { action: 'park', because: /took down 1 workers/, applied: true },
    run: 'interrupted',
    target: 'parked',
    check: 'start',
  },
  {
    situation: 'no known owner, older than staleAfter, and the policy says onStale: fail',
    policy: { staleAfterMs: 30 * MINUTE, onStale: 'fail' },
    arrange: async (ctx) => agedBy(31 * MINUTE, ctx, await createReleasedRun(ctx, 2)),
    verdict: {
      action: 'fail',
      because: /no known owner for 31 min, longer than staleAfter/,
      applied: true,
    },
    run: 'failed',
    target: 'planned',
    check: 'clean',
    afterwards: async ({ store }, { run }) =>
      assert.equal((await store.run(run))!.counts.pages, 2, 'partial results are kept'),
  },
  {
    situation: 'no known owner, younger than abandonAfter',
    arrange: async (ctx) => agedBy(23 * HOUR, ctx, await createReleasedRun(ctx)),
    verdict: null,
    run: 'interrupted',
    target: 'planned',
    check: 'start',
    cleaned: false,
  },
  {
    situation: 'interrupted and not continued, older than abandonAfter, no progress',
    arrange: async (ctx) => {
      const situation = await createReleasedRun(ctx)
      await ctx.store.settle()
      return agedBy(25 * HOUR, ctx, situation)
    },
    verdict: {
      action: 'abandon',
      because: /25 h old, no progress and no checkpoint/,
      applied: false,
    },
    run: 'interrupted',
    target: 'planned',
    check: 'clean',
    cleaned: true,
  },
  {
    situation: 'the same with autoClean',
    policy: { autoClean: true },
    arrange: async (ctx) => agedBy(25 * HOUR, ctx, await createReleasedRun(ctx)),
    verdict: { action: 'abandon', because: /25 h old/, applied: true },
    run: 'abandoned',
    target: 'planned',
    check: 'clean',
    cleaned: true,
  },
  {
    situation: 'owner gone for 25 h, no progress, and not recovered: clean goes by its age',
    arrange: async (ctx) =>
      agedBy(25 * HOUR, ctx, await createHeldRun(ctx, await ctx.registerDeadWorker())),
    verdict: { action: 'retry', because: /nothing was done yet/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'start',
    cleaned: true,
  },
  {
    situation: 'no known owner, older, but a checkpoint',
    arrange: async (ctx) => agedBy(100 * HOUR, ctx, await createReleasedRun(ctx, 1)),
    verdict: null,
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
]

for (const engine of ENGINES) {
  for (const entryPoint of [LIBRARY, CLI]) {
    describe(`${engine.name}, ${entryPoint.name}`, { concurrency: 2 }, () => {
      for (const row of CASES) {
        test(`${row.situation}: ${row.verdict?.action ?? 'nothing to do'}`, async () => {
          await using db = await engine.fresh()
          const ctx = await createTestContext(db, row.policy ?? {})
          const situation = await row.arrange(ctx)

          const advice = await entryPoint.check(db.url)
          assert.equal(advice.action, row.check, advice.because)
          if (row.cleaned !== undefined) await assertCleans(entryPoint, ctx, situation, row.cleaned)
          if (row.cleaned) return assertRecovers(entryPoint, engine, row)
          await assertVerdict(entryPoint, ctx, situation, row)
        })
      }
    })
  }
}

async function createTestContext(
  db: TestDatabase,
  policy: Partial<Policy>,
): Promise<VerdictTestContext> {
  const store = await db.open()
  const me = thisProcess()
  return {
    db,
    store,
    policy,
    registerLiveWorker: () => registerWorker(store),
    registerDeadWorker: () =>
      registerWorker(store, { process: { ...me, pid: 2 ** 22 - 7, startTicks: 1 } }),
    // It beats fast, so that a newcomer need not listen for long.
    registerRemoteWorker: () =>
      registerWorker(store, { process: { ...me, host: 'far', bootId: 'x' }, heartbeatMs: 50 }),
  }
}

async function assertCleans(
  entryPoint: EntryPoint,
  ctx: VerdictTestContext,
  { run }: Situation,
  cleans: boolean,
): Promise<void> {
  const before = (await ctx.store.run(run))!.status
  const cleaned = await entryPoint.clean(ctx.db.url)
  const after = (await ctx.store.run(run))!
  assert.deepEqual(
    cleaned.map((one) => [one.run, one.action, one.outcome]),
    cleans ? [[run, 'abandon', 'applied']] : [],
  )
  assert.equal(after.status, cleans ? 'abandoned' : before)
  if (cleans) assert.ok(after.finishedAt !== null)
}

/** What was cleaned is no longer there to be recovered: that is seen on another stage. */
async function assertRecovers(
  entryPoint: EntryPoint,
  engine: (typeof ENGINES)[number],
  row: Case,
): Promise<void> {
  await using db = await engine.fresh()
  const ctx = await createTestContext(db, row.policy ?? {})
  await assertVerdict(entryPoint, ctx, await row.arrange(ctx), row)
}

async function assertVerdict(
  entryPoint: EntryPoint,
  ctx: VerdictTestContext,
  situation: Situation,
  row: Case,
): Promise<void> {
  const all = await entryPoint.recover(ctx.db.url)
  const verdicts = all.filter(({ target }) => target === null || target === situation.target)
  const { store } = ctx
  if (row.verdict === null) assert.deepEqual(all, [])
  else {
    const [verdict] = verdicts
    assert.equal(verdict?.action, row.verdict.action, JSON.stringify(verdicts))
    assert.match(verdict.because, row.verdict.because)
    assert.equal(verdict.outcome === 'applied', row.verdict.applied)
    assert.equal(verdicts.filter(({ action }) => action === row.verdict!.action).length, 1)
  }
  const run = (await store.run(situation.run))!
  assert.equal(run.status, row.run)
  if (row.target) assert.equal((await store.target(situation.target!))!.status, row.target)
  const audit = await store.audit({ run: situation.run, limit: 10 })
  assert.equal(audit.length, row.verdict?.applied ? 1 : 0, 'one audit entry per applied verdict')
  await row.afterwards?.(ctx, situation)
}
