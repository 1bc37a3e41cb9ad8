import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DEFAULT_POLICY, policyForGroup } from '../../core/model/policy.ts'
import { makePolicy } from './policy-options.ts'

test('no options are the defaults', () => {
  assert.deepEqual(makePolicy(undefined), { policy: DEFAULT_POLICY, mistakes: [] })
  assert.deepEqual(makePolicy({}), { policy: DEFAULT_POLICY, mistakes: [] })
  assert.deepEqual(makePolicy({ lease: undefined }).policy, DEFAULT_POLICY)
})

test('the defaults keep their own rules', () => {
  assert.ok(DEFAULT_POLICY.leaseMs >= 3 * DEFAULT_POLICY.heartbeatMs)
  assert.equal(DEFAULT_POLICY.heartbeatMs, 1_000)
  assert.equal(DEFAULT_POLICY.leaseMs, 15_000)
  assert.equal(DEFAULT_POLICY.abandonAfterMs, 24 * 3_600_000)
  assert.equal(DEFAULT_POLICY.maxCrashes, 3)
  assert.equal(DEFAULT_POLICY.runRetries, 1)
})

test('durations are parsed with their units', () => {
  const { policy, mistakes } = makePolicy({ heartbeat: '2s', lease: '1m', maxDuration: '2h' })

  assert.deepEqual(mistakes, [])
  assert.equal(policy.heartbeatMs, 2_000)
  assert.equal(policy.leaseMs, 60_000)
  assert.equal(policy.maxDurationMs, 7_200_000)
  assert.equal(policy.retries, DEFAULT_POLICY.retries, 'what is not said stays')
})

test('all errors are reported at once, and no option is applied', () => {
  const { policy, mistakes } = makePolicy({
    lease: 'soon',
    maxCrashes: 0,
    onCrash: 'explode',
    autoClean: 'yes',
    hartbeat: '1s',
    retries: 2,
  })

  assert.equal(mistakes.length, 5)
  const told = mistakes.join('\n')
  assert.match(told, /policy\.lease must be a duration like 30s, 15m or 24h, not "soon"/)
  assert.match(told, /policy\.maxCrashes must be a whole number from 1, not 0/)
  assert.match(told, /policy\.onCrash must be one of resume, fail, hold, not "explode"/)
  assert.match(told, /policy\.autoClean must be true or false/)
  assert.match(told, /policy has no hartbeat; did you mean heartbeat\?/)
  assert.deepEqual(policy, DEFAULT_POLICY)
})

test('a name like no other gets no hint', () => {
  assert.deepEqual(makePolicy({ banana: 1 }).mistakes, ['policy has no banana'])
  assert.deepEqual(makePolicy({ constructor: 1 }).mistakes.length, 1)
})

test('a lease must cover three heartbeats, also when only one of the two is given', () => {
  assert.match(makePolicy({ heartbeat: '1s', lease: '2s' }).mistakes[0]!, /three beats/)
  assert.match(makePolicy({ heartbeat: '10s' }).mistakes[0]!, /three beats/)
  assert.deepEqual(makePolicy({ heartbeat: '1s', lease: '3s' }).mistakes, [])
})

test('options add to a base of their own', () => {
  const base = { ...DEFAULT_POLICY, retries: 9 }

  assert.equal(makePolicy({ lease: '30s' }, base).policy.retries, 9)
  assert.equal(makePolicy({ retries: 1 }, base).policy.retries, 1)
})

test('always: whatever is given, it is a sound policy or a list of mistakes', () => {
  const options = fc.oneof(
    fc.anything(),
    fc.dictionary(fc.constantFrom('lease', 'heartbeat', 'retries', 'onCrash'), fc.anything()),
  )
  fc.assert(
    fc.property(options, (options) => {
      const { policy, mistakes } = makePolicy(options)
      if (mistakes.length > 0) assert.deepEqual(policy, DEFAULT_POLICY)
      assert.ok(policy.leaseMs >= 3 * policy.heartbeatMs)
      for (const value of Object.values(policy)) {
        if (typeof value === 'number') assert.ok(Number.isInteger(value) && value >= 0)
      }
    }),
    { numRuns: 1_000 },
  )
})

test('a group has its own limits over those of its source', () => {
  const { policy, mistakes } = makePolicy({
    maxSilence: '2h',
    groups: { CA: { maxSilence: '30m', onStalled: 'fail' } },
  })

  assert.deepEqual(mistakes, [])
  assert.equal(policyForGroup(policy, 'CA').maxSilenceMs, 30 * 60_000)
  assert.equal(policyForGroup(policy, 'CA').onStalled, 'fail')
  assert.equal(policyForGroup(policy, 'CA').retries, DEFAULT_POLICY.retries)
  assert.equal(policyForGroup(policy, 'TX').maxSilenceMs, 2 * 3_600_000)
  assert.equal(policyForGroup(policy, null).maxSilenceMs, 2 * 3_600_000)
  assert.equal(policyForGroup(policy, 'constructor').maxSilenceMs, 2 * 3_600_000)
})

test('a later group override is merged over the earlier one', () => {
  const base = makePolicy({ groups: { CA: { retries: 7, maxCrashes: 5 } } }).policy
  const { policy } = makePolicy({ groups: { CA: { retries: 1 }, TX: { retries: 2 } } }, base)

  assert.deepEqual(policy.groups, { CA: { retries: 1, maxCrashes: 5 }, TX: { retries: 2 } })
})

test('errors in a group include its name, and unsupported settings the reason', () => {
  const { mistakes } = makePolicy({ groups: { CA: { maxSilnce: '1h', lease: '5s' }, TX: 3 } })

  assert.equal(mistakes.length, 3)
  assert.match(mistakes[0]!, /policy\.groups\["CA"\] has no maxSilnce; did you mean maxSilence/)
  assert.match(mistakes[1]!, /has no lease of its own: that belongs to the whole source/)
  assert.match(mistakes[2]!, /policy\.groups\["TX"\] must be an object/)
  assert.match(makePolicy({ groups: 3 }).mistakes[0]!, /must be an object, by group/)
})
