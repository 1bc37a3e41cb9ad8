import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { loadOverview, presentOverview } from '../presenters/overview.ts'
import { assertCountersConsistent } from './assert-counters.ts'
import { operatorContext, listTargets } from './fixtures.ts'
import { HOSTILE_TEXTS } from './hostile-text.ts'
import { postgresEngine } from './postgres-engine.ts'
import { fillShowcase } from './showcase.ts'
import { sqliteEngine } from './sqlite-engine.ts'

for (const [engine, hostile] of [
  [sqliteEngine, false],
  [postgresEngine, true],
] as const) {
  describe(`the showcase on ${engine.name}`, () => {
    test('it has a run in each health state, by legal transitions only, and its counters are consistent', async () => {
      await using database = await engine.fresh()
      const store = await database.open()
      await using showcase = await fillShowcase(store, { url: database.url, hostile })
      const { view } = presentOverview(await loadOverview(operatorContext(store)))
      const health = new Map(view.runs.map(({ id, health }) => [id, health]))
      const { runs } = showcase
      assert.equal(health.get(runs.healthy), 'healthy')
      assert.equal(health.get(runs.command), 'healthy')
      assert.equal(health.get(runs.orphaned), 'orphaned')
      assert.equal(health.get(runs.silent), 'orphaned')
      assert.equal(health.get(runs.stalled), 'stalled')
      assert.equal(health.get(runs.interrupted), 'interrupted')
      assert.equal(health.get(runs.dead), 'dead')
      assert.equal(health.get(runs.queued), 'waiting')
      assert.deepEqual(view.workers, { present: 4, gone: 1, stalled: 1, silent: 1 })
      assert.equal((await store.run(runs.failed))?.status, 'failed')
      assert.equal((await store.run(runs.cleaned))?.status, 'abandoned')
      assert.equal((await store.run(runs.reverted))?.status, 'succeeded')
      for (const run of Object.values(runs)) await assertCountersConsistent(store, run)
      const keys = (await listTargets(store, runs.healthy)).map(({ key }) => key)
      const used = HOSTILE_TEXTS.filter((text) => keys.some((key) => key.startsWith(text)))
      assert.equal(used.length, hostile ? HOSTILE_TEXTS.length : 0)
    })
  })
}

test('there are sixty distinct hostile texts', () => {
  assert.equal(new Set(HOSTILE_TEXTS).size, 60)
})
