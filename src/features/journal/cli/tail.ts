import { existsSync } from 'node:fs'
import { followJournals, wholeLinesEnd } from '../follow.ts'
import { mergeJournals, type JournalPart } from '../merge.ts'
import { journalTailOffset, nothingSkipped, type JournalEntry } from '../reader.ts'
import { selectJournals } from '../select.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { recordSentence } from '../../../presenters/event.ts'
import { untilInterrupted } from '../../../lib/process/until-interrupted.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck journal tail directory -f     # all workers of a source, also those that start later',
    'unstuck journal tail one.jsonl two.jsonl -f',
    'unstuck journal tail worker.jsonl --lines 100 --json  # JSON lines',
  ],
  args: {
    files: argument.rest('.jsonl or .jsonl.zst files, or sources: all journals of their workers'),
  },
  options: {
    source: SHARED_OPTIONS.sources,
    lines: option.countOrAll('N', 'how many of the last lines', 20, { max: 100_000 }),
    follow: SHARED_OPTIONS.follow,
  },

  async run({ args, options, json, database, output }) {
    const { lines, follow, source: sources } = options
    const compressed = args.files.find((file) => file.endsWith('.zst') && existsSync(file))
    if (compressed !== undefined && follow) {
      throw new UsageError(
        `${compressed} is compressed: nothing is added to it any more. Omit --follow.`,
      )
    }
    const enough = follow ? untilInterrupted() : null
    const request = { names: args.files, sources, canWait: follow }
    const journals = await selectJournals(database, request)
    const paths = await journals.list()
    if (paths.length === 0) output.note('There is no journal of it here yet. Waiting for one.')
    const parts = await Promise.all(paths.map((path) => partOf(path, lines, follow)))
    const merged = mergeJournals(parts, nothingSkipped())
    const write = async (entries: AsyncIterable<JournalEntry>): Promise<void> => {
      for await (const entry of entries) {
        if (json) {
          await output.write(`${safeJson(entry)}\n`)
          continue
        }
        const writer = output.makeWriter()
        writer.line(...recordSentence(entry, { withWorker: !journals.isOneFile }))
        await output.write(writer.toString())
      }
    }
    await write(lines === null ? merged : takeLast(merged, lines))
    if (!enough) return
    const list = async (): Promise<string[]> => (await journals.list()).filter(isPlain)
    const ends = new Map(parts.map(({ path, end = 0 }) => [path, end]))
    await write(followJournals(list, ends, enough))
  },
})

function isPlain(path: string): boolean {
  return !path.endsWith('.zst')
}

/** The last lines of a file. One that is followed ends with its last whole line. */
async function partOf(path: string, lines: number | null, follow: boolean): Promise<JournalPart> {
  if (!isPlain(path)) return { path, start: 0 }
  const start = lines ? await journalTailOffset(path, lines) : 0
  return follow ? { path, start, end: await wholeLinesEnd(path) } : { path, start }
}

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
