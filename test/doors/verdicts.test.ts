import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { open } from '../../src/index.ts'
import type { RunId, TargetId, WorkerId } from '../../src/core/model/id.ts'
import type { Policy } from '../../src/core/model/policy.ts'
import { thisProcess } from '../../src/core/host/identity.ts'
import type { Store } from '../../src/core/store/store.ts'
import { beginOne, claimOne, hire, ok, save, startCrawl } from '../../src/testing/fixtures.ts'
import { isLong } from '../../src/testing/length.ts'
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
  applied: boolean
}
type Advice = { action: string; because: string }

/** The same question, asked in code and on the command line. */
type Door = {
  readonly name: string
  recover(db: string): Promise<Verdict[]>
  check(db: string): Promise<Advice>
  clean(db: string): Promise<Verdict[]>
}

const LIBRARY: Door = {
  name: 'library',
  async recover(db) {
    await using unstuck = await open({ db, signals: false })
    return await unstuck.recover()
  },
  async check(db) {
    await using unstuck = await open({ db, signals: false })
    return await unstuck.check(SOURCE)
  },
  async clean(db) {
    await using unstuck = await open({ db, signals: false })
    return await unstuck.clean()
  },
}

async function ask<T>(codes: readonly number[], ...args: string[]): Promise<T> {
  const { code, stdout, stderr } = await unstuck([...args, '--json'], { cwd: '/' })
  assert.ok(codes.includes(code!), `${args.join(' ')} ended with ${code}: ${stderr}`)
  return JSON.parse(stdout) as T
}

const CLI: Door = {
  name: 'command line',
  recover: async (db) =>
    (await ask<{ verdicts: Verdict[] }>([0, 3], 'recover', '--yes', '--db', db)).verdicts,
  check: (db) => ask<Advice>([0, 5], 'check', SOURCE, '--db', db),
  clean: async (db) =>
    (await ask<{ cleaned: Verdict[] }>([0, 3], 'clean', '--auto', '--db', db)).cleaned,
}

/** A stage set for one row. */
type Set = {
  readonly db: TestDatabase
  readonly store: Store
  readonly policy: Partial<Policy>
  /** A worker in this process, which lives. */
  present(): Promise<WorkerId>
  /** A worker whose process is proven gone. */
  gone(): Promise<WorkerId>
  /** A worker on another host: nothing is known of it but its beats. */
  far(): Promise<WorkerId>
}
type Scene = { run: RunId; target?: TargetId; worker?: WorkerId }

type Row = {
  readonly sees: string
  readonly policy?: Partial<Policy>
  readonly arrange: (set: Set) => Promise<Scene>
  /** What `recover` decides; null: it has nothing to say. */
  readonly verdict: { action: string; because: RegExp; applied: boolean } | null
  readonly run: string
  readonly target?: string
  /** What a starter is told before anything is recovered. */
  readonly check: 'start' | 'resume' | 'clean' | 'wait'
  /** What `clean` makes of it, asked instead of `recover`. */
  readonly cleaned?: boolean
  readonly afterwards?: (set: Set, scene: Scene) => Promise<void>
}

/** A crawl with two targets, one of which this worker holds. */
async function heldCrawl(set: Set, worker: WorkerId, pages = 0): Promise<Scene> {
  const run = await startCrawl(set.store, 2, { policy: set.policy })
  let claimed = await claimOne(set.store, worker, { alone: true, empty: true })
  for (let page = 0; page < pages; page++) claimed = await save(set.store, claimed)
  return { run, target: claimed.target, worker }
}

/** A run with one target, held by this worker. */
async function heldRun(set: Set, worker: WorkerId, pages = 0): Promise<Scene> {
  let claimed = await beginOne(set.store, worker, { policy: set.policy })
  for (let page = 0; page < pages; page++) claimed = await save(set.store, claimed)
  return { run: claimed.run, target: claimed.target, worker }
}

