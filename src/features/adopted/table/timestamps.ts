import type { Cell } from './table.ts'
import type { Millis } from '../../../core/model/time.ts'

/**
 * Times in columns of text or numbers. `postgres-timestamps.ts` parses the same formats in SQL.
 */

/** A value of such a column. */
export type RawTime = string | number | bigint

/** The format of a time, so that written times look like the others in the column. */
export type TimeFormat = EpochFormat | TextFormat

type EpochFormat = {
  readonly kind: 'epoch'
  readonly unit: (typeof UNITS)[number]['unit']
  /** Digits after the point. */
  readonly digits: number
  readonly isText: boolean
}

type TextFormat = {
  readonly kind: 'text'
  readonly precision: 'day' | 'minute' | 'second'
  readonly separator: string
  /** Digits after the point. */
  readonly digits: number
  /** Such as `Z` or `+02:00`; '': the column's zone. */
  readonly zone: string
}

/**
 * The range of numbers per unit, from 2001 to 2286. Other numbers (20261116, a Julian day) are not times: read as such, they
 * would be long ago.
 */
export const UNITS = [
  { unit: 's', from: 1e9, to: 1e10, ms: 1_000 },
  { unit: 'ms', from: 1e12, to: 1e13, ms: 1 },
  { unit: 'us', from: 1e15, to: 1e16, ms: 0.001 },
] as const

const NUMBER_PATTERN = /^\s*\d{1,17}(?:\.(\d{1,20}))?\s*$/
const TEXT_PATTERN =
  /^\s*(?!0000)(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])(?:([T ])([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(\s?(?:Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?)?\s*$/i

/**
 * Parses a time; null if there is none. A date without a time counts as the end of the day, so that a row never appears
 * older than it is.
 */
export function parseTimestamp(value: RawTime | null, timeZone: string): Millis | null {
  if (value === null) return null
  if (typeof value !== 'string') return fromNumber(Number(value))
  if (NUMBER_PATTERN.test(value)) return fromNumber(Number(value))
  const match = TEXT_PATTERN.exec(value)
  if (!match) return null
  const [, year, month, day, , hour, minute, second, fraction, zone] = match
  const wall = wallTime(
    [year, month, day, hour, minute, second].map((part) => Number(part ?? 0)),
    Number((fraction ?? '').padEnd(3, '0').slice(0, 3)),
  )
  if (hour === undefined) return fromWallTime(wall + DAY_MS, timeZone) - 1
  return zone === undefined ? fromWallTime(wall, timeZone) : wall - offsetOf(zone)
}

/** Returns the format of a time; null if it is not one. */
export function timeFormatOf(value: RawTime | null): TimeFormat | null {
  if (value === null || parseTimestamp(value, 'UTC') === null) return null
  const text = String(value)
  const number = NUMBER_PATTERN.exec(text)
  if (number) {
    const { unit } = unitOf(Number(value))!
    return {
      kind: 'epoch',
      unit,
      // More digits come from floating point, not from a clock.
      digits: Math.min(number[1]?.length ?? 0, unit === 's' ? 6 : 3),
      isText: typeof value === 'string',
    }
  }
  const [, , , , separator, , minute, second, fraction, zone] = TEXT_PATTERN.exec(text)!
  return {
    kind: 'text',
    precision: minute === undefined ? 'day' : second === undefined ? 'minute' : 'second',
    separator: separator ?? '',
    digits: fraction?.length ?? 0,
    zone: zone ?? '',
  }
}

/** Formats a time. Parsing it again returns the same time, within the precision of the format. */
export function formatTimestamp(at: Millis, format: TimeFormat, timeZone: string): RawTime {
  return format.kind === 'epoch' ? writeEpoch(at, format) : writeText(at, format, timeZone)
}

function unitOf(value: number): (typeof UNITS)[number] | undefined {
  return UNITS.find(({ from, to }) => value >= from && value < to)
}

function fromNumber(value: number): Millis | null {
  const { ms } = unitOf(value) ?? {}
  // Rounded to microseconds, so that the last digit of 1700000000.123 is not lost.
  return ms === undefined ? null : Math.floor(Math.round(value * ms * 1_000) / 1_000)
}

function writeEpoch(at: Millis, { unit, digits, isText }: EpochFormat): RawTime {
  const { ms } = UNITS.find((one) => one.unit === unit)!
  const whole = BigInt(Math.floor(at / ms))
  if (digits === 0) return isText ? String(whole) : whole
  const fraction = unit === 's' ? String(modulo(at, 1_000)).padStart(3, '0') : ''
  const text = `${whole}.${fraction.padEnd(digits, '0').slice(0, digits)}`
  return isText ? text : Number(text)
}

function writeText(at: Millis, format: TextFormat, timeZone: string): string {
  const { precision, separator, digits, zone } = format
  const wall = at + (zone === '' ? offsetAt(at, timeZone) : offsetOf(zone))
  const iso = new Date(wall).toISOString()
  const day = iso.slice(0, 10)
  if (precision === 'day') return day
  if (precision === 'minute') return `${day}${separator}${iso.slice(11, 16)}${zone}`
  const fraction = digits === 0 ? '' : `.${iso.slice(20, 23).padEnd(digits, '0').slice(0, digits)}`
  return `${day}${separator}${iso.slice(11, 19)}${fraction}${zone}`
}

/** A wall clock time as if it were UTC. The 30th of February becomes the 1st or 2nd of March. */
function wallTime(parts: readonly number[], ms: number): number {
  const [year = 0, month = 1, day = 1, hour, minute, second] = parts
  // Date.UTC maps the years 0 to 99 to the last century.
  return new Date(0).setUTCFullYear(year, month - 1, day) + timeOfDayMs(hour, minute, second) + ms
}

function timeOfDayMs(hour = 0, minute = 0, second = 0): number {
  return ((hour * 60 + minute) * 60 + second) * 1_000
}

/** `Z`, `+02`, `+0200`, `+02:00`, in milliseconds. */
function offsetOf(zone: string): number {
  const match = /([+-])(\d\d):?(\d\d)?/.exec(zone)
  if (!match) return 0
  const ms = timeOfDayMs(Number(match[2]), Number(match[3] ?? 0))
  return match[1] === '-' ? -ms : ms
}

const DAY_MS = 86_400_000

/**
 * The time at which clocks of the zone show this. An ambiguous hour is the second one, and a skipped hour counts from before
 * the change, both as in PostgreSQL.
 */
function fromWallTime(wall: number, timeZone: string): Millis {
  const before = offsetAt(wall - DAY_MS, timeZone)
  const after = offsetAt(wall + DAY_MS, timeZone)
  const fits = (offset: number): boolean => offsetAt(wall - offset, timeZone) === offset
  return wall - (fits(after) ? after : before)
}

/**
 * The zone's offset from UTC. It changes at most once a day, so if it is equal at both ends of the day it is cached:
 * computing it for each time of a long list takes many seconds.
 */
function offsetAt(at: Millis, timeZone: string): number {
  if (timeZone === 'UTC') return 0
  const day = Math.floor(at / DAY_MS)
  const offset = offsetOnDay(day, timeZone)
  return offset === offsetOnDay(day + 1, timeZone) ? offset : computeOffset(at, timeZone)
}

const OFFSETS_MAX = 20_000
const offsets = new Map<string, number>()

/** The offset at the start of the day, in UTC. */
function offsetOnDay(day: number, timeZone: string): number {
  const key = `${day} ${timeZone}`
  let offset = offsets.get(key)
  if (offset === undefined) {
    offset = computeOffset(day * DAY_MS, timeZone)
    if (offsets.size === OFFSETS_MAX) offsets.clear()
    offsets.set(key, offset)
  }
  return offset
}

const formats = new Map<string, Intl.DateTimeFormat>()

function computeOffset(at: Millis, timeZone: string): number {
  let format = formats.get(timeZone)
  if (!format) {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    })
    formats.set(timeZone, format)
  }
  const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]))
  const shown = (['year', 'month', 'day', 'hour', 'minute', 'second'] as const).map(
    (type) => parts.get(type) ?? 0,
  )
  return wallTime(shown, 0) - (at - modulo(at, 1_000))
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}

