import assert from 'node:assert/strict'
import { test } from 'node:test'
import { HttpRefusal } from './http-error.ts'
import { inLine } from './limit-concurrency.ts'

const ground = {} as Parameters<typeof inLine>[0]['ground']
const callOf = (name: string, signal = new AbortController().signal) =>
  ({ ground, signal, caller: { name, role: 'viewer', address: null, by: 'token' } }) as const

test(
  'of one caller two looks are under way, eight wait, and the next is refused; others are not in their way',
  { timeout: 150_000 },
  async () => {
    let [atOnce, most] = [0, 0]
    const gate = Promise.withResolvers<void>()
    const look = async (): Promise<string> => {
      most = Math.max(most, ++atOnce)
      await gate.promise
      atOnce--
      return 'seen'
    }
    const leaving = new AbortController()
    const asked = [
      ...Array.from({ length: 9 }, () => inLine(callOf('ada'), look)),
      inLine(callOf('ada', leaving.signal), look),
    ]
    const left = asked.pop()!.catch(({ name }: Error) => name)

    await assert.rejects(
      inLine(callOf('ada'), look),
      (error) => error instanceof HttpRefusal && error.status === 429,
    )
    leaving.abort()
    const other = inLine(callOf('bob'), async () => 'bob')
    assert.equal(await other, 'bob')
    gate.resolve()
    assert.deepEqual(new Set(await Promise.all(asked)), new Set(['seen']))
    assert.deepEqual([await left, most, atOnce], ['AbortError', 2, 0])
    assert.equal(await inLine(callOf('ada'), look), 'seen')
  },
)

test('a look that fails leaves its place to the next', async () => {
  const fail = (): Promise<never> => Promise.reject(new Error('no'))
  for (let n = 0; n < 12; n++) await assert.rejects(inLine(callOf('eve'), fail), /no/)
  assert.equal(await inLine(callOf('eve'), async () => 'seen'), 'seen')
})
