import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { Attendant } from './background-recovery.ts'
import { REAL_CLOCK } from '../core/host/clock.ts'

test('while the database is away it is tried ever more seldom, said once, and nothing is left behind by a try', async () => {
  const said: string[] = []
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
  const attendant = new Attendant(
    'postgres://nobody@127.0.0.1:1/none',
    (event) => said.push(event.type),
    clock,
  )

  attendant.start()
  await enough.promise
  await attendant.stop()

  assert.deepEqual(pauses, [2_000, 4_000, 8_000, 16_000, 30_000, 30_000])
  assert.deepEqual(said, ['store_trouble'])
})
