import { closest } from '../../model/closest.ts'
import { INTEGER_MAX } from '../../model/limits.ts'
import { canonicalUrl } from '../../model/url.ts'
import type { NewItem } from '../../model/item.ts'
import type { RunCheckpoint } from '../../runtime/run-handle.ts'
import { badBody } from './refusal.ts'

type Field = {
  /** Completes “… must be”. */
  readonly rule: string
  readonly fits: (value: unknown) => boolean
  readonly isOptional?: true
}
type Fields = Readonly<Record<string, Field>>

const isText = (value: unknown): boolean => typeof value === 'string'
const isFilledText = (value: unknown): boolean => typeof value === 'string' && value !== ''
const isCount = (value: unknown, from: number): boolean =>
  Number.isInteger(value) && (value as number) >= from && (value as number) <= INTEGER_MAX
const isAmount = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0
const orNull =
  (fits: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === null || fits(value)

const AMOUNT: Field = {
  rule: `a whole number from 0 to ${Number.MAX_SAFE_INTEGER}`,
  fits: isAmount,
}

/** The fields of each body, as documented in docs/run-api.openapi.json. */
export const FIELDS = {
  checkpoint: {
    page: { rule: `a whole number from 1 to ${INTEGER_MAX}`, fits: (value) => isCount(value, 1) },
    items: { rule: 'a list of items', fits: Array.isArray, isOptional: true },
    next: { rule: 'an address, or null', fits: orNull(isFilledText), isOptional: true },
    lastItemId: { rule: 'text, or null', fits: orNull(isText), isOptional: true },
    cursor: { rule: 'any JSON', fits: () => true, isOptional: true },
    skipped: {
      rule: `a whole number from 0 to ${INTEGER_MAX}`,
      fits: (value) => isCount(value, 0),
      isOptional: true,
    },
    pageTarget: {
      rule: `a whole number from 0 to ${INTEGER_MAX}, or null`,
      fits: orNull((value) => isCount(value, 0)),
      isOptional: true,
    },
  },
  item: {
    url: { rule: 'text', fits: isText, isOptional: true },
    key: { rule: 'text that is not empty', fits: isFilledText, isOptional: true },
    data: { rule: 'any JSON', fits: () => true },
  },
  progress: { done: AMOUNT, total: AMOUNT },
  heartbeat: {},
  finish: {},
  fail: {
    error: { rule: 'text that says what went wrong', fits: isFilledText },
    retry: { rule: 'true or false', fits: (value) => typeof value === 'boolean', isOptional: true },
  },
} satisfies Record<string, Fields>

export function readCheckpoint(body: unknown): RunCheckpoint {
  const mistakes = mistakesIn(body, FIELDS.checkpoint)
  const { items = [], pageTarget, lastItemId, ...rest } = (body ?? {}) as Record<string, unknown>
  if (Array.isArray(items)) {
    for (const [n, item] of items.entries()) mistakes.push(...mistakesInItem(item, `items[${n}]`))
  }
  if (mistakes.length > 0) throw badBody(mistakes)
  return {
    ...(rest as Pick<RunCheckpoint, 'page' | 'next' | 'cursor' | 'skipped'>),
    items: items as NewItem[],
    // What `GET /` answers may be sent back as it is: null is what was never said.
    ...(typeof pageTarget === 'number' && { pageTarget }),
    ...(typeof lastItemId === 'string' && { lastItemId }),
  }
}

export function readProgress(body: unknown): { done: number; total: number } {
  return read(body, FIELDS.progress) as { done: number; total: number }
}

export function readFail(body: unknown): { error: string; retry: boolean } {
  const { error, retry = false } = read(body, FIELDS.fail) as { error: string; retry?: boolean }
  return { error, retry }
}

/** A body that says nothing, or none at all. */
export function readNothing(body: unknown): void {
  if (body !== undefined) read(body, {})
}

function read(body: unknown, fields: Fields): unknown {
  const mistakes = mistakesIn(body, fields)
  if (mistakes.length > 0) throw badBody(mistakes)
  return body
}

function mistakesInItem(item: unknown, at: string): string[] {
  const mistakes = mistakesIn(item, FIELDS.item, at)
  if (mistakes.length > 0) return mistakes
  const { url, key } = item as { url?: string; key?: string }
  if (key !== undefined || (url !== undefined && canonicalUrl(url) !== null)) return []
  const found = url === undefined ? 'has neither' : `has the url ${show(url)}`
  return [`${at} needs an http(s) url or a key of your own, but ${found}`]
}

/** Every mistake, not only the first. `at`: where in the body, for a part of it. */
function mistakesIn(value: unknown, fields: Fields, at?: string): string[] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    const found = value === undefined ? 'is missing' : `is ${show(value)}`
    return [`${at ?? 'the body'} must be an object with ${list(fields)}, but ${found}`]
  }
  const path = (name: string): string => (at === undefined ? name : `${at}.${name}`)
  const unknown = Object.keys(value)
    .filter((name) => !Object.hasOwn(fields, name))
    .map((name) => {
      const meant = closest(name, Object.keys(fields))
      const hint = meant === null ? `there are ${list(fields)}` : `did you mean ${meant}?`
      return `there is no ${path(show(name))}; ${hint}`
    })
  const wrong = Object.entries(fields).flatMap(([name, { rule, fits, isOptional }]) => {
    if (!Object.hasOwn(value, name)) {
      return isOptional ? [] : [`${path(name)} is missing: it must be ${rule}`]
    }
    const found = (value as Record<string, unknown>)[name]
    return fits(found) ? [] : [`${path(name)} must be ${rule}, not ${show(found)}`]
  })
  return [...unknown, ...wrong]
}

function list(fields: Fields): string {
  return Object.keys(fields).join(', ') || 'nothing in it'
}

function show(value: unknown): string {
  if (Array.isArray(value)) return 'a list'
  if (typeof value === 'object' && value !== null) return 'an object'
  const text = JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 60)}…` : text
}
