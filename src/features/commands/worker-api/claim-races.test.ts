import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Store } from '../../../core/store/store.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { recoverWorker } from '../../../testing/fixtures.ts'
import { WorkerApiTestContext } from '../../../testing/worker-api-test-context.ts'

/** A store whose replies to one method arrive when `open` is called. */
function withLateReplies(store: Store, method: 'claim' | 'release' | 'checkpoint') {
  const gate = Promise.withResolvers<void>()
  const called = Promise.withResolvers<void>()
  const late = Object.create(store) as Store
  Object.defineProperty(late, method, {
    value: async (request: never) => {
      const reply = await (store[method] as (given: never) => Promise<unknown>)(request)
      called.resolve()
      await gate.promise
      return reply
    },
  })
  return { store: late, called: called.promise, open: () => gate.resolve() }
}

const page = (n: number, done: boolean) => ({ page: n, items: [], done })

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`claims and replies that cross, ${engine.name}`, () => {
    test('a target that is claimed again before the reply to its release is still held', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(1)
      const late = withLateReplies(ctx.store, 'release')
      const command = await ctx.command(run, {}, late.store)
      const [{ id }] = await command.claim()
      const release = command.post(`/targets/${id}/release`)
      await late.called
      const [again] = await command.claim()
      assert.equal(again.id, id)
      late.open()
      assert.equal((await release).status, 200)
      const saved = await command.post(`/targets/${id}/checkpoint`, page(1, true))
      assert.deepEqual(saved.body, { seq: 1, done: true })
    })

    test('a late page of a lost claim does not end the claim that the same command got since', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(1)
      const late = withLateReplies(ctx.store, 'checkpoint')
      const command = await ctx.command(run, {}, late.store)
      const [{ id }] = await command.claim()
      await ctx.store.release(command.session.held.all.map(({ claim }) => claim))
      const refused = command.post(`/targets/${id}/checkpoint`, page(1, false))
      await late.called
      const [again] = await command.claim()
      assert.equal(again.id, id)
      late.open()
      assert.equal((await refused).body.error.code, 'LEASE_LOST')
      assert.deepEqual((await command.post('/heartbeat')).body.lost, [])
      const saved = await command.post(`/targets/${id}/checkpoint`, page(1, true))
      assert.equal(saved.status, 200, JSON.stringify(saved.body))
    })

    test('a claim ends once: another end than the first is refused', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const command = await ctx.command(await ctx.run(2))
      const [a, b] = await command.claim(2)
      const end = async (id: string, how: string, body = {}): Promise<unknown> => {
        const { status, body: answer } = await command.post(`/targets/${id}/${how}`, body)
        return status === 200 ? status : answer.error.code
      }
      assert.equal(await end(a.id, 'release'), 200)
      assert.equal(await end(a.id, 'finish'), 'LEASE_LOST')
      assert.equal(await end(a.id, 'fail', { error: 'no' }), 'LEASE_LOST')
      assert.equal(await end(a.id, 'release'), 200)
      assert.equal(await end(b.id, 'checkpoint', page(1, true)), 200)
      assert.equal(await end(b.id, 'park', { error: 'no' }), 'LEASE_LOST')
      assert.equal(await end(b.id, 'finish'), 200)
      assert.equal(await end(b.id, 'release'), 200)
    })

    test('P11 a target that crashed its worker is claimed alone, also by calls at the same time', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(6)
      const dead = await ctx.command(run)
      await dead.claim()
      await recoverWorker(ctx.store, dead.worker)
      const command = await ctx.command(run)
      const claims = await Promise.all(Array.from({ length: 4 }, () => command.post('/claim')))
      const claimed = claims.flatMap(({ body }) => body.targets)
      assert.equal(claimed.length, 1)
    })

    test('pages are saved while more calls than are handled at once wait for a target', async () => {
      await using ctx = await WorkerApiTestContext.create(engine)
      const run = await ctx.run(1)
      const command = await ctx.command(run)
      const [{ id }] = await command.claim()
      const waiting = Array.from({ length: 70 }, () => command.post('/claim', { waitMs: 30_000 }))
      while (command.calls < 71) await sleep(5)
      const saving = command.post(`/targets/${id}/checkpoint`, page(1, false))
      const first = await Promise.race([saving, ...waiting])
      assert.deepEqual(first.body, { seq: 1, done: false })
      command.stopping.abort()
      await Promise.all(waiting)
    })
  })
}
