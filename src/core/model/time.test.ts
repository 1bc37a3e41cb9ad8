import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDuration, humanizeDuration, iso, parseDuration } from './time.ts'

test('a duration is a number with its unit', () => {
  const cases: [unknown, number][] = [
    ['250ms', 250],
    ['30s', 30_000],
    ['15m', 900_000],
    ['24h', 86_400_000],
    ['7d', 604_800_000],
    ['1.5h', 5_400_000],
    ['0s', 0],
    [' 30s ', 30_000],
    ['1500.4ms', 1_500],
  ]
  for (const [written, ms] of cases) assert.equal(parseDuration(written), ms, String(written))
})

test('anything else is none', () => {
  for (const nonsense of [
    1_500,
    0,
    '',
    '30',
    's',
    '-5s',
    '5 min',
    '1e3s',
    '5S',
    -1,
    NaN,
    Infinity,
    null,
    {},
    [],
  ]) {
    assert.equal(parseDuration(nonsense), null, JSON.stringify(nonsense))
  }
})

test('ages are formatted in words', () => {
  const cases: [number, string][] = [
    [-5, '0 ms'],
    [850, '850 ms'],
    [4_200, '4 s'],
    [119_000, '119 s'],
    [720_000, '12 min'],
    [26 * 3_600_000, '26 h'],
    [3 * 86_400_000, '3 days'],
  ]
  for (const [ms, words] of cases) assert.equal(humanizeDuration(ms), words)
})

test('timestamps are formatted in UTC', () => {
  assert.equal(iso(0), '1970-01-01T00:00:00.000Z')
})

test('a duration is written in the largest exact unit, and reads back the same', () => {
  const all: [number, string][] = [
    [15 * 60_000, '15m'],
    [90_000, '90s'],
    [86_400_000, '24h'],
    [172_800_000, '48h'],
    [604_800_000, '7d'],
    [90_000_000, '25h'],
    [250, '250ms'],
    [0, '0ms'],
  ]
  for (const [ms, text] of all) {
    assert.equal(formatDuration(ms), text)
    assert.equal(parseDuration(text), ms)
  }
})
