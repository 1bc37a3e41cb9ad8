import assert from 'node:assert/strict'
import { test } from 'node:test'
import { NotFoundError } from '../../../core/model/errors.ts'
import { newId, type RunId, type TargetId } from '../../../core/model/id.ts'
import type { ReplanRequest, Store } from '../../../core/store/store.ts'
import {
  claim,
  claimOne,
  enqueueCrawl,
  getTarget,
  listTargets,
  registerWorker,
  savePage,
  SOURCE,
  unwrap,
} from '../../../testing/fixtures.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { ACKNOWLEDGE_STORE, type AcknowledgeRequest, type AcknowledgeStore } from './store.ts'

type Opened = Store & AcknowledgeStore

const AUDIT_INFO = { actor: 'alice', because: 'the city has moved' }

function request(run: RunId, given: Partial<AcknowledgeRequest> = {}): AcknowledgeRequest {
  return { run, undo: false, dryRun: false, ...AUDIT_INFO, ...given }
}

/** A failed run with targets of the groups ca, ca and tx, each failed after its first page. */
async function failedRun(store: Store, source = SOURCE): Promise<{ run: RunId; ids: TargetId[] }> {
  const worker = await registerWorker(store, { source })
  const targets = ['ca', 'ca', 'tx'].map((group, n) => ({ key: `t${n}`, group }))
  const run = await enqueueCrawl(store, targets, { source })
  for (const claimed of await claim(store, worker, 3, { source })) {
    const saved = await savePage(store, claimed)
    unwrap((await store.fail([{ ...saved, error: 'gave up', becomes: 'failed' }]))[0]!)
  }
  await store.settle()
  const ids = (await listTargets(store, run)).map(({ id }) => id)
  return { run, ids }
}

async function marks(store: Store, run: RunId): Promise<string> {
  const { acknowledgedAt } = (await store.run(run))!
  const targets = await listTargets(store, run)
  return [acknowledgedAt, ...targets.map((target) => target.acknowledgedAt)]
    .map((at) => (at === null ? '-' : 'x'))
    .join('')
}