/** A run that was handed back, so that nobody has it. */
async function leftRun(set: Set, pages = 0): Promise<Scene> {
  const worker = await set.present()
  const scene = await heldRun(set, worker, pages)
  const held = await set.store.heldBy(worker, null, 1)
  const { id, epoch, claimId } = held[0]!.target
  ok((await set.store.release([{ target: id, epoch, claimId: claimId!, worker }]))[0]!)
  await set.store.retire(worker)
  return scene
}

async function beat({ store }: Set, { worker }: Scene): Promise<void> {
  const held = await store.heldBy(worker!, null, 10)
  const claimIds = held.map(({ target }) => target.claimId!)
  await store.beat({ worker: worker!, claimIds, loopLagMs: 0 })
}

/** Its worker lives, but for this long nothing was saved. */
async function stalledFor(ms: number, set: Set, scene: Scene): Promise<Scene> {
  await set.db.later(ms)
  await beat(set, scene)
  return scene
}

async function agedBy(ms: number, set: Set, scene: Scene): Promise<Scene> {
  await set.db.later(ms)
  return scene
}

const ROWS: readonly Row[] = [
  {
    sees: 'owner present, progressing',
    arrange: async (set) => heldCrawl(set, await set.present(), 1),
    verdict: null,
    run: 'running',
    target: 'in_progress',
    check: 'wait',
    cleaned: false,
  },
  {
    sees: 'owner present for 26 h with fresh beats and nothing saved',
    arrange: async (set) => stalledFor(26 * HOUR, set, await heldRun(set, await set.present())),
    verdict: {
      action: 'alert',
      because: /timeout: .* alive.*no progress for 26 h/,
      applied: false,
    },
    run: 'running',
    target: 'in_progress',
    check: 'wait',
    cleaned: false,
  },
  {
    sees: 'owner present but stalled beyond maxSilence, by policy resume',
    policy: { onStalled: 'resume' },
    arrange: async (set) =>
      stalledFor(16 * MINUTE, set, await heldCrawl(set, await set.present(), 1)),
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
    sees: 'owner present but stalled beyond maxSilence, by policy fail',
    policy: { onStalled: 'fail' },
    arrange: async (set) =>
      stalledFor(16 * MINUTE, set, await heldRun(set, await set.present(), 1)),
    verdict: { action: 'fail', because: /^timeout/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'wait',
    afterwards: async ({ store }, { run }) =>
      assert.match((await store.run(run))!.error!, /^timeout/),
  },
  {
    sees: "a group's targets stalled beyond the group's own maxSilence",
    policy: { groups: { CA: { maxSilenceMs: 5 * MINUTE, onStalled: 'resume' } } },
    arrange: async (set) => {
      const worker = await set.present()
      const targets = [
        { key: 'a', group: 'CA' },
        { key: 'b', group: 'TX' },
      ]
      const run = await startCrawl(set.store, targets, { policy: set.policy })
      const [ca] = [await claimOne(set.store, worker), await claimOne(set.store, worker)]
      return stalledFor(6 * MINUTE, set, { run, target: ca.target, worker })
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
    sees: 'owner present, run beyond maxDuration',
    policy: { maxDurationMs: HOUR },
    arrange: async (set) => stalledFor(61 * MINUTE, set, await heldRun(set, await set.present())),
    verdict: { action: 'alert', because: /longer than maxDuration 60 min/, applied: false },
    run: 'running',
    target: 'in_progress',
    check: 'wait',
  },
  {
    sees: 'owner present, crawl beyond maxDuration, by policy fail',
    policy: { maxDurationMs: HOUR, maxSilenceMs: 10 * HOUR, onStalled: 'fail' },
    arrange: async (set) =>
      stalledFor(61 * MINUTE, set, await heldCrawl(set, await set.present(), 1)),
    verdict: { action: 'fail', because: /^timeout: running for 61 min/, applied: true },
    run: 'failed',
    target: 'planned',
    check: 'wait',
    afterwards: async ({ store }, { run, worker, target }) => {
      assert.match((await store.run(run))!.error!, /^timeout/)
      const { lastError, crashes } = (await store.target(target!))!
      assert.match(lastError!, /^timeout/)
      assert.equal(crashes, 0)
      assert.deepEqual(await store.heldBy(worker!, null, 5), [], 'its worker has lost it')
    },
  },
  {
    sees: 'owner present, crawl beyond maxDuration, by policy resume',
    policy: { maxDurationMs: HOUR, maxSilenceMs: 10 * HOUR, onStalled: 'resume' },
    arrange: async (set) =>
      stalledFor(61 * MINUTE, set, await heldCrawl(set, await set.present(), 1)),
    verdict: { action: 'resume', because: /^timeout: running for 61 min/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'wait',
  },
  {
    sees: 'owner gone, and a checkpoint exists',
    arrange: async (set) => heldCrawl(set, await set.gone(), 1),
    verdict: { action: 'resume', because: /no longer exists.*goes on after page 1/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
  {
    sees: 'owner silent, and a checkpoint exists',
    arrange: async (set) => agedBy(MINUTE, set, await heldRun(set, await set.far(), 1)),
    verdict: { action: 'resume', because: /silent: last beat 6\d s ago/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
  {
    sees: 'owner gone, a checkpoint, by policy onCrash fail',
    policy: { onCrash: 'fail' },
    arrange: async (set) => heldRun(set, await set.gone(), 1),
    verdict: { action: 'fail', because: /^process ended unexpectedly/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'clean',
  },
  {
    sees: 'owner gone, a checkpoint, by policy onCrash hold',
    policy: { onCrash: 'hold' },
    arrange: async (set) => heldRun(set, await set.gone(), 1),
    verdict: { action: 'hold', because: /^process ended unexpectedly/, applied: true },
    run: 'failed',
    target: 'stuck',
    check: 'clean',
  },
  {
    sees: 'owner gone, nothing done yet, a run with one target',
    arrange: async (set) => heldRun(set, await set.gone()),
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
    sees: 'owner gone, no page saved, but it had said how far it was',
    arrange: async (set) => {
      const scene = await heldRun(set, await set.gone())
      const [held] = await set.store.heldBy(scene.worker!, null, 1)
      const { id, epoch, claimId } = held!.target
      const claim = { target: id, epoch, claimId: claimId!, worker: scene.worker! }
      ok(await set.store.reportProgress(claim, { done: 500, total: 1_000 }))
      return scene
    },
    verdict: { action: 'resume', because: /no longer exists/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
  {
    sees: 'owner gone, nothing done yet, and it was retried before',
    policy: { maxRetries: 0 },
    arrange: async (set) => heldRun(set, await set.gone()),
    verdict: { action: 'fail', because: /unexpectedly with nothing done/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'clean',
    afterwards: async ({ store }) => assert.equal(await store.liveRun(SOURCE), null),
  },
  {
    sees: 'owner gone, nothing done yet, a target of a crawl',
    arrange: async (set) => heldCrawl(set, await set.gone()),
    verdict: { action: 'replan', because: /no page was done yet/, applied: true },
    run: 'interrupted',
    target: 'planned',
    check: 'start',
    cleaned: false,
  },
  {
    sees: 'target took its worker down maxCrashes times while it was claimed alone',
    policy: { maxCrashes: 1 },
    arrange: async (set) => heldCrawl(set, await set.gone()),
    verdict: { action: 'park', because: /took down 1 workers/, applied: true },
    run: 'interrupted',
    target: 'parked',
    check: 'start',
  },
  {
    sees: 'no known owner, older than staleAfter, and the policy says onStale: fail',
    policy: { staleAfterMs: 30 * MINUTE, onStale: 'fail' },
    arrange: async (set) => agedBy(31 * MINUTE, set, await leftRun(set, 2)),
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
    sees: 'no known owner, younger than abandonAfter',
    arrange: async (set) => agedBy(23 * HOUR, set, await leftRun(set)),
    verdict: null,
    run: 'interrupted',
    target: 'planned',
    check: 'start',
    cleaned: false,
  },
  {
    sees: 'interrupted and taken up by nobody, older than abandonAfter, no progress',
    arrange: async (set) => {
      const scene = await leftRun(set)
      await set.store.settle()
      return agedBy(25 * HOUR, set, scene)
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
    sees: 'the same with autoClean',
    policy: { autoClean: true },
    arrange: async (set) => agedBy(25 * HOUR, set, await leftRun(set)),
    verdict: { action: 'abandon', because: /25 h old/, applied: true },
    run: 'abandoned',
    target: 'planned',
    check: 'clean',
    cleaned: true,
  },
  {
    sees: 'owner gone for 25 h, nothing done, and nobody has recovered it: clean looks at its age',
    arrange: async (set) => agedBy(25 * HOUR, set, await heldRun(set, await set.gone())),
    verdict: { action: 'retry', because: /nothing was done yet/, applied: true },
    run: 'failed',
    target: 'failed',
    check: 'start',
    cleaned: true,
  },
  {
    sees: 'no known owner, older, but a checkpoint',
    arrange: async (set) => agedBy(100 * HOUR, set, await leftRun(set, 1)),
    verdict: null,
    run: 'interrupted',
    target: 'planned',
    check: 'resume',
    cleaned: false,
  },
]

for (const engine of ENGINES) {
  for (const door of [LIBRARY, CLI]) {
    describe(`${engine.name}, ${door.name}`, { concurrency: 2 }, () => {
      for (const row of ROWS) {
        test(`${row.sees}: ${row.verdict?.action ?? 'nothing to do'}`, async () => {
          await using db = await engine.fresh()
          const set = await makeSet(db, row.policy ?? {})
          const scene = await row.arrange(set)

          const advice = await door.check(db.url)
          assert.equal(advice.action, row.check, advice.because)
          if (row.cleaned !== undefined) await assertCleans(door, set, scene, row.cleaned)
          if (row.cleaned) return assertRecovers(door, engine, row)
          await assertVerdict(door, set, scene, row)
        })
      }
    })
  }
}

async function makeSet(db: TestDatabase, policy: Partial<Policy>): Promise<Set> {
  const store = await db.open()
  const me = thisProcess()
  return {
    db,
    store,
    policy,
    present: () => hire(store),
    gone: () => hire(store, { process: { ...me, pid: 2 ** 22 - 7, startTicks: 1 } }),
    // It beats fast, so that a newcomer need not listen for long.
    far: () => hire(store, { process: { ...me, host: 'far', bootId: 'x' }, heartbeatMs: 50 }),
  }
}

async function assertCleans(door: Door, set: Set, { run }: Scene, cleans: boolean): Promise<void> {
  const before = (await set.store.run(run))!.status
  const cleaned = await door.clean(set.db.url)
  const after = (await set.store.run(run))!
  assert.deepEqual(
    cleaned.map((one) => [one.run, one.action, one.applied]),
    cleans ? [[run, 'abandon', true]] : [],
  )
  assert.equal(after.status, cleans ? 'abandoned' : before)
  if (cleans) assert.ok(after.finishedAt !== null)
}

/** What was cleaned is no longer there to be recovered: that is seen on another stage. */
async function assertRecovers(
  door: Door,
  engine: (typeof ENGINES)[number],
  row: Row,
): Promise<void> {
  await using db = await engine.fresh()
  const set = await makeSet(db, row.policy ?? {})
  await assertVerdict(door, set, await row.arrange(set), row)
}

async function assertVerdict(door: Door, set: Set, scene: Scene, row: Row): Promise<void> {
  const all = await door.recover(set.db.url)
  const verdicts = all.filter(({ target }) => target === null || target === scene.target)
  const { store } = set
  if (row.verdict === null) assert.deepEqual(all, [])
  else {
    const [verdict] = verdicts
    assert.equal(verdict?.action, row.verdict.action, JSON.stringify(verdicts))
    assert.match(verdict.because, row.verdict.because)
    assert.equal(verdict.applied, row.verdict.applied)
    assert.equal(verdicts.filter(({ action }) => action === row.verdict!.action).length, 1)
  }
  const run = (await store.run(scene.run))!
  assert.equal(run.status, row.run)
  if (row.target) assert.equal((await store.target(scene.target!))!.status, row.target)
  const audit = await store.audit({ run: scene.run, limit: 10 })
  assert.equal(audit.length, row.verdict?.applied ? 1 : 0, 'one deed, one line in the trail')
  await row.afterwards?.(set, scene)
}
