import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { limitConcurrency } from './limit-concurrency.ts'

const context = {} as Parameters<typeof limitConcurrency>[0]['server']
const makeCall = (name: string, signal = new AbortController().signal) =>
  ({
    server: context,
    signal,
    caller: { name, role: 'viewer', address: null, by: 'token' },
  }) as const

test(
  'per caller two expensive reads run, eight queue, and the next is rejected; other callers are not affected',
  { timeout: 150_000 },
  async () => {
    let [atOnce, most] = [0, 0]
    const auth = Promise.withResolvers<void>()
    const look = async (): Promise<string> => {
      most = Math.max(most, ++atOnce)
      await auth.promise
      atOnce--
      return 'seen'
    }
    const leaving = new AbortController()
    const asked = [
      ...Array.from({ length: 9 }, () => limitConcurrency(makeCall('ada'), look)),
      limitConcurrency(makeCall('ada', leaving.signal), look),
    ]
    const left = asked.pop()!.catch(({ name }: Error) => name)

    await assert.rejects(
      limitConcurrency(makeCall('ada'), look),
      (error) => error instanceof HttpError && error.status === 429,
    )
    leaving.abort()
    const other = limitConcurrency(makeCall('bob'), async () => 'bob')
    assert.equal(await other, 'bob')
    auth.resolve()
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(['seen']))
    assert.deepEqual([await left, most, atOnce], ['AbortError', 2, 0])
    assert.equal(await limitConcurrency(makeCall('ada'), look), 'seen')
  },
)

test('a failed read frees its slot', async () => {
  const fail = (): Promise<never> => Promise.reject(new Error('no'))
  for (let n = 0; n < 12; n++) await assert.rejects(limitConcurrency(makeCall('eve'), fail), /no/)
  assert.equal(await limitConcurrency(makeCall('eve'), async () => 'seen'), 'seen')
})
