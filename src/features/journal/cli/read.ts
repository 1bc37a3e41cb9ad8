import { mergeJournals } from '../merge.ts'
import { nothingSkipped, type JournalEntry } from '../reader.ts'
import { selectJournals } from '../select.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { describeSkipped, isFailure, recordSentence } from '../../../presenters/event.ts'
import { defineCommand, type CommandResult, type Output } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

const BATCH_SIZE = 200

export const command = defineCommand({
  examples: [
    'unstuck journal read directory --errors          # of all workers of a source, by time',
    'unstuck journal read directory-*.jsonl --count   # of some files',
    'unstuck journal read worker.jsonl.zst --type recovery lease_lost',
  ],
  args: {
    files: argument.rest('.jsonl or .jsonl.zst files, or sources: all journals of their workers'),
  },
  options: {
    source: SHARED_OPTIONS.sources,
    type: option.texts('TYPE', 'only events of these types'),
    errors: option.flag('only what went wrong'),
    count: option.flag('how many of each type, and no events'),
  },

  async run({ args, options, json, database, output }): Promise<CommandResult | void> {
    const journals = await selectJournals(database, { names: args.files, sources: options.source })
    const skipped = nothingSkipped()
    const parts = (await journals.list()).map((path) => ({ path, start: 0 }))
    const entries = filterEntries(mergeJournals(parts, skipped), options)
    if (options.count) {
      const counts = await countTypes(entries)
      return {
        data: { counts, skipped },
        print: (writer) => {
          writer.table(
            [
              { header: 'EVENT', flex: true },
              { header: 'COUNT', align: 'right' },
            ],
            Object.entries(counts).map(([type, count]) => [type, String(count)]),
          )
          const warning = describeSkipped(skipped)
          if (warning) writer.paragraph({ text: warning, style: 'warn' })
        },
      }
    }
    if (json) return writeDocument(entries, () => skipped, output)
    await writeLines(entries, !journals.isOneFile, output)
    const warning = describeSkipped(skipped)
    if (warning) output.note(warning)
  },
})

async function* filterEntries(
  entries: AsyncIterable<JournalEntry>,
  { type, errors }: { type: readonly string[]; errors: boolean },
): AsyncGenerator<JournalEntry> {
  for await (const entry of entries) {
    if (type.length > 0 && !type.includes(String(entry.type))) continue
    if (!errors || isFailure(entry)) yield entry
  }
}

/** The most frequent first. */
async function countTypes(entries: AsyncIterable<JournalEntry>): Promise<Record<string, number>> {
  const counts = new Map<string, number>()
  for await (const { type } of entries)
    counts.set(String(type), (counts.get(String(type)) ?? 0) + 1)
  return Object.fromEntries([...counts].sort(([, a], [, b]) => b - a))
}

/** One document, yet streamed: a journal may be larger than memory. */
async function writeDocument(
  entries: AsyncIterable<JournalEntry>,
  skipped: () => unknown,
  output: Output,
): Promise<void> {
  let before = '{"items":['
  for await (const entry of entries) {
    await output.write(`${before}\n${safeJson(entry)}`)
    before = ','
  }
  const end = before === ',' ? '\n]' : `${before}]`
  await output.write(`${end},"next":null,"skipped":${safeJson(skipped())}}\n`)
}

async function writeLines(
  entries: AsyncIterable<JournalEntry>,
  withWorker: boolean,
  output: Output,
): Promise<void> {
  let writer = output.makeWriter()
  let lines = 0
  for await (const entry of entries) {
    writer.line(...recordSentence(entry, { withWorker }))
    if (++lines % BATCH_SIZE !== 0) continue
    await output.write(writer.toString())
    writer = output.makeWriter()
  }
  await output.write(writer.toString())
}
