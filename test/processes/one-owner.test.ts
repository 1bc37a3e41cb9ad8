import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { itemsOf } from '../../src/testing/fixtures.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ENGINES, SHORT_LEASE, ProcessTestContext, waitFor } from './harness.ts'

for (const engine of ENGINES) {
  describe(`P1, P9 one effective owner, ${engine.name}`, { concurrency: 2 }, () => {
    test('P1 a worker suspended beyond its lease: another continues, its late page is rejected', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(`
        *targets() { yield { key: 'a' } },
        async page({ target, page }) {
          mark('page', target.key, page)
          if (page === 2) {
            mark('slow')
            if (marked('slow') === 1) blockUntilOpened('zombie')
            else await opened('other')
          }
          return { items: [{ key: 'a' + page, data: process.pid }], next: page < 4 ? 'next' : null,
                   inTransaction: ledger(target.key, page) }
        },
        policy: ${SHORT_LEASE},
      `)
      const zombie = ctx.unstuck('work', crawl)
      await ctx.waitForMarks('slow')
      const other = ctx.unstuck('work', crawl, '--drain')
      await other.waitForOutput('working on stage')
      await ctx.freeze(zombie)
      await ctx.waitForMarks('slow', 2)

      // Both stand before the same page: only the claim tells them apart.
      ctx.openGate('zombie')
      zombie.signal('SIGCONT')
      await zombie.waitForOutput('a dropped')
      ctx.openGate('other')

      assert.equal(await other.waitForExit(), 0)
      assert.match(
        other.output,
        /recovery: resume .* is silent: last heartbeat .*; continues after page 1/,
      )
      assert.doesNotMatch(other.output, /dropped/)
      assert.ok((await ctx.run()).counts.refused >= 1)
      zombie.signal('SIGTERM')
      assert.equal(await zombie.waitForExit(), 0)
      const target = await ctx.target('a')
      assert.deepEqual([target.status, target.page, target.epoch], ['done', 4, 2])
      assert.deepEqual(await ctx.ledger(), ['a/1', 'a/2', 'a/3', 'a/4'])
      const items = await itemsOf(await ctx.store(), 'stage')
      assert.deepEqual(
        items.map(({ data }) => data),
        [zombie.pid, other.pid, other.pid, other.pid],
      )
      const run = await ctx.run()
      assert.deepEqual([run.status, run.counts.pages, run.counts.itemsNew], ['succeeded', 4, 4])
    })

    test('P9 an event loop blocked for three leases is shown, and nothing is taken from it', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(`
        *targets() { yield { key: 'blocked' }; yield { key: 'slow' } },
        async page({ target, page }) {
          mark('page', target.key, page)
          if (target.key === 'blocked') block(6_000)
          else await sleep(6_000)
          return { next: null, inTransaction: ledger(target.key, page) }
        },
        policy: ${SHORT_LEASE},
      `)
      const programs = [
        ctx.unstuck('work', crawl, '--drain'),
        ctx.unstuck('work', crawl, '--drain'),
      ]
      await ctx.waitForMarks('page', 2)
      const store = await ctx.store()
      await waitFor('a worker whose loop lags', async () =>
        (await store.observations()).some(({ worker }) => worker.loopLagMs > 3_000),
      )

      for (const program of programs) assert.equal(await program.waitForExit(), 0)
      assert.deepEqual(await ctx.verdicts(), [])
      for (const target of (await ctx.targets()).values()) {
        assert.deepEqual([target.status, target.attempts, target.epoch], ['done', 1, 1])
      }
      assert.deepEqual(await ctx.ledger(), ['blocked/1', 'slow/1'])
      assert.equal((await ctx.run()).counts.refused, 0)
    })
  })
}

test('P9 a deleted lock file of a live worker proves nothing: nothing is taken from it', async () => {
  await using ctx = await ProcessTestContext.create(sqliteEngine)
  const crawl = ctx.crawl(`
    *targets() { yield { key: 'a' }; yield { key: 'b' } },
    async page({ target, page }) {
      mark('page', target.key, page)
      await opened('gate')
      return { next: null, inTransaction: ledger(target.key, page) }
    },
    policy: ${SHORT_LEASE},
  `)
  const programs = [ctx.unstuck('work', crawl, '--drain'), ctx.unstuck('work', crawl, '--drain')]
  await ctx.waitForMarks('page', 2)
  const locks = `${ctx.database.url.slice('sqlite:'.length)}-workers`
  for (const name of readdirSync(locks)) rmSync(join(locks, name))

  const store = await ctx.store()
  const beats = async () => (await store.observations()).map(({ worker }) => worker.heartbeats)
  const before = await beats()
  await waitFor('ten beats of each', async () =>
    (await beats()).every((n, i) => n >= before[i]! + 10),
  )
  ctx.openGate('gate')

  for (const program of programs) assert.equal(await program.waitForExit(), 0)
  assert.deepEqual(await ctx.verdicts(), [])
  assert.deepEqual(await ctx.ledger(), ['a/1', 'b/1'])
})
