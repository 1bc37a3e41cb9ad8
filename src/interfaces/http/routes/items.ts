import * as v from 'valibot'
import { exportItems, hasItems, ITEM_FORMATS, type ItemFormat } from '../../../presenters/items.ts'
import { defineRoute } from '../../../contracts/route.ts'
import { source } from '../request-fields.ts'

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
      after: v.optional(
        v.pipe(v.string(), v.maxLength(4_000), v.description('The key of an item: those after it')),
      ),
    }),
    response: null,
    produces: ['application/x-ndjson', 'text/csv', 'application/json'],
    async handle({ params, query, signal, server: { store } }) {
      const { format, after } = query
      // Fails before the response begins.
      await hasItems(store, params.source)
      const parts = exportItems(store, params.source, { format, after })
      return new Response(streamOf(parts, signal), {
        headers: {
          'content-type': TYPES[format],
          'content-disposition': `attachment; filename="${fileName(params.source)}.${format}"`,
        },
      })
    },
  }),
]

/** Reads at the pace of the caller, one batch in memory. Ends when the caller disconnects. */
function streamOf(
  parts: AsyncGenerator<string, void, void>,
  signal: AbortSignal,
): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder()
  const take = async (): Promise<string | undefined> => {
    for (;;) {
      const { value, done } = await parts.next()
      if (done) return undefined
      if (value !== '') return value
    }
  }
  return new ReadableStream(
    {
      async pull(controller) {
        const text = signal.aborted ? undefined : await take()
        if (text === undefined) controller.close()
        else controller.enqueue(encoder.encode(text))
      },
      async cancel() {
        await parts.return()
      },
    },
    { highWaterMark: 0 },
  )
}

/** Of any source, what every file system takes. */
function fileName(source: string): string {
  return `items-${source.replaceAll(/[^A-Za-z0-9._-]+/g, '_').slice(0, 80)}`
}
