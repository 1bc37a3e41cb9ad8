import type { RunLogReader } from '../../contracts/feature.ts'
import { safeText } from '../../lib/text/safe-text.ts'
import { redact } from '../../core/model/redact.ts'
import { realFolder } from '../../lib/files/data-folder.ts'
import type { LogPage } from '../../presenters/responses.ts'
import type { JournalEntry } from './reader.ts'
import { searchJournals } from './search.ts'
import { describeRecord, isFailure, recordFacts } from '../../presenters/event.ts'

/** The clocks of database and worker may differ. */
const CLOCK_SLACK_MS = 60_000
const TEXT_MAX = 4_000

/** The entries about a run in the journals of this machine. */
export const JOURNAL_LOG: RunLogReader = {
  async read({ dataFolder }, run, after, limit) {
    const folder = await realFolder(dataFolder, 'journal')
    if (folder === null) return null
    const since = new Date(run.createdAt - CLOCK_SLACK_MS)
    const { entries, next } = await searchJournals(folder, { run: run.id, after, since, limit })
    return { lines: entries.map(toLine), next, anew: after === null }
  },

  async explainMissing(_, { startedAt, kind }) {
    if (startedAt === null) return 'It has not started yet.'
    return kind === 'crawl'
      ? 'No journal on this machine mentions it: a worker keeps its journal where it runs, see `unstuck journal read --help`.'
      : 'It has no log: only commands of `unstuck run SOURCE -- CMD` have one.'
  },
}

function toLine(entry: JournalEntry & { readonly time: string }): LogPage['lines'][number] {
  const { run: _, target: __, ...facts } = entry
  return {
    at: entry.time,
    stream: 'event',
    ...(isFailure(entry) && { failure: true as const }),
    text: harmless(describeRecord(entry)),
    raw: harmless(recordFacts(facts)),
  }
}

function harmless(text: string): string {
  return safeText(redact(text)).slice(0, TEXT_MAX)
}
