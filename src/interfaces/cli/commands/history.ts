import { historyView, readHistory, type History } from '../../../presenters/history.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { formatAgo, plural } from '../../../presenters/format.ts'
import { describeSubject, printAuditEntry } from '../history-text.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck history --since 24h',
    'unstuck history --source directory --limit 50',
    "unstuck history --json | jq '.items[] | {at, actor, action, before, after}'",
  ],
  options: {
    since: option.duration('AGE', 'only what was done since then', undefined),
    source: option.text('SOURCE', 'only runs of this source'),
    limit: option.count('N', 'how many entries of the trail', 20, { max: 1_000 }),
    after: option.count('ID', 'go on after this entry: `next` of the last answer', undefined, {
      max: Number.MAX_SAFE_INTEGER,
    }),
  },
  watch: true,

  async run({ options, database }) {
    const store = await database.openIfExists()
    const now = store ? await store.now() : Date.now()
    const { source, limit } = options
    const filter = {
      ...(options.since !== undefined && { since: now - options.since }),
      ...(source !== undefined && { source }),
    }
    const page = { after: options.after, limit }
    const found = store ? await readHistory(store, filter, page) : EMPTY_HISTORY
    return {
      data: historyView(found),
      print: (writer) => print(writer, found, now),
    }
  },
})

const EMPTY_HISTORY: History = { counts: [], items: [], next: null }

function print(writer: TextWriter, { counts, items, next }: History, now: number): void {
  if (counts.length === 0)
    return writer.paragraph('Nothing was done: no recovery, no cleaning, no word of a person.')
  writer.table(
    [
      { header: 'SOURCE', flex: true },
      { header: 'ACTION' },
      { header: 'TIMES', align: 'right' },
      { header: 'LAST', align: 'right' },
    ],
    counts.map(({ source, action, count, lastAt }) => [
      source,
      action,
      String(count),
      formatAgo(lastAt, now),
    ]),
  )
  writer.heading('Newest first')
  if (items.length === 0) writer.paragraph('That was all: nothing comes after it.')
  for (const entry of items)
    printAuditEntry(writer, entry, now, `${describeSubject(entry)} of ${entry.source}`)
  if (next !== null) {
    const shown = plural(items.length, 'entry', 'entries')
    writer.paragraph({
      text: `${shown} shown. There is more: add \`--after ${next}\`, or a higher \`--limit\`.`,
      style: 'dim',
    })
  }
}
