import { hash } from 'node:crypto'
import { inspect } from 'node:util'
import type { Checkpoint } from '../model/checkpoint.ts'
import type { Claimed } from '../model/claim.ts'
import { messageOf, PageRejected } from '../model/errors.ts'
import { makeItem, type Item, type NewItem } from '../model/item.ts'
import type { Cursor } from '../model/target.ts'

/** Above this a page is a mistake: it would hold the database's lock for everyone. */
const PAGE_BYTES_MAX = 64 * 1024 * 1024

/** What a page says, in the words of the contract; all but `next` may be left out. */
export type PageReport = {
  page: number
  items?: readonly NewItem[]
  next?: string | null
  pageTarget?: number
  skipped?: number
  lastItemId?: string
  cursor?: unknown
  done: boolean
}

/** Checks what a page handler returned; the mistakes are told together. */
export function readPage(result: unknown, page: number): PageReport {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) {
    throw new PageRejected(
      `page() returned ${show(result)} for page ${page}. It must return { items, next }, with next: null after the last page.`,
    )
  }
  const {
    next,
    items = [],
    pageTarget,
    skipped = 0,
    lastItemId,
    cursor,
    inTransaction,
  } = result as Record<string, unknown>
  const mistakes: string[] = []
  if (next !== null && (typeof next !== 'string' || next === '')) {
    mistakes.push(`next must be an address, or null after the last page, not ${show(next)}`)
  }
  if (!Array.isArray(items)) mistakes.push(`items must be an array, not ${show(items)}`)
  if (pageTarget !== undefined && !isCount(pageTarget))
    mistakes.push(`pageTarget must be a whole number`)
  if (!isCount(skipped)) mistakes.push(`skipped must be a whole number`)
  if (lastItemId !== undefined && typeof lastItemId !== 'string')
    mistakes.push(`lastItemId must be a text`)
  if (inTransaction !== undefined && typeof inTransaction !== 'function')
    mistakes.push(`inTransaction must be a function, not ${show(inTransaction)}`)
  if (mistakes.length > 0) {
    throw new PageRejected(
      `page() returned something unusable for page ${page}: ${mistakes.join('; ')}.`,
    )
  }
  return {
    page,
    items: items as NewItem[],
    next: next as string | null,
    ...(pageTarget !== undefined && { pageTarget: pageTarget as number }),
    ...(lastItemId !== undefined && { lastItemId: lastItemId as string }),
    ...(cursor !== undefined && { cursor }),
    skipped: skipped as number,
    done: next === null,
  }
}

/** A page ready to be committed behind the given cursor. */
export function makeCheckpoint(claimed: Claimed, at: Cursor, report: PageReport): Checkpoint {
  const items = (report.items ?? []).map((item, n) => readItem(item, n, report.page))
  const { page, next = null, pageTarget, lastItemId, cursor, skipped = 0, done } = report
  const head = asJson(`The cursor of page ${page}`, () =>
    JSON.stringify([page, next, pageTarget, lastItemId, cursor, skipped, done]),
  )
  const content = [head, ...items.map(({ key, url, data }) => `${key}\n${url}\n${data}`)].join('\n')
  if (Buffer.byteLength(content) > PAGE_BYTES_MAX) {
    throw new PageRejected(
      `Page ${page} holds ${Math.round(content.length / 1_048_576)} MB; at most ${PAGE_BYTES_MAX / 1_048_576} MB are kept. ` +
        'Split it into more pages, or keep large files outside and save their paths.',
    )
  }
  const { target, epoch, claimId, worker, source } = claimed
  return {
    claim: { target, epoch, claimId, worker },
    source,
    expectedSeq: at.seq,
    page,
    next,
    pageTarget,
    lastItemId,
    cursor,
    skipped,
    items,
    done,
    hash: hash('sha256', content, 'base64url'),
  }
}

function readItem(item: NewItem, n: number, page: number): Item {
  const made =
    typeof item === 'object' && item !== null
      ? asJson(`Item ${n + 1} of page ${page}`, () => makeItem(item))
      : null
  if (made) return made
  throw new PageRejected(
    `Item ${n + 1} of page ${page} has neither an http(s) url nor a key: ${show(item)}. ` +
      'Give it { url, data } or { key, data }.',
  )
}

/** A BigInt, a circle: the same page would be refused again, so it is not tried again. */
function asJson<T>(what: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    throw new PageRejected(
      `${what} cannot be saved as JSON: ${messageOf(error)}. Turn it into text, numbers, lists and plain objects.`,
      { cause: error },
    )
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0
}

/** A short look at what may be anything. */
const SHOWN = {
  breakLength: Infinity,
  depth: 2,
  maxArrayLength: 20,
  maxStringLength: 200,
  customInspect: false,
  getters: false,
}

function show(value: unknown): string {
  try {
    const text = inspect(value, SHOWN)
    return text.length > 120 ? `${text.slice(0, 120)}…` : text
  } catch {
    return 'something that cannot be read'
  }
}
