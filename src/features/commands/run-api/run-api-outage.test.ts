import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../../core/store/open.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { assertRefused, RunApiStage } from '../../../testing/run-api-caller.ts'
import { ServerGate } from '../../../testing/server-switch.ts'

async function gated(): Promise<AsyncDisposable & { stage: RunApiStage; gate: ServerGate }> {
  const database = await postgresEngine.fresh()
  const gate = await ServerGate.to(database.url)
  const store = await openStore(gate.address, { connections: 2 })
  const stage = await RunApiStage.over(database, store)
  return {
    stage,
    gate,
    [Symbol.asyncDispose]: async () => {
      await stage.api.stop()
      await store.close()
      gate.shut()
      await database[Symbol.asyncDispose]()
    },
  }
}

test('while the database is away a call waits, a heartbeat does not, and nothing is lost or doubled', async () => {
  await using set = await gated()
  const { stage, gate } = set
  const command = await stage.begin()
  await command.post('/checkpoint', { page: 1 })
  gate.shut()

  const page = { page: 2, skipped: 1 }
  const waiting = command.post('/checkpoint', page)
  const again = command.post('/checkpoint', page)
  const where = command.get()
  const first = await Promise.race([waiting, again, where, sleep(300, 'they wait')])
  assert.equal(first, 'they wait')
  assert.deepEqual((await command.post('/heartbeat')).body, { stop: false })
  await gate.open()

  assert.deepEqual([(await waiting).body, (await again).body], [{ seq: 2 }, { seq: 2 }])
  assert.equal((await where).body.page, 2)
  const { counts } = await stage.run(command.handle.id)
  assert.deepEqual([counts.pages, counts.skipped], [2, 1])
})

test('a write that waits for the database ends when its run is lost, or handed back', async () => {
  await using set = await gated()
  const { stage, gate } = set
  const [lost, released] = [await stage.begin('a'), await stage.begin('b')]
  gate.shut()
  const late = lost.post('/checkpoint', { page: 1 })
  const over = released.post('/checkpoint', { page: 1 })
  while (lost.calls + released.calls < 2) await sleep(5)
  await sleep(100)

  lost.handle.lose()
  await assert.rejects(released.handle.release(), { code: 'E_DB_UNREACHABLE' })

  assertRefused(await late, 409, 'LEASE_LOST')
  assertRefused(await over, 409, 'RUN_ENDED')
  await gate.open()
})
