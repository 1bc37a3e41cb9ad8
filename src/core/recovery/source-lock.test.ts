import assert from 'node:assert/strict'
import { test } from 'node:test'
import { thisProcess } from '../host/identity.ts'
import type { SourceLock } from '../model/source-lock.ts'
import type { Store } from '../store/store.ts'
import { registerWorker } from '../../testing/fixtures.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { inspectSourceLock } from './source-lock.ts'

const LEASE_MS = 60_000
const KILL_TIMEOUT_MS = 100

/** A guard that a worker on another machine holds, whose last heartbeat is too old. */
async function lockFromOtherHost(db: Awaited<ReturnType<typeof sqliteEngine.fresh>>) {
  const store = await db.open()
  const process = { ...thisProcess(), host: 'elsewhere', bootId: 'another boot' }
  const worker = await registerWorker(store, { process, heartbeatMs: 300, leaseMs: LEASE_MS })
  await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
  const guard = await lock(store, worker)
  await db.advanceClock(LEASE_MS + KILL_TIMEOUT_MS + 1_000)
  return { store, worker, guard }
}

function lock(store: Store, worker: string): Promise<SourceLock> {
  return store.lockSource({ source: 's', worker, killTimeoutMs: KILL_TIMEOUT_MS, processTag: 'c' })
}

test('P9 a process that starts right after an outage waits for heartbeats before it takes a source from another machine', async () => {
  await using db = await sqliteEngine.fresh()
  const { store, worker, guard } = await lockFromOtherHost(db)
  let looks = 0
  const seen: Store = {
    ...store,
    observations: async () => {
      const found = await store.observations()
      // Once it was seen as silent, and is listened for.
      if (++looks === 2) await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
      return found
    },
  }
  assert.equal((await inspectSourceLock(seen, guard)).advice.action, 'refuse')
})

test('a silent holder on another machine loses the source, and the log notes that its death is not proven', async () => {
  await using db = await sqliteEngine.fresh()
  const { store, guard } = await lockFromOtherHost(db)
  const { advice } = await inspectSourceLock(store, guard)
  assert.equal(advice.action, 'take')
  assert.match(advice.because, /not proven/)
})
