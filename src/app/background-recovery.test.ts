import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { BackgroundRecovery } from './background-recovery.ts'
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