for (const engine of [sqliteEngine, postgresEngine]) {
  const open = async (work: (store: Opened) => Promise<void>): Promise<void> => {
    await using db = await engine.fresh()
    await work(await openExtended(db, ACKNOWLEDGE_STORE))
  }

  test(`a failed run is acknowledged with its targets, once, and undone, ${engine.name}`, () =>
    open(async (store) => {
      const { run } = await failedRun(store)
      const other = await failedRun(store, 'other')

      const preview = await store.acknowledge(request(run, { dryRun: true }))
      assert.deepEqual(preview, { targets: 3, isRunChanged: true })
      assert.equal(await marks(store, run), '----')
      assert.deepEqual(await store.acknowledge(request(run)), preview)
      assert.equal(await marks(store, run), 'xxxx')
      assert.equal(await marks(store, other.run), '----')
      assert.deepEqual(await store.acknowledge(request(run)), { targets: 0, isRunChanged: false })

      assert.deepEqual(await store.acknowledgedCounts([run, other.run]), [
        { run, status: 'failed', count: 3 },
      ])
      assert.deepEqual(await store.acknowledgedCounts([other.run]), [])
      assert.equal((await store.acknowledgedCounts(null)).length, 1)
      const letters = (await store.deadLetters({ acknowledged: true, limit: 10 })).items
      assert.deepEqual(
        letters.map((letter) => letter.run),
        [run, run, run],
      )
      const entries = await store.audit({ run, limit: 10 })
      const [entry, ...more] = entries.filter(({ action }) => action === 'acknowledge')
      assert.deepEqual(more, [], 'one entry for the run')
      const { actor, because, target, after } = entry!
      assert.deepEqual({ actor, because }, AUDIT_INFO)
      assert.deepEqual([target, after], [null, { acknowledged: true, count: 3 }])

      const undone = await store.acknowledge(request(run, { undo: true }))
      assert.deepEqual(undone, { targets: 3, isRunChanged: true })
      assert.equal(await marks(store, run), '----')
    }))

  test(`named targets and groups are acknowledged without their run, ${engine.name}`, () =>
    open(async (store) => {
      const { run, ids } = await failedRun(store)
      const [first] = ids
      assert.deepEqual(await store.acknowledge(request(run, { targets: [first!] })), {
        targets: 1,
        isRunChanged: false,
      })
      const unknown = await store.acknowledge(request(run, { targets: [newId()] }))
      assert.equal(unknown.targets, 0)
      const [entry] = await store.audit({ run, newestFirst: true, limit: 1 })
      assert.deepEqual(entry!.target, first)
      assert.equal(await marks(store, run), '-x--')
      assert.equal((await store.acknowledge(request(run, { groups: ['ca'] }))).targets, 1)
      assert.equal(await marks(store, run), '-xx-')
      const undone = await store.acknowledge(request(run, { targets: [first!], undo: true }))
      assert.equal(undone.targets, 1)
      assert.equal(await marks(store, run), '--x-')
    }))

  test(`what has not failed is not acknowledged, ${engine.name}`, () =>
    open(async (store) => {
      const run = await enqueueCrawl(store, 2)
      assert.deepEqual(await store.acknowledge(request(run)), { targets: 0, isRunChanged: false })
      assert.deepEqual(await store.audit({ run, limit: 5 }), [])
      await assert.rejects(store.acknowledge(request(newId())), NotFoundError)
    }))

  test(`whatever plans a target again, parks it or reopens its run removes the mark, ${engine.name}`, () =>
    open(async (store) => {
      const replan = (run: RunId, more: Partial<ReplanRequest> = {}) =>
        store.replan({
          run,
          action: 'reset-failed',
          statuses: ['failed', 'parked'],
          reopen: false,
          dryRun: false,
          ...AUDIT_INFO,
          ...more,
        })
      const cases: ((run: RunId, ids: TargetId[]) => Promise<[marks: string]>)[] = [
        async (run) => (await replan(run), ['----']),
        async (run, [first]) => (await replan(run, { targets: [first!] }), ['--xx']),
        async (_run, [first]) => {
          await store.rewind({ target: first!, to: 0, next: null, cursor: null, ...AUDIT_INFO })
          return ['--xx']
        },
        async (_run, [first]) => {
          await store.parkTargets({ targets: [first!], ...AUDIT_INFO })
          return ['x-xx']
        },
        async (run, [first]) => {
          const to = 'interrupted'
          const targets = [{ id: first!, status: 'failed' as const, seq: 1 }]
          const plan = { run, from: 'failed' as const, to, targets, cancel: null, undoes: 'fail' }
          assert.ok(await store.revert({ ...plan, to, ...AUDIT_INFO }))
          return ['--xx']
        },
      ]
      for (const [n, act] of cases.entries()) {
        const { run, ids } = await failedRun(store, `shop-${n}`)
        await store.acknowledge(request(run))
        const [expected] = await act(run, ids)
        assert.equal(await marks(store, run), expected, `case ${n}`)
      }
    }))

  test(`an acknowledgement beside a replan leaves no mark on what is planned, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await openExtended(db, ACKNOWLEDGE_STORE)
    const other = await db.open()
    for (let round = 0; round < 5; round++) {
      const { run } = await failedRun(store, `shop-${round}`)
      const replan = { run, action: 'reset-failed' as const, reopen: false, dryRun: false }
      await Promise.all([
        store.acknowledge(request(run)),
        other.replan({ ...replan, statuses: ['failed'], ...AUDIT_INFO }),
      ])
      assert.equal(await marks(store, run), '----')
    }
  })

  test(`a target that fails again needs attention again, ${engine.name}`, () =>
    open(async (store) => {
      const { run, ids } = await failedRun(store)
      await store.acknowledge(request(run))
      await store.replan({
        run,
        action: 'reset-failed',
        statuses: ['failed'],
        targets: [ids[0]!],
        reopen: false,
        dryRun: false,
        ...AUDIT_INFO,
      })
      const again = await claimOne(store, await registerWorker(store))
      unwrap((await store.fail([{ ...again, error: 'again', becomes: 'failed' }]))[0]!)
      assert.equal((await getTarget(store, ids[0]!)).acknowledgedAt, null)
      assert.deepEqual(await store.acknowledgedCounts([run]), [{ run, status: 'failed', count: 2 }])
    }))
}
