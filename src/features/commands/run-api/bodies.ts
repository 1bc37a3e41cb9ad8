import {
  NON_NEGATIVE_INTEGER,
  integerBetween,
  NON_EMPTY_STRING,
  BOOLEAN,
  mistakesIn,
  optional,
  nullable,
  describeValue,
  STRING,
  type Field,
  type Fields,
} from '../../../core/model/fields.ts'
import type { NewItem } from '../../../core/model/item.ts'
import { canonicalUrl } from '../../../core/model/url.ts'
import type { RunCheckpoint } from '../../../core/worker/run-handle.ts'
import { invalidBody } from './http-error.ts'

const ANY: Field = { rule: 'any JSON', isValid: () => true }

/** The fields of each body, as documented in docs/run-api.openapi.json. */
export const BODY_FIELDS = {
  checkpoint: {
    page: integerBetween(1),
    items: optional({ rule: 'a list of items', isValid: Array.isArray }),
    next: optional(nullable({ ...NON_EMPTY_STRING, rule: 'an address' })),
    lastItemId: optional(nullable(STRING)),
    cursor: optional(ANY),
    skipped: optional(integerBetween(0)),
    pageTarget: optional(nullable(integerBetween(0))),
  },
  item: { url: optional(STRING), key: optional(NON_EMPTY_STRING), data: ANY },
  progress: { done: NON_NEGATIVE_INTEGER, total: NON_NEGATIVE_INTEGER },
  heartbeat: {},
  finish: {},
  fail: {
    error: { ...NON_EMPTY_STRING, rule: 'text that says what went wrong' },
    retry: optional(BOOLEAN),
  },
} satisfies Record<string, Fields>

export function readCheckpoint(body: unknown): RunCheckpoint {
  const mistakes = mistakesIn(body, BODY_FIELDS.checkpoint, 'the body')
  const { items = [], pageTarget, lastItemId, ...rest } = (body ?? {}) as Record<string, unknown>
  if (Array.isArray(items)) {
    for (const [n, item] of items.entries()) mistakes.push(...mistakesInItem(item, `items[${n}]`))
  }
  if (mistakes.length > 0) throw invalidBody(mistakes)
  return {
    ...(rest as Pick<RunCheckpoint, 'page' | 'next' | 'cursor' | 'skipped'>),
    items: items as NewItem[],
    // What `GET /` answers may be sent back as it is: null is what was never said.
    ...(typeof pageTarget === 'number' && { pageTarget }),
    ...(typeof lastItemId === 'string' && { lastItemId }),
  }
}

export function readProgress(body: unknown): { done: number; total: number } {
  return validate(body, BODY_FIELDS.progress) as { done: number; total: number }
}

export function readFail(body: unknown): { error: string; retry: boolean } {
  const { error, retry = false } = validate(body, BODY_FIELDS.fail) as {
    error: string
    retry?: boolean
  }
  return { error, retry }
}

/** A body that says nothing, or none at all. */
export function readEmpty(body: unknown): void {
  if (body !== undefined) validate(body, {})
}

function validate(body: unknown, fields: Fields): unknown {
  const mistakes = mistakesIn(body, fields, 'the body')
  if (mistakes.length > 0) throw invalidBody(mistakes)
  return body
}

function mistakesInItem(item: unknown, at: string): string[] {
  const mistakes = mistakesIn(item, BODY_FIELDS.item, 'the item', at)
  if (mistakes.length > 0) return mistakes
  const { url, key } = item as { url?: string; key?: string }
  if (key !== undefined || (url !== undefined && canonicalUrl(url) !== null)) return []
  const found = url === undefined ? 'has neither' : `has the url ${describeValue(url)}`
  return [`${at} needs an http(s) url or a key of your own, but ${found}`]
}
