import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { PageRejectedError, RetryLaterError } from '../model/errors.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import { decideRetry } from './retry.ts'

const policy = { ...DEFAULT_POLICY, retries: 3, backoffMs: 1_000, backoffMaxMs: 5_000 }
const after = (errors: number, random: number, error: unknown = new Error('HTTP 503')) =>
  decideRetry(error, errors, policy, random)

test('errors are tried again with a growing pause, half of it by chance', () => {
  assert.deepEqual(after(0, 0), { action: 'retry', afterMs: 500 })
  assert.deepEqual(after(0, 1), { action: 'retry', afterMs: 1_000 })
  assert.deepEqual(after(1, 0.5), { action: 'retry', afterMs: 1_500 })
  assert.deepEqual(after(2, 1), { action: 'retry', afterMs: 4_000 })
})

test('after as many errors in a row as the policy tries again, it gives up', () => {
  assert.deepEqual(after(3, 0.5), { action: 'fail' })
  assert.deepEqual(after(9, 0.5), { action: 'fail' })
  assert.deepEqual(decideRetry(new Error('x'), 0, { ...policy, retries: 0 }, 0.5), {
    action: 'fail',
  })
})

test('a page that the store cannot keep is not tried again', () => {
  assert.deepEqual(after(0, 0.5, new PageRejectedError('a NUL')), { action: 'fail' })
})

test('a retry time given by the handler is used', () => {
  assert.deepEqual(after(1, 0.5, new RetryLaterError(90_000)), { action: 'retry', afterMs: 90_000 })
  assert.deepEqual(after(3, 0.5, new RetryLaterError(90_000)), { action: 'fail' })
})

test('an invalid retry time falls back to the usual pause', () => {
  for (const nonsense of [NaN, Infinity, -5]) {
    assert.deepEqual(after(0, 1, new RetryLaterError(nonsense)), {
      action: 'retry',
      afterMs: 1_000,
    })
  }
  assert.deepEqual(after(0, 1, new RetryLaterError(1_500.4)), { action: 'retry', afterMs: 1_500 })
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
        const decision = decideRetry(thrown, errors, patient, random)
        assert.ok(decision.action === 'retry')
        assert.ok(Number.isInteger(decision.afterMs))
        assert.ok(decision.afterMs >= 0 && decision.afterMs <= backoffMaxMs)
      },
    ),
  )
})
