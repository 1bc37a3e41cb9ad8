import assert from 'node:assert/strict'
import { test } from 'node:test'
import { thisProcess } from '../host/identity.ts'
import type { Guard } from '../model/source-lock.ts'
import type { Store } from '../store/store.ts'
import { hire } from '../../testing/fixtures.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { lookAtGuard } from './source-lock.ts'

const LEASE_MS = 60_000
const KILL_TIMEOUT_MS = 100

/** A guard that a worker on another machine holds, whose last beat is too old. */
async function heldElsewhere(db: Awaited<ReturnType<typeof sqliteEngine.fresh>>) {
  const store = await db.open()
  const process = { ...thisProcess(), host: 'elsewhere', bootId: 'another boot' }
  const worker = await hire(store, { process, heartbeatMs: 300, leaseMs: LEASE_MS })
  await store.beat({ worker, claimIds: [], loopLagMs: 0 })
  const guard = await hold(store, worker)
  await db.later(LEASE_MS + KILL_TIMEOUT_MS + 1_000)
  return { store, worker, guard }
}

function hold(store: Store, worker: string): Promise<Guard> {
  return store.holdSource({ source: 's', worker, killTimeoutMs: KILL_TIMEOUT_MS, cookie: 'c' })
}

test('P9 whoever comes right after an outage listens before it takes a source from another machine', async () => {
  await using db = await sqliteEngine.fresh()
  const { store, worker, guard } = await heldElsewhere(db)
  let looks = 0
  const seen: Store = {
    ...store,
    workers: async () => {
      const found = await store.workers()
      // Once it was seen as silent, and is listened for.
      if (++looks === 2) await store.beat({ worker, claimIds: [], loopLagMs: 0 })
      return found
    },
  }
  assert.equal((await lookAtGuard(seen, guard)).advice.action, 'refuse')
})

test('a holder on another machine that stays silent loses it, and it is said that nothing is proven', async () => {
  await using db = await sqliteEngine.fresh()
  const { store, guard } = await heldElsewhere(db)
  const { advice } = await lookAtGuard(store, guard)
  assert.equal(advice.action, 'take')
  assert.match(advice.because, /not proven/)
})
