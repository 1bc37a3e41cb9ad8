import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { timeFormatOf, parseTimestamp, formatTimestamp, type RawTime } from './timestamps.ts'

const AT = Date.UTC(2026, 10, 16, 12, 34, 56, 789)
const SECOND = AT - 789
const MINUTE = SECOND - 56_000
const DAY = Date.UTC(2026, 10, 16)

const CASES: readonly [RawTime | null, number | null][] = [
  ['2026-11-16T12:34:56.789Z', AT],
  ['2026-11-16T12:34:56.789123Z', AT],
  ['2026-11-16T12:34:56.789+00:00', AT],
  ['2026-11-16T14:34:56.789+02:00', AT],
  ['2026-11-16 14:34:56.789 +0200', AT],
  ['2026-11-16 07:04:56.789-05:30', AT],
  ['2026-11-16 12:34:56.789+00', AT],
  ['2026-11-16 12:34:56 UTC', SECOND],
  ['2026-11-16 12:34:56', SECOND],
  ['2026-11-16t12:34:56z', SECOND],
  ['2026-11-16 12:34', MINUTE],
  ['2026-11-16', DAY + 86_399_999],
  ['2026-02-30 00:00:00', Date.UTC(2026, 2, 2)],
  [AT, AT],
  [BigInt(AT), AT],
  [BigInt(AT) * 1_000n + 999n, AT],
  [AT / 1_000, AT],
  [SECOND / 1_000, SECOND],
  [String(AT), AT],
  [` ${SECOND / 1_000} `, SECOND],
  [`${SECOND / 1_000}.789`, AT],
  [null, null],
  ['', null],
  ['now', null],
  ['0000-00-00 00:00:00', null],
  ['2026-13-01', null],
  ['2026-11-16 24:00:00', null],
  ['16.11.2026', null],
  [0, null],
  [2_461_361.25, null],
  [20261116, null],
  ['20261116', null],
  [202611161200n, null],
  [20261116123456, null],
  [1e9 - 1, null],
  [-5, null],
  [10n ** 18n, null],
  [Number.NaN, null],
  [Number.POSITIVE_INFINITY, null],
  ["2026-11-16'; DROP TABLE runs; --", null],
]

test('a timestamp is parsed in every supported format, and anything else is null', () => {
  for (const [value, at] of CASES) assert.equal(parseTimestamp(value, 'UTC'), at, String(value))
})

test('a timestamp without a zone uses the configured zone', () => {
  assert.equal(parseTimestamp('2026-07-01 12:00:00', 'Europe/Berlin'), Date.UTC(2026, 6, 1, 10))
  assert.equal(parseTimestamp('2026-12-01 12:00:00', 'Europe/Berlin'), Date.UTC(2026, 11, 1, 11))
  assert.equal(parseTimestamp('2026-12-01 12:00:00Z', 'Europe/Berlin'), Date.UTC(2026, 11, 1, 12))
  assert.equal(parseTimestamp('2026-12-01 12:00', 'Asia/Kathmandu'), Date.UTC(2026, 11, 1, 6, 15))
})

test('a date counts as the end of its day, so a row is never considered older than it is', () => {
  const day = (text: string, timeZone: string): number => parseTimestamp(text, timeZone)! + 1
  assert.equal(day('2026-12-01', 'UTC'), Date.UTC(2026, 11, 2))
  assert.equal(day('2026-12-01', 'America/New_York'), Date.UTC(2026, 11, 2, 5))
  assert.equal(day('2026-10-24', 'Europe/Berlin'), Date.UTC(2026, 9, 24, 22))
  assert.equal(day('2026-12-31', 'UTC'), Date.UTC(2027, 0, 1))
  const form = timeFormatOf('2024-01-02')!
  assert.equal(formatTimestamp(AT, form, 'UTC'), '2026-11-16')
  assert.equal(formatTimestamp(DAY - 1, form, 'Asia/Kathmandu'), '2026-11-16')
})

