import { hash } from 'node:crypto'
import { inspect } from 'node:util'
import type { Checkpoint } from '../model/checkpoint.ts'
import { claimOf, type ClaimedTarget } from '../model/claim.ts'
import { messageOf, PageRejectedError, UsageError } from '../model/errors.ts'
import {
  BOOLEAN,
  integerBetween,
  FUNCTION,
  isObject,
  listProblems,
  mistakesIn,
  problemsIn,
  optional,
  nullable,
  STRING,
  type Field,
  type Fields,
} from '../model/fields.ts'
import { makeItem, type Item, type NewItem } from '../model/item.ts'
import { LIMITS } from '../model/limits.ts'
import type { Cursor } from '../model/target.ts'
import { cleanJson, cleanText, countReplaced, isClean } from '../model/text.ts'
import type { PageResult } from './crawl-options.ts'
import type { RunCheckpoint } from './run-handle.ts'

/** Larger pages are rejected: they would hold the write lock of the database for too long. */
const PAGE_BYTES_MAX = 64 * 1024 * 1024

/** A page as `page()` returned it, or as it was passed to `checkpoint()`. */
export type PageReport = {
  page: number
  items?: readonly NewItem[] | undefined
  next?: string | null | undefined
  pageTarget?: number | undefined
  skipped?: number | undefined
  lastItemId?: string | undefined
  cursor?: unknown
  done: boolean
}

/** Validates what `page()` returned. Reports all mistakes at once. */
export function validatePage(result: unknown, page: number): PageReport {
  if (!isObject(result)) {
    throw new PageRejectedError(
      `page() returned ${preview(result)} for page ${page}. It must return { items, next }, with next: null after the last page.`,
      { page },
    )
  }
  const problems = problemsIn(result, RESULT_FIELDS, 'the result')
  if (problems.length > 0) {
    throw new PageRejectedError(
      `page() returned something unusable for page ${page}: ${listProblems(problems)}`,
      { page, problems },
    )
  }
  const { inTransaction: _, next, done, ...report } = result as unknown as PageResult
  if ((next === undefined) === (done === undefined)) {
    const both = next === undefined ? 'neither next nor done' : 'both next and done'
    throw new PageRejectedError(
      `page() returned ${both} for page ${page}. A crawl by addresses returns next, null after the last page; others return done.`,
      { page },
    )
  }
  const address = next instanceof URL ? next.href : (next ?? null)
  return { ...report, next: address, page, done: done ?? address === null }
}

/** Validates the argument of `checkpoint()`. */
export function validateCheckpoint(report: unknown): Omit<PageReport, 'done'> {
  const problems = problemsIn(report, CHECKPOINT_FIELDS, 'the page')
  if (problems.length > 0)
    throw new UsageError(`checkpoint() saved nothing: ${listProblems(problems)}`, { problems })
  const { next, ...rest } = report as RunCheckpoint
  return { ...rest, next: next instanceof URL ? next.href : next }
}

const NEXT_FIELD = text('an address, or null after the last page', LIMITS.url, 1)
const NEXT_ADDRESS: Field = {
  ...NEXT_FIELD,
  isValid: (value) =>
    value === null || NEXT_FIELD.isValid(value instanceof URL ? value.href : value),
}
const COMMON_FIELDS = {
  items: optional({ rule: 'a list of items', isValid: Array.isArray }),
  pageTarget: optional(integerBetween(0)),
  skipped: optional(integerBetween(0)),
  lastItemId: optional(text('text', LIMITS.lastItemId)),
  cursor: optional({
    rule: 'any JSON',
    isValid: (value) => !/^(function|symbol)$/.test(typeof value),
  }),
} satisfies Fields
const RESULT_FIELDS: Fields = {
  next: optional(NEXT_ADDRESS),
  done: optional(BOOLEAN),
  ...COMMON_FIELDS,
  inTransaction: optional(FUNCTION),
}
const CHECKPOINT_FIELDS: Fields = {
  page: integerBetween(1),
  next: optional(NEXT_ADDRESS),
  ...COMMON_FIELDS,
  // `run.pageTarget` and `run.lastItemId` can be null.
  pageTarget: optional(nullable(integerBetween(0))),
  lastItemId: optional(nullable(COMMON_FIELDS.lastItemId)),
}
const ITEM_FIELDS: Fields = {
  url: optional({ ...STRING, isValid: (value) => STRING.isValid(value) || value instanceof URL }),
  key: optional(STRING),
  data: optional({ rule: 'any JSON', isValid: () => true }),
}

function text(rule: string, bytesMax: number, lengthMin = 0): Field {
  return {
    rule: `${rule}, of ${bytesMax} bytes at most`,
    isValid: (value) =>
      typeof value === 'string' &&
      value.length >= lengthMin &&
      Buffer.byteLength(value) <= bytesMax,
  }
}

