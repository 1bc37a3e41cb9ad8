import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ageWords, bothTimes, counted, etaWords, percent } from './format.ts'

const NOW = Date.parse('2026-11-16T12:00:00Z')

test('ages are told in the unit that people would use', () => {
  const ages = [0, 400, 4_000, 90_000, 12 * 60_000, 26 * 3_600_000, 3 * 86_400_000].map((ms) =>
    ageWords(NOW - ms, NOW),
  )
  assert.deepEqual(ages, [
    'now',
    'now',
    '4 s ago',
    '90 s ago',
    '12 min ago',
    '26 h ago',
    '3 days ago',
  ])
})

test('what a clock that is ahead calls the future is said as such, beyond a second', () => {
  assert.equal(ageWords(NOW + 900, NOW), 'now')
  assert.equal(ageWords(NOW + 30_000, NOW), 'in 30 s')
})

test('a moment is told in local time and in UTC', () => {
  assert.match(bothTimes(NOW), /^2026-11-1\d \d\d:\d\d:00 local\n2026-11-16 12:00:00 UTC$/)
})

test('what is left is a range, and only what is known', () => {
  assert.equal(etaWords(null), null)
  assert.equal(etaWords({ from: 720, to: 1_080 }), '12–18 min')
  assert.equal(etaWords({ from: 3_000, to: 9_000 }), '50 min – 3 h')
  assert.equal(etaWords({ from: 1_200, to: 1_210 }), 'about 20 min')
})

test('a hundred per cent is only what is done, and nothing only what has not begun', () => {
  assert.deepEqual(
    [percent(0, 10), percent(1, 10_000), percent(9_999, 10_000), percent(10, 10), percent(0, 0)],
    [0, 1, 99, 100, 0],
  )
})

test('one is one, and many are many', () => {
  assert.equal(counted(1, 'target'), '1 target')
  assert.equal(counted(12_480, 'target'), '12,480 targets')
  assert.equal(counted(2, 'entry', 'entries'), '2 entries')
})
