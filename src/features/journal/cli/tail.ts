import {
  nothingSkipped,
  readJournal,
  statJournal,
  followJournal,
  journalTailOffset,
  type JournalEntry,
} from '../reader.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { recordSentence } from '../../../presenters/event.ts'
import { untilInterrupted } from '../../../lib/process/until-interrupted.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck journal tail worker.jsonl -f',
    'unstuck journal tail worker.jsonl --lines 100 --json  # JSON lines',
  ],
  args: { file: argument.required('a .jsonl or .jsonl.zst file') },
  options: {
    lines: option.countOrAll('N', 'how many of the last lines', 20, { max: 100_000 }),
    follow: SHARED_OPTIONS.follow,
  },

  async run({ args, options, json, output }) {
    await statJournal(args.file)
    const isCompressed = args.file.endsWith('.zst')
    if (isCompressed && options.follow) {
      throw new UsageError(
        `${args.file} is compressed: nothing is added to it any more. Omit --follow.`,
      )
    }
    const { lines } = options
    const start = isCompressed || !lines ? 0 : await journalTailOffset(args.file, lines)
    const read = (): AsyncIterable<JournalEntry> => readJournal(args.file, nothingSkipped(), start)
    const entries = options.follow
      ? followJournal(args.file, start, untilInterrupted())
      : lines === null
        ? read()
        : takeLast(read(), lines)
    for await (const entry of entries) {
      if (json) {
        await output.write(`${safeJson(entry)}\n`)
        continue
      }
      const writer = output.makeWriter()
      writer.line(...recordSentence(entry))
      await output.write(writer.toString())
    }
  },
})

async function* takeLast(
  entries: AsyncIterable<JournalEntry>,
  count: number,
): AsyncGenerator<JournalEntry> {
  const kept: JournalEntry[] = []
  for await (const entry of entries) {
    kept.push(entry)
    if (kept.length > count) kept.shift()
  }
  yield* kept
}
