import {
  AMOUNT,
  count,
  FILLED_TEXT,
  FLAG,
  mistakesIn,
  optional,
  orNull,
  showValue,
  TEXT,
  type Field,
  type Fields,
} from '../../../core/model/fields.ts'
import type { NewItem } from '../../../core/model/item.ts'
import { canonicalUrl } from '../../../core/model/url.ts'
import type { RunCheckpoint } from '../../../core/worker/run-handle.ts'
import { badBody } from './http-error.ts'

const ANY: Field = { rule: 'any JSON', fits: () => true }

/** The fields of each body, as documented in docs/run-api.openapi.json. */
export const FIELDS = {
  checkpoint: {
    page: count(1),
    items: optional({ rule: 'a list of items', fits: Array.isArray }),
    next: optional(orNull({ ...FILLED_TEXT, rule: 'an address' })),
    lastItemId: optional(orNull(TEXT)),
    cursor: optional(ANY),
    skipped: optional(count(0)),
    pageTarget: optional(orNull(count(0))),
  },
  item: { url: optional(TEXT), key: optional(FILLED_TEXT), data: ANY },
  progress: { done: AMOUNT, total: AMOUNT },
  heartbeat: {},
  finish: {},
  fail: {
    error: { ...FILLED_TEXT, rule: 'text that says what went wrong' },
    retry: optional(FLAG),
  },
} satisfies Record<string, Fields>

export function readCheckpoint(body: unknown): RunCheckpoint {
  const mistakes = mistakesIn(body, FIELDS.checkpoint, 'the body')
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
  const mistakes = mistakesIn(body, fields, 'the body')
  if (mistakes.length > 0) throw badBody(mistakes)
  return body
}

function mistakesInItem(item: unknown, at: string): string[] {
  const mistakes = mistakesIn(item, FIELDS.item, 'the item', at)
  if (mistakes.length > 0) return mistakes
  const { url, key } = item as { url?: string; key?: string }
  if (key !== undefined || (url !== undefined && canonicalUrl(url) !== null)) return []
  const found = url === undefined ? 'has neither' : `has the url ${showValue(url)}`
  return [`${at} needs an http(s) url or a key of your own, but ${found}`]
}
