import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpError } from '../../lib/http/errors.ts'
import { callerKey, makeReadLimit } from './call-route.ts'

const limit = makeReadLimit()
const read = <T>(name: string, look: () => Promise<T>, signal = new AbortController().signal) =>
  limit.run(callerKey({ name, role: 'viewer', address: null, by: 'token' }), [signal], look)

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
      ...Array.from({ length: 9 }, () => read('ada', look)),
      read('ada', look, leaving.signal),
    ]
    const left = asked.pop()!.catch(({ name }: Error) => name)

    await assert.rejects(
      read('ada', look),
      (error) => error instanceof HttpError && error.status === 429,
    )
    leaving.abort()
    const other = read('bob', async () => 'bob')
    assert.equal(await other, 'bob')
    auth.resolve()
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(['seen']))
    assert.deepEqual([await left, most, atOnce], ['AbortError', 2, 0])
    assert.equal(await read('ada', look), 'seen')
  },
)

test('a failed read frees its slot', async () => {
  const fail = (): Promise<never> => Promise.reject(new Error('no'))
  for (let n = 0; n < 12; n++) await assert.rejects(read('eve', fail), /no/)
  assert.equal(await read('eve', async () => 'seen'), 'seen')
})
