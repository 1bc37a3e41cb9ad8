import type { ClaimedTarget } from '../model/claim.ts'
import { messageOf, PageRejectedError, UsageError } from '../model/errors.ts'
import type { NewItem } from '../model/item.ts'
import { applySchema, type StandardSchema } from '../model/standard-schema.ts'
import type { Cursor } from '../model/target.ts'
import type { CrawlDefinition } from './crawl.ts'
import type { PageContext } from './crawl-options.ts'
import type { PageReport } from './page.ts'

type ContextParts = {
  readonly crawl: CrawlDefinition
  readonly claimed: ClaimedTarget
  readonly abort: AbortSignal
  readonly resources: unknown
  readonly log: (message: string) => void
}

/** Makes what `page` gets. Stored values that no longer fit the crawl's schemas fail the target. */
export async function makePageContext(
  { crawl, claimed, abort, resources, log }: ContextParts,
  position: Cursor,
): Promise<PageContext<unknown, unknown, unknown>> {
  const { run, target, key, group, url, errors } = claimed
  const { initialCursor, schema } = crawl
  const page = position.page + 1
  const address = position.next ?? url
  const data = await fitStored(schema.target, claimed.data ?? undefined, 'target', page)
  const cursor =
    position.cursor === null
      ? initialCursor
      : await fitStored(schema.cursor, position.cursor, 'cursor', page)
  return {
    run,
    target: { id: target, key, group, url, data },
    get url(): string {
      if (address !== null) return address
      throw new UsageError(
        `Target ${key} has no address: give it a url in targets(), or return next. A crawl without addresses keeps its place in cursor.`,
      )
    },
    page,
    cursor,
    lastItemId: position.lastItemId,
    attempt: position.seq > claimed.seq ? 1 : errors + 1,
    resources,
    signal: abort,
    log: (message, fields) =>
      log(fields === undefined ? message : `${message} ${toJsonText(fields)}`),
  }
}

/** Returns a stored value as the schema converts it. @throws {PageRejectedError} It does not fit. */
export async function fitStored(
  schema: StandardSchema | undefined,
  value: unknown,
  name: 'cursor' | 'target',
  page: number,
): Promise<unknown> {
  if (!schema) return value
  const applied = await applySchema(schema, value)
  if ('value' in applied) return applied.value
  const problems = [{ path: name, message: applied.mistake, hint: null }]
  throw new PageRejectedError(
    `What is stored does not fit schema.${name}: ${applied.mistake}. Accept it in the schema, or start the target over with \`unstuck rewind TARGET --to 0\`.`,
    { page, problems },
  )
}

/** Resolves relative addresses of a page against its own. */
export function resolveAddresses(report: PageReport, base: string | null): PageReport {
  if (base === null || !URL.canParse(base)) return report
  const resolve = (address: string | URL): string =>
    URL.canParse(String(address))
      ? String(address)
      : (URL.parse(String(address), base)?.href ?? String(address))
  return {
    ...report,
    ...(typeof report.next === 'string' && { next: resolve(report.next) }),
    ...(report.items && {
      items: report.items.map((item) =>
        typeof item === 'object' && item !== null && 'url' in item && typeof item.url === 'string'
          ? { ...item, url: resolve(item.url) }
          : item,
      ),
    }),
  }
}

/**
 * Checks and converts the data of each item. One that does not fit throws an ordinary error, so that the page is retried:
 * it may be a block page.
 */
export async function applyItemSchema(
  schema: StandardSchema | undefined,
  items: readonly NewItem[],
  page: number,
): Promise<readonly NewItem[]> {
  if (!schema) return items
  return Promise.all(
    items.map(async (item, n) => {
      const applied = await applySchema(schema, item?.data)
      if ('value' in applied) return { ...item, data: applied.value }
      throw new Error(`Item ${n + 1} of page ${page} does not fit schema.item: ${applied.mistake}`)
    }),
  )
}

function toJsonText(value: unknown): string {
  try {
    return JSON.stringify(value) ?? String(value)
  } catch (error) {
    return `(${messageOf(error)})`
  }
}
