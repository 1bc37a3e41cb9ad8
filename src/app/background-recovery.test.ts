import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { BackgroundRecovery, startBackgroundRecovery } from './background-recovery.ts'
import { sqliteEngine } from '../testing/sqlite-engine.ts'
import { NO_OVERRIDES } from '../core/model/policy-of.ts'
import { REAL_CLOCK } from '../core/host/clock.ts'

test('while the database is unreachable it retries with growing pauses, logs once, and leaks nothing', async () => {
  const emitted: string[] = []
  const pauses: number[] = []
  const enough = Promise.withResolvers<void>()
  const clock = {
    ...REAL_CLOCK,
    sleep: async (ms: number, stop?: AbortSignal): Promise<void> => {
      pauses.push(ms)
      assert.deepEqual(getEventListeners(stop!, 'abort'), [])
      if (pauses.length < 6) return
      enough.resolve()
      await REAL_CLOCK.sleep(ms, stop)
    },
  }
  const recovery = new BackgroundRecovery(
    'postgres://nobody@127.0.0.1:1/none',
    NO_OVERRIDES,
    (event) => emitted.push(event.type),
    clock,
  )

  recovery.start()
  await enough.promise
  await recovery.stop()

  assert.deepEqual(pauses, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  assert.deepEqual(emitted, ['store_error'])
})

// That it otherwise continues, and recovers rows and workers, is tested in next.test.ts.
for (const options of [{ monitor: false }, { dryRun: true }]) {
  test(`it ends with the start: ${JSON.stringify(options)}`, async () => {
    await using database = await sqliteEngine.fresh()
    const store = await database.open()
    const lines: string[] = []
    await startBackgroundRecovery({ db: database.url, log: (line) => lines.push(line), ...options })
    // A background recovery would register within a moment.
    await sleep(1_000)
    assert.deepEqual(await store.observations(), [])
    assert.deepEqual(lines, ['no run is active'])
  })
}
