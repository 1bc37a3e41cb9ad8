import * as v from 'valibot'
import { parseDuration } from '../../../core/model/time.ts'
import { findRun } from '../../../presenters/find.ts'
import { exportItems, ITEM_FORMATS, type ItemFormat } from '../../../presenters/item-export.ts'
import { previewItem } from '../../../presenters/item-preview.ts'
import { hasItems, latestItems, checkRunOfSource } from '../../../presenters/items.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { duration, runRef, source, text } from '../request-fields.ts'

const TYPES: Readonly<Record<ItemFormat, string>> = {
  jsonl: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  json: 'application/json; charset=utf-8',
}

/** What was saved. */
export const ITEM_ROUTES = [
  defineRoute('GET /api/items/:source', {
    summary: 'What was saved for a source, as a stream of JSON lines, CSV or JSON.',
    params: v.strictObject({ source }),
    query: v.strictObject({
      format: v.optional(v.picklist(ITEM_FORMATS), 'jsonl'),
      run: v.optional(runRef),
      group: v.optional(
        v.pipe(text, v.description('Of the target that saved it last; empty: none')),
      ),
      since: v.optional(duration),
      limit: v.optional(
        v.pipe(
          v.string(),
          v.regex(/^[1-9]\d{0,8}$/, 'is a whole number from 1'),
          v.transform(Number),
        ),
      ),
      after: v.optional(
        v.pipe(
          v.string(),
          v.maxLength(4_000),
          v.description('`next` of the page before, or the key of an item: those after it'),
        ),
      ),
    }),
    response: null,
    produces: ['application/x-ndjson', 'text/csv', 'application/json'],
    async handle({ params, query, signal, server: { store } }) {
      const { format, limit, group, after } = query
      await hasItems(store, params.source)
      const run = query.run && checkRunOfSource(await findRun(store, query.run), params.source)
      const ageMs = parseDuration(query.since)
      const since = ageMs === null ? undefined : (await store.now()) - ageMs
      const items = { source: params.source, run, group, since, after }
      const parts = exportItems(store, items, { format, limit })
      // An error in it, as of a bad `after`, still has its status.
      const first = await nextText(parts)
      return new Response(streamOf(first, parts, signal), {
        headers: {
          'content-type': TYPES[format],
          'content-disposition': `attachment; filename="${fileName(params.source)}.${format}"`,
        },
      })
    },
  }),

  defineRoute('GET /api/items/:source/latest', {
    summary:
      'The items of a source, or of one run, that are new or changed last, with the start of their data.',
    params: v.strictObject({ source }),
    query: v.strictObject({
      run: v.optional(runRef),
      limit: v.optional(
        v.pipe(
          v.string(),
          v.regex(/^([1-9]|1\d|20)$/, 'is a whole number from 1 to 20'),
          v.transform(Number),
        ),
        '5',
      ),
    }),
    response: 'itemPreviews',
    async handle({ params, query, server: { store } }) {
      const run = query.run === undefined ? null : await findRun(store, query.run)
      if (run) checkRunOfSource(run, params.source)
      const items = await latestItems(store, params.source, run, query.limit)
      return { items: items.map(previewItem) }
    },
  }),
]

type ItemTexts = ReturnType<typeof exportItems>

async function nextText(parts: ItemTexts): Promise<string | undefined> {
  for (;;) {
    const { value, done } = await parts.next()
    if (done) return undefined
    if (value !== '') return value
  }
}

/** Reads at the pace of the caller, one batch in memory. Ends when the caller disconnects. */
function streamOf(
  first: string | undefined,
  parts: ItemTexts,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  let read = first
  return new ReadableStream(
    {
      async pull(controller) {
        const text = signal.aborted ? undefined : (read ?? (await nextText(parts)))
        read = undefined
        if (text === undefined) controller.close()
        else controller.enqueue(encoder.encode(text))
      },
      async cancel() {
        await parts.return(0)
      },
    },
    { highWaterMark: 0 },
  )
}

/** Of any source, what every file system takes. */
function fileName(source: string): string {
  return `items-${source.replaceAll(/[^A-Za-z0-9._-]+/g, '_').slice(0, 80)}`
}
