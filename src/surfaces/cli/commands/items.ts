import { closest } from '../../../model/closest.ts'
import { NotFound } from '../../../model/errors.ts'
import type { SavedItem } from '../../../model/item.ts'
import { safeJson, safeText } from '../../../observe/safe-text.ts'
import type { Store } from '../../../store/store.ts'
import { itemView } from '../../view.ts'
import { defineCommand } from '../command.ts'
import { csvLine } from '../csv.ts'
import { argument, option } from '../option.ts'

/** A batch is all that is in memory, however many items there are and however slow their reader. */
const BATCH = 200
const CSV_FIELDS = ['key', 'url', 'firstSeenAt', 'lastSeenAt', 'version', 'data'] as const

export const items = defineCommand({
  name: 'items',
  summary: 'What was saved, as a stream of JSON lines, CSV or JSON.',
  examples: [
    'unstuck items directory > directory.jsonl',
    'unstuck items directory --format csv > directory.csv',
    "unstuck items directory | jq -r '.data.name'",
  ],
  args: { source: argument.required('the source they were saved for') },
  options: {
    format: option.choice(['jsonl', 'csv', 'json'], 'jsonl, csv or json (one document)', 'jsonl'),
  },

  async run({ args, options, json, database, output }) {
    const store = await database.openExisting()
    const format = FORMATS[json ? 'json' : options.format]
    const makeLine = format.line(output.isTerminal)
    let count = 0
    let text = format.head
    for await (const batch of batches(store, args.source)) {
      for (const item of batch) text += (count++ === 0 ? '' : format.between) + makeLine(item)
      await output.write(text)
      text = ''
    }
    if (count === 0) await explainNothing(store, args.source, (remark) => output.note(remark))
    await output.write(text + (count === 0 ? '' : format.last) + format.tail)
  },
})

type Format = {
  readonly head: string
  readonly line: (isTerminal: boolean) => (item: SavedItem) => string
  readonly between: string
  readonly last: string
  readonly tail: string
}

const FORMATS: Record<'jsonl' | 'csv' | 'json', Format> = {
  jsonl: {
    head: '',
    line: () => (item) => `${safeJson(itemView(item))}\n`,
    between: '',
    last: '',
    tail: '',
  },
  json: {
    head: '{"items":[',
    line: () => (item) => `\n${safeJson(itemView(item))}`,
    between: ',',
    last: '\n',
    tail: '],"next":null}\n',
  },
  csv: {
    head: csvLine(CSV_FIELDS),
    line: (isTerminal) => (item) => {
      const view = { ...itemView(item), data: safeJson(item.data) }
      const cells = CSV_FIELDS.map((field) => view[field] ?? '')
      // In a file the text stays as it was; on a terminal it must not act.
      return csvLine(isTerminal ? cells.map((cell) => safeText(String(cell))) : cells)
    },
    between: '',
    last: '',
    tail: '',
  },
}

async function* batches(store: Store, source: string): AsyncGenerator<SavedItem[]> {
  for (let after: string | null = null; ;) {
    const batch: SavedItem[] = await store.items(source, after, BATCH)
    if (batch.length > 0) yield batch
    if (batch.length < BATCH) return
    after = batch.at(-1)!.key
  }
}

/** An empty answer is right for a source that saved nothing yet, and misleading for one that never was. */
async function explainNothing(
  store: Store,
  source: string,
  note: (text: string) => void,
): Promise<void> {
  const known = await store.runs({ source, limit: 1 })
  if (known.items.length > 0) return note(`${source} has saved no items yet.`)
  const sources = (await store.runs({ limit: 200 })).items.map((run) => run.source)
  const hint = closest(source, sources)
  throw new NotFound(
    `source ${source}`,
    hint ? `Did you mean ${hint}?` : '`unstuck runs` shows the sources there are.',
  )
}
