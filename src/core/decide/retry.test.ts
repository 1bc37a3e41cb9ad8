import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PageRejectedError } from '../model/errors.ts'
import { NonRetryableError, RetryLaterError } from '../model/page-errors.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import { decideRetry } from './retry.ts'

const NOW = Date.parse('2026-01-01T00:00:00Z')
const policy = { ...DEFAULT_POLICY, retries: 3, backoffMs: 1_000, backoffMaxMs: 5_000 }
const after = (errors: number, random: number, error: unknown = new Error('HTTP 503')) =>
  decideRetry(error, errors, policy, random, NOW)

test('errors are tried again with a growing pause, half of it by chance', () => {
  assert.deepEqual(after(0, 0), { action: 'retry', afterMs: 500 })
  assert.deepEqual(after(0, 1), { action: 'retry', afterMs: 1_000 })
  assert.deepEqual(after(1, 0.5), { action: 'retry', afterMs: 1_500 })
  assert.deepEqual(after(2, 1), { action: 'retry', afterMs: 4_000 })
})

test('after as many errors in a row as the policy tries again, it gives up', () => {
  assert.deepEqual(after(3, 0.5), { action: 'fail' })
  assert.deepEqual(after(9, 0.5), { action: 'fail' })
  assert.deepEqual(decideRetry(new Error('x'), 0, { ...policy, retries: 0 }, 0.5, NOW), {
    action: 'fail',
  })
})

test('a page that the store cannot keep is not tried again', () => {
  assert.deepEqual(after(0, 0.5, new PageRejectedError('a NUL')), { action: 'fail' })
})

test('an error that the handler marks as final fails its target, also one of another copy of the package', () => {
  const error = new NonRetryableError('gone')
  assert.deepEqual(after(0, 0.5, error), { action: 'fail' })
  const foreign = Object.assign(new Error('gone'), {
    [Symbol.for('unstuck.error')]: true,
    code: error.code,
  })
  assert.deepEqual(after(0, 0.5, foreign), { action: 'fail' })
})

test('a retry time given by the handler is used', () => {
  assert.deepEqual(after(1, 0.5, new RetryLaterError('90s')), { action: 'retry', afterMs: 90_000 })
  assert.deepEqual(after(3, 0.5, new RetryLaterError('90s')), { action: 'fail' })
})

test('an invalid retry time falls back to the usual pause', () => {
  const answer = (value: string): Response =>
    new Response(null, { status: 429, headers: { 'retry-after': value } })
  for (const nonsense of [undefined, new Date(NaN), answer('soon'), answer('-5'), answer('')]) {
    assert.deepEqual(after(0, 1, new RetryLaterError(nonsense)), {
      action: 'retry',
      afterMs: 1_000,
    })
  }
  assert.deepEqual(after(0, 1, new RetryLaterError(answer('7'))), {
    action: 'retry',
    afterMs: 7_000,
  })
  const date = answer('Thu, 01 Jan 2026 00:01:00 GMT')
  for (const at of [date, new Date(NOW + 60_000)])
    assert.deepEqual(after(0, 1, new RetryLaterError(at)), { action: 'retry', afterMs: 60_000 })
  const past = new RetryLaterError(new Date(NOW - 5))
  assert.deepEqual(after(0, 1, past), { action: 'retry', afterMs: 0 })
  assert.deepEqual(after(0, 1, new RetryLaterError('1500.4ms')), {
    action: 'retry',
    afterMs: 1_500,
  })
})

test('always: the pause is a whole number, at most backoffMax, and whatever was thrown is answered', () => {
  fc.assert(
    fc.property(
      fc.anything(),
      fc.nat(2_000),
      fc.nat(100_000),
      fc.nat(100_000),
      fc.double({ min: 0, max: 1, noNaN: true }),
      (thrown, errors, backoffMs, backoffMaxMs, random) => {
        const patient = { ...policy, retries: 10_000, backoffMs, backoffMaxMs }
        const decision = decideRetry(thrown, errors, patient, random, NOW)
        assert.ok(decision.action === 'retry')
        assert.ok(Number.isInteger(decision.afterMs))
        assert.ok(decision.afterMs >= 0 && decision.afterMs <= backoffMaxMs)
      },
    ),
  )
})
