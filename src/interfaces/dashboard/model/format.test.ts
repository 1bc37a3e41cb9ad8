import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  formatAge,
  formatEta,
  formatRate,
  formatTimes,
  jsonText,
  linkable,
  percent,
  plural,
  safe,
  splitSummary,
} from './format.ts'

const NOW = Date.parse('2026-11-16T12:00:00Z')

test('ages are formatted in the largest fitting unit', () => {
  const ages = [0, 400, 4_000, 90_000, 12 * 60_000, 26 * 3_600_000, 3 * 86_400_000].map((ms) =>
    formatAge(NOW - ms, NOW),
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

test('timestamps more than a second in the future are shown as future', () => {
  assert.equal(formatAge(NOW + 900, NOW), 'now')
  assert.equal(formatAge(NOW + 30_000, NOW), 'in 30 s')
})

test('a moment is told in local time and in UTC', () => {
  assert.match(formatTimes(NOW), /^2026-11-1\d \d\d:\d\d:00 local\n2026-11-16 12:00:00 UTC$/)
})

test('the remaining time is a range, and shown only if known', () => {
  assert.equal(formatEta(null), null)
  assert.equal(formatEta({ from: 720, to: 1_080 }), '12–18 min')
  assert.equal(formatEta({ from: 3_000, to: 9_000 }), '50 min – 3 h')
  assert.equal(formatEta({ from: 1_200, to: 1_210 }), 'about 20 min')
  assert.equal(formatEta({ from: 6_480, to: 7_200 }), 'about 2 h')
  assert.equal(formatEta({ from: 69, to: 170 }), '1–3 min')
})

test('a hundred per cent is only what is done, and nothing only what has not begun', () => {
  assert.deepEqual(
    [percent(0, 10), percent(1, 10_000), percent(9_999, 10_000), percent(10, 10), percent(0, 0)],
    [0, 1, 99, 100, 0],
  )
})

test('one is one, and many are many', () => {
  assert.equal(plural(1, 'target'), '1 target')
  assert.equal(plural(12_480, 'target'), '12,480 targets')
  assert.equal(plural(2, 'entry', 'entries'), '2 entries')
})

test('control and direction characters are shown, not obeyed', () => {
  assert.equal(safe('a\u202egpj.exe\u0000\u001b[31m'), String.raw`a\u202egpj.exe\x00\x1b[31m`)
  assert.equal(safe('Zürich 東京 👩‍👩‍👧'), 'Zürich 東京 👩‍👩‍👧')
})

test('lines stay lines', () => {
  assert.equal(safe('Error: no\r\n    at a\n    at b'), 'Error: no\n    at a\n    at b')
})

test('JSON for people escapes what the characters would do, and keeps big and odd values exact', () => {
  assert.equal(jsonText({ a: '\u202e', b: 'x' }), '{\n  "a": "\\u202e",\n  "b": "x"\n}')
})

test('only http and https addresses can be followed', () => {
  assert.equal(linkable('https://example.com/a?b=1'), 'https://example.com/a?b=1')
  for (const text of [
    'javascript:alert(1)',
    ' java\nscript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    '/relative',
    '',
    null,
  ]) {
    assert.equal(linkable(text), null, String(text))
  }
})

test('a run that reports no pages has no pace in pages', () => {
  const pace = { pagesPerMinute: 0, itemsPerMinute: 0, etaSeconds: { from: 60, to: 90 } }
  assert.equal(formatRate({ pages: 0, pace }), null)
  assert.equal(formatRate({ pages: 7, pace: null }), null)
  assert.equal(formatRate({ pages: 7, pace }), null, 'its targets go on without pages')
  assert.equal(formatRate({ pages: 7, pace: { ...pace, etaSeconds: null } }), '0')
  assert.equal(formatRate({ pages: 7, pace: { ...pace, pagesPerMinute: 1235 } }), '1,235')
  assert.equal(formatRate({ pages: 7, pace: { ...pace, pagesPerMinute: 0.4 } }), '0.4')
})

test('the first sentence of a summary is its heading', () => {
  const split = (summary: string) => Object.values(splitSummary(summary))
  assert.deepEqual(split('Something is stuck: 2 runs. 3 things need attention.'), [
    'Something is stuck.',
    '2 runs. 3 things need attention.',
  ])
  assert.deepEqual(split('Nothing is stuck. 1 thing needs attention.'), [
    'Nothing is stuck.',
    '1 thing needs attention.',
  ])
  assert.deepEqual(split('Nothing runs.'), ['Nothing runs.', ''])
})