test('an ambiguous hour is read as the second one, and a skipped hour is moved forward', () => {
  const berlin = (text: string): number | null => parseTimestamp(text, 'Europe/Berlin')
  assert.equal(berlin('2026-10-25 02:30:00'), Date.UTC(2026, 9, 25, 1, 30))
  assert.equal(berlin('2026-10-25 01:59:59'), Date.UTC(2026, 9, 24, 23, 59, 59))
  assert.equal(berlin('2026-10-25 03:00:00'), Date.UTC(2026, 9, 25, 2))
  assert.equal(berlin('2026-03-29 02:30:00'), Date.UTC(2026, 2, 29, 1, 30))
  assert.equal(berlin('2026-03-29 03:00:00'), Date.UTC(2026, 2, 29, 1))
})

const SAMPLES: readonly { sample: RawTime; toMs: number }[] = [
  { sample: '2024-01-02T03:04:05.678Z', toMs: 1 },
  { sample: '2024-01-02T03:04:05.678901', toMs: 1 },
  { sample: '2024-01-02T03:04:05.678+00:00', toMs: 1 },
  { sample: '2024-01-02 03:04:05.67-0800', toMs: 10 },
  { sample: '2024-01-02 03:04:05+05', toMs: 1_000 },
  { sample: '2024-01-02 03:04:05 UTC', toMs: 1_000 },
  { sample: '2024-01-02 03:04:05', toMs: 1_000 },
  { sample: '2024-01-02 03:04', toMs: 60_000 },
  { sample: 1_704_164_645, toMs: 1_000 },
  { sample: 1_704_164_645n, toMs: 1_000 },
  { sample: '1704164645', toMs: 1_000 },
  { sample: 1_704_164_645.678, toMs: 1 },
  { sample: '1704164645.678901', toMs: 1 },
  { sample: 1_704_164_645_678, toMs: 1 },
  { sample: '1704164645678', toMs: 1 },
  { sample: 1_704_164_645_678_901n, toMs: 1 },
]
const timestamps = fc.integer({ min: Date.UTC(2002, 0, 1), max: Date.UTC(2190, 0, 1) })

test("a timestamp written in another value's format parses to the same instant and has that format", () => {
  for (const { sample, toMs } of SAMPLES) {
    const form = timeFormatOf(sample)!
    fc.assert(
      fc.property(timestamps, (at) => {
        const written = formatTimestamp(at, form, 'UTC')
        assert.equal(parseTimestamp(written, 'UTC'), Math.floor(at / toMs) * toMs, String(sample))
        assert.equal(typeof written === 'string', typeof sample === 'string')
        // A number such as 1700000000.5 has lost the noughts at its end, and nothing else.
        if (typeof written !== 'number') assert.deepEqual(timeFormatOf(written), form)
      }),
      { numRuns: 50 },
    )
  }
})

test('in a zone with clock changes too, but for the hour that comes twice', () => {
  const form = timeFormatOf('2024-01-02 03:04:05.678')!
  for (const timeZone of ['Europe/Berlin', 'America/St_Johns', 'Australia/Lord_Howe']) {
    fc.assert(
      fc.property(timestamps, (at) => {
        const written = formatTimestamp(at, form, timeZone)
        const read = parseTimestamp(written, timeZone)!
        const isRepeated = read !== at && formatTimestamp(read, form, timeZone) === written
        assert.ok(read === at || (isRepeated && read > at && read - at <= 3_600_000), timeZone)
      }),
      { numRuns: 300 },
    )
  }
  const summer = Date.UTC(2026, 9, 25, 0, 59, 59)
  assert.equal(formatTimestamp(summer, form, 'Europe/Berlin'), '2026-10-25 02:59:59.000')
})

test('the clocks of a zone are looked up for days and not for every row, which would take many seconds', (t) => {
  const asked = t.mock.method(Intl.DateTimeFormat.prototype, 'formatToParts').mock
  for (let n = 0; n < 10_000; n++) {
    const wall = new Date(Date.UTC(2024, 0, 1) + n * 3_600_000).toISOString().slice(0, 19)
    parseTimestamp(wall, 'Europe/Berlin')
  }
  assert.ok(asked.callCount() < 1_000, `${asked.callCount()}`)
})
