import assert from 'node:assert/strict'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ENGINES, SHORT_LEASE, Stage, until } from './harness.ts'

for (const engine of ENGINES) {
  describe(`P1, P9 one effective owner, ${engine.name}`, { concurrency: 2 }, () => {
    test('P1 a worker that was stopped beyond its lease: another goes on, its late page is refused', async () => {
      await using stage = await Stage.set(engine)
      const crawl = stage.crawl(`
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
      const zombie = stage.unstuck('work', crawl)
      await stage.marked('slow')
      const other = stage.unstuck('work', crawl, '--drain')
      await other.says('working on stage')
      await stage.freeze(zombie)
      await stage.marked('slow', 2)

      // Both stand before the same page: only the claim tells them apart.
      stage.open('zombie')
      zombie.signal('SIGCONT')
      await zombie.says('a dropped')
      stage.open('other')

      assert.equal(await other.end(), 0)
      assert.match(
        other.output,
        /recovery: .* resume — .* is silent: last beat .*; goes on after page 1/,
      )
      assert.doesNotMatch(other.output, /dropped/)
      assert.ok((await stage.run()).counts.refused >= 1)
      zombie.signal('SIGTERM')
      assert.equal(await zombie.end(), 0)
      const target = await stage.target('a')
      assert.deepEqual([target.status, target.page, target.epoch], ['done', 4, 2])
      assert.deepEqual(await stage.ledger(), ['a/1', 'a/2', 'a/3', 'a/4'])
      const items = await (await stage.store()).items('stage', null, 10)
      assert.deepEqual(
        items.map(({ data }) => data),
        [zombie.pid, other.pid, other.pid, other.pid],
      )
      const run = await stage.run()
      assert.deepEqual([run.status, run.counts.pages, run.counts.itemsNew], ['succeeded', 4, 4])
    })

    test('P9 an event loop blocked for three leases is shown, and nothing is taken from it', async () => {
      await using stage = await Stage.set(engine)
      const crawl = stage.crawl(`
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
        stage.unstuck('work', crawl, '--drain'),
        stage.unstuck('work', crawl, '--drain'),
      ]
      await stage.marked('page', 2)
      const store = await stage.store()
      await until('a worker whose loop lags', async () =>
        (await store.workers()).some(({ worker }) => worker.loopLagMs > 3_000),
      )

      for (const program of programs) assert.equal(await program.end(), 0)
      assert.deepEqual(await stage.verdicts(), [])
      for (const target of (await stage.targets()).values()) {
        assert.deepEqual([target.status, target.attempts, target.epoch], ['done', 1, 1])
      }
      assert.deepEqual(await stage.ledger(), ['blocked/1', 'slow/1'])
      assert.equal((await stage.run()).counts.refused, 0)
    })
  })
}

test('P9 a lock file deleted under a living worker proves nothing: nothing is taken from it', async () => {
  await using stage = await Stage.set(sqliteEngine)
  const crawl = stage.crawl(`
    *targets() { yield { key: 'a' }; yield { key: 'b' } },
    async page({ target, page }) {
      mark('page', target.key, page)
      await opened('gate')
      return { next: null, inTransaction: ledger(target.key, page) }
    },
    policy: ${SHORT_LEASE},
  `)
  const programs = [
    stage.unstuck('work', crawl, '--drain'),
    stage.unstuck('work', crawl, '--drain'),
  ]
  await stage.marked('page', 2)
  const locks = `${stage.database.url.slice('sqlite:'.length)}-workers`
  for (const name of readdirSync(locks)) rmSync(join(locks, name))

  const store = await stage.store()
  const beats = async () => (await store.workers()).map(({ worker }) => worker.beats)
  const before = await beats()
  await until('ten beats of each', async () =>
    (await beats()).every((n, i) => n >= before[i]! + 10),
  )
  stage.open('gate')

  for (const program of programs) assert.equal(await program.end(), 0)
  assert.deepEqual(await stage.verdicts(), [])
  assert.deepEqual(await stage.ledger(), ['a/1', 'b/1'])
})
