import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withAdoptedTables } from './store-wrapper.ts'
import { parseMapping } from './parse-mapping.ts'
import type { UnstuckEvent } from '../../core/model/event.ts'
import { DEFAULT_POLICY } from '../../core/model/policy.ts'
import { thisProcess } from '../../core/host/identity.ts'
import type { Store } from '../../core/store/store.ts'
import { claimOne, registerWorker, enqueueCrawl } from '../../testing/fixtures.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { minutesAgo } from '../../testing/user-project.ts'
import {
  insertRows,
  createUserTable,
  readUserRows,
  runUserSql,
  ypTargets,
} from '../../testing/user-tables.ts'
import { AdoptedRecovery } from './background-recovery.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { makePolicyOf, NO_OVERRIDES } from '../../core/model/policy-of.ts'

/** A table whose rows are silent after three minutes, in the database that is Unstuck's own too. */
async function createTestContext() {
  const database = await sqliteEngine.fresh()
  const { url } = database
  await createUserTable(url, ypTargets)
  await insertRows(url, ypTargets, [
    { id: 1, slug: 'lost', status: 'IN_PROGRESS', claimed_by: 'w-1', heartbeat_at: minutesAgo(61) },
    { id: 2, slug: 'busy', status: 'IN_PROGRESS', claimed_by: 'w-2', heartbeat_at: minutesAgo(1) },
  ])
  const options = { ...ypTargets.options.sqlite, policy: { lease: '3m', heartbeat: '1m' } }
  const mapping = parseMapping('targets', options, DEFAULT_POLICY, [])!
  const own = await database.open()
  const store = await withAdoptedTables(own, [mapping], { address: url })
  const events: UnstuckEvent[] = []
  const recovery = (more: { open?: () => Promise<Store>; worker?: () => string } = {}) =>
    new AdoptedRecovery({
      open: async () => store,
      policies: [mapping.policy],
      policyOf: makePolicyOf(NO_OVERRIDES),
      emit: (event) => events.push(event),
      ...more,
    })
  return {
    own,
    store,
    events,
    recovery,
    /** The lost row has an owner whose last heartbeat is long ago. */
    workAgain: () =>
      runUserSql(
        url,
        `UPDATE yp_targets SET status = 'IN_PROGRESS', heartbeat_at = '2020-01-01T00:00:00Z' WHERE id = 1`,
      ),
    statuses: async () => (await readUserRows(url, ypTargets)).map(({ status }) => status),
    async [Symbol.asyncDispose]() {
      await store.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

test('it recovers rows of silent owners, logs it, and leaves stored runs to the workers', async () => {
  await using one = await createTestContext()
  await enqueueCrawl(one.own, 2)
  const gone = await registerWorker(one.own, { process: GONE })
  await claimOne(one.own, gone)

  await one.recovery().runOnce()

  assert.deepEqual(await one.statuses(), ['PLANNED', 'IN_PROGRESS'])
  assert.deepEqual(
    one.events.map((event) => event.type === 'recovery' && event.verdict.action),
    ['replan'],
  )
  assert.equal((await one.own.claimsOf(gone, null, 10)).length, 1)
})

const GONE = { ...thisProcess(), pid: 2 ** 22 - 7, startTicks: 1 }

test('one process sweeps at a time', async () => {
  await using one = await createTestContext()
  const [first, second] = [await registerWorker(one.own), await registerWorker(one.own)]
  await one.recovery({ worker: () => first }).runOnce()
  await one.workAgain()

  await one.recovery({ worker: () => second }).runOnce()
  assert.deepEqual(await one.statuses(), ['IN_PROGRESS', 'IN_PROGRESS'])
  await one.own.retireWorker(first)
  await one.recovery({ worker: () => second }).runOnce()
  assert.deepEqual(await one.statuses(), ['PLANNED', 'IN_PROGRESS'])
})

test('after a gap of its own it waits a lease before it considers an owner silent', async () => {
  await using one = await createTestContext()
  let minutes = 0
  const now = async (): Promise<number> => (await one.own.now()) + minutes * 60_000
  const recovery = one.recovery({ open: async () => ({ ...one.store, now }) })
  const look = async (later: number): Promise<string> => {
    minutes += later
    await recovery.runOnce()
    return String((await one.statuses())[0])
  }
  assert.equal(await look(0), 'PLANNED')
  await one.workAgain()

  assert.equal(await look(10), 'IN_PROGRESS', 'it may have been deaf for ten minutes')
  assert.equal(await look(2), 'IN_PROGRESS')
  assert.equal(await look(2), 'PLANNED')
})

test('a slow sweep is not a gap: silent owners are still recovered', async () => {
  await using one = await createTestContext()
  let minutes = 0
  const now = async (): Promise<number> => (await one.own.now()) + minutes * 60_000
  const liveRuns: Store['liveRuns'] = () => {
    minutes += 10
    return one.store.liveRuns()
  }
  const recovery = one.recovery({ open: async () => ({ ...one.store, now, liveRuns }) })
  await recovery.runOnce()
  await one.workAgain()

  await recovery.runOnce()

  assert.ok(minutes >= 20)
  assert.deepEqual(await one.statuses(), ['PLANNED', 'IN_PROGRESS'])
})

test('a lasting error is logged once and does not stop it; without tables it does nothing', async () => {
  const events: UnstuckEvent[] = []
  const enough = Promise.withResolvers<void>()
  let pauses = 0
  const clock = {
    ...REAL_CLOCK,
    sleep: async (ms: number, stop?: AbortSignal): Promise<void> => {
      if (++pauses < 4) return
      enough.resolve()
      await REAL_CLOCK.sleep(ms, stop)
    },
  }
  const open = () => Promise.reject(new Error('there is no table jobs'))
  const options = {
    open,
    policyOf: makePolicyOf(NO_OVERRIDES),
    emit: (event: UnstuckEvent) => events.push(event),
  }
  const recovery = new AdoptedRecovery({ ...options, policies: [DEFAULT_POLICY], clock })
  const idle = new AdoptedRecovery({ ...options, policies: [] })

  recovery.start()
  idle.start()
  await enough.promise
  await recovery.stop()
  await idle.stop()

  assert.deepEqual(events, [{ type: 'store_error', message: 'there is no table jobs' }])
})
