import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../../../core/store/open.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { assertRejected, RunApiTestContext } from '../../../testing/run-api-test-context.ts'
import { TcpProxy } from '../../../testing/tcp-proxy.ts'

async function createProxiedContext(): Promise<
  AsyncDisposable & { ctx: RunApiTestContext; proxy: TcpProxy }
> {
  const database = await postgresEngine.fresh()
  const proxy = await TcpProxy.start(database.url)
  const store = await openStore(proxy.address, { connections: 2 })
  const ctx = await RunApiTestContext.createOn(database, store)
  return {
    ctx,
    proxy,
    [Symbol.asyncDispose]: async () => {
      await ctx.api.stop()
      await store.close()
      proxy.close()
      await database[Symbol.asyncDispose]()
    },
  }
}

test('while the database is away a call waits, a heartbeat does not, and nothing is lost or doubled', async () => {
  await using set = await createProxiedContext()
  const { ctx, proxy } = set
  const command = await ctx.begin()
  await command.post('/checkpoint', { page: 1 })
  proxy.close()

  const page = { page: 2, skipped: 1 }
  const waiting = command.post('/checkpoint', page)
  const again = command.post('/checkpoint', page)
  const where = command.get()
  const first = await Promise.race([waiting, again, where, sleep(300, 'they wait')])
  assert.equal(first, 'they wait')
  assert.deepEqual((await command.post('/heartbeat')).body, { stop: false })
  await proxy.open()

  assert.deepEqual([(await waiting).body, (await again).body], [{ seq: 2 }, { seq: 2 }])
  assert.equal((await where).body.page, 2)
  const { counts } = await ctx.run(command.handle.id)
  assert.deepEqual([counts.pages, counts.skipped], [2, 1])
})

test('a write that waits for the database ends when its run is lost, or released', async () => {
  await using set = await createProxiedContext()
  const { ctx, proxy } = set
  const [lost, released] = [await ctx.begin('a'), await ctx.begin('b')]
  proxy.close()
  const late = lost.post('/checkpoint', { page: 1 })
  const over = released.post('/checkpoint', { page: 1 })
  while (lost.calls + released.calls < 2) await sleep(5)
  await sleep(100)

  lost.handle.loseLease()
  await assert.rejects(released.handle.release(), { code: 'E_DB_UNREACHABLE' })

  assertRejected(await late, 409, 'LEASE_LOST')
  assertRejected(await over, 409, 'RUN_ENDED')
  await proxy.open()
})