/** Makes the checkpoint of a page that follows the given cursor. */
export function makeCheckpoint(
  claimed: ClaimedTarget,
  position: Cursor,
  report: PageReport,
): Checkpoint {
  const { page, pageTarget, skipped = 0, done } = report
  let replaced = 0
  const onReplaced = (count: number): void => {
    replaced += count
  }
  const items = (report.items ?? []).map((item, n) => readItem(item, n, page, onReplaced))
  const cursor = readCursor(report.cursor, page, onReplaced)
  const [next, lastItemId] = [report.next ?? null, report.lastItemId].map((text) => {
    if (typeof text !== 'string' || isClean(text)) return text
    onReplaced(countReplaced(text))
    return cleanText(text)
  })
  const head = JSON.stringify([page, next, pageTarget, lastItemId, cursor.json, skipped, done])
  const content = [head, ...items.map(({ key, url, data }) => `${key}\n${url}\n${data}`)].join('\n')
  if (Buffer.byteLength(content) > PAGE_BYTES_MAX) {
    throw new PageRejectedError(
      `Page ${page} holds ${Math.round(content.length / 1_048_576)} MB; at most ${PAGE_BYTES_MAX / 1_048_576} MB are kept. ` +
        'Split it into more pages, or keep large files outside and save their paths.',
      { page },
    )
  }
  return {
    claim: claimOf(claimed),
    source: claimed.source,
    expectedSeq: position.seq,
    page,
    next: next ?? null,
    pageTarget,
    lastItemId: lastItemId ?? undefined,
    cursor: cursor.value,
    skipped,
    items,
    done,
    hash: hash('sha256', content, 'base64url'),
    replaced,
  }
}

/** Returns the cursor of a target after a page was saved as checkpoint `seq`. */
export function cursorAfter(before: Cursor, saved: Checkpoint, seq: number): Cursor {
  const { page, next, pageTarget, lastItemId, cursor } = saved
  return {
    seq,
    page,
    next,
    pageTarget: pageTarget ?? before.pageTarget,
    lastItemId: lastItemId ?? before.lastItemId,
    cursor: cursor === undefined ? before.cursor : cursor,
  }
}

/** Returns the crawl's own cursor as it is stored. */
function readCursor(
  value: unknown,
  page: number,
  onReplaced: (count: number) => void,
): { value: unknown; json: string | null } {
  if (value === undefined) return { value, json: null }
  const text = toJsonOrReject(`The cursor of page ${page}`, () => JSON.stringify(value) ?? 'null')
  if (Buffer.byteLength(text) > LIMITS.cursor) {
    throw new PageRejectedError(
      `The cursor of page ${page} is larger than ${LIMITS.cursor / 1_024} KB. Save what is large as an item, and keep its key.`,
      { page },
    )
  }
  const { json, replaced } = cleanJson(text)
  if (replaced === 0) return { value, json }
  onReplaced(replaced)
  return { value: JSON.parse(json), json }
}

function readItem(
  item: NewItem,
  n: number,
  page: number,
  onReplaced: (count: number) => void,
): Item {
  const [mistake] = isObject(item) ? mistakesIn(item, ITEM_FIELDS, 'the item') : []
  const reject = (message: string): never => {
    const problems = [{ path: `items[${n}]`, message, hint: null }]
    throw new PageRejectedError(message, { page, problems })
  }
  if (mistake) return reject(`Item ${n + 1} of page ${page} cannot be saved: ${mistake}.`)
  const made = isObject(item)
    ? toJsonOrReject(`Item ${n + 1} of page ${page}`, () => makeItem(item, onReplaced))
    : null
  if (made) return made
  return reject(
    `Item ${n + 1} of page ${page} has neither an http(s) url nor a key: ${preview(item)}. ` +
      'Give it { url, data } or { key, data }.',
  )
}

/** Rejects a page with a BigInt or a circular structure. It would be rejected again, so it is not retried. */
function toJsonOrReject<T>(what: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new PageRejectedError(
      `${what} cannot be saved as JSON: ${messageOf(error)}. Turn it into text, numbers, lists and plain objects.`,
      { cause: error },
    )
  }
}

/** Prints a value of any kind in one short line. */
const PREVIEW_OPTIONS = {
  breakLength: Infinity,
  depth: 2,
  maxArrayLength: 20,
  maxStringLength: 200,
  customInspect: false,
  getters: false,
}

function preview(value: unknown): string {
  try {
    const text = inspect(value, PREVIEW_OPTIONS)
    return text.length > 120 ? `${text.slice(0, 120)}…` : text
  } catch {
    return 'something that cannot be read'
  }
}