/** What a column can store. `seconds`: integers too small for milliseconds. */
export type TimeStorage = 'text' | 'integer' | 'seconds' | 'number' | 'either'

const ISO = timeFormatOf('2000-01-01T00:00:00.000Z')!
const DEFAULT_FORMATS: Readonly<Record<TimeStorage, TimeFormat>> = {
  text: ISO,
  either: ISO,
  integer: timeFormatOf(1_700_000_000_000)!,
  seconds: timeFormatOf(1_700_000_000)!,
  number: { kind: 'epoch', unit: 's', digits: 3, isText: false },
}

/** The format for a new time: that of other values in the column, else of other times in the row, else the default. */
export function timeFormatFor(
  storage: TimeStorage,
  column: readonly Cell[],
  row: readonly Cell[],
): TimeFormat {
  const found = firstFormat(storage, column) ?? firstFormat(storage, row)
  return found ?? DEFAULT_FORMATS[storage]
}

function firstFormat(storage: TimeStorage, cells: readonly Cell[]): TimeFormat | undefined {
  for (const cell of cells) {
    const format = timeFormatOf(cell)
    const fitted = format && fitToStorage(format, storage)
    if (fitted) return fitted
  }
  return undefined
}

/** Adapts a format to what the column can store; null if it cannot. */
function fitToStorage(format: TimeFormat, storage: TimeStorage): TimeFormat | null {
  if (storage === 'text' || storage === 'either') return format
  if (format.kind !== 'epoch' || (storage === 'seconds' && format.unit !== 's')) return null
  return storage === 'number' ? format : { ...format, digits: 0 }
}
