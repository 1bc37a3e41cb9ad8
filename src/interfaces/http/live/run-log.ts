import { realpath } from 'node:fs/promises'
import { hostname } from 'node:os'
import { join } from 'node:path'
import type { InferOutput } from 'valibot'
import { UsageError } from '../../../core/model/errors.ts'
import { shortId } from '../../../core/model/id.ts'
import type { Run } from '../../../core/model/run.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import type { JournalEntry } from '../../../features/journal/reader.ts'
import { searchJournals } from '../../../features/journal/search.ts'
import { redact } from '../../../core/model/redact.ts'
import { safeText } from '../../../core/events/safe-text.ts'
import { runFolder } from '../../../lib/files/data-folder.ts'
import type { LogLine } from '../../../features/commands/log-file.ts'
import { readLogPage } from '../../../features/commands/log-page.ts'
import type { Store } from '../../../core/store/store.ts'
import { formatFacts } from '../../cli/journal-text.ts'
import type { logPage } from '../../../presenters/schema/overview.ts'

export type RunLog = InferOutput<typeof logPage>

/** Where to look, and on whose behalf: the data folder of this machine, and no other place. */
type LogContext = { readonly store: Store; readonly dataFolder: string }

/** Clocks of a database and of a worker differ a little. */
const CLOCK_SLACK_MS = 60_000

/**
 * A part of what a run said, from after a place in it or else its newest lines: the kept output of a wrapped command, or
 * what the journals of this machine say about it. Says why when there is none.
 */
export async function readRunLog(
  context: LogContext,
  run: Run,
  after: string | null,
  limit: number,
): Promise<RunLog> {
  const output = await outputOf(context, run, after, limit)
  if (output) return output
  const folder = await realFolder(context.dataFolder, 'journal')
  const since = new Date(run.createdAt - CLOCK_SLACK_MS)
  const wanted = { run: run.id, after, since, limit }
  const found = folder === null ? null : await searchJournals(folder, wanted)
  const lines = found?.entries.map(eventLine) ?? []
  const isEmpty = lines.length === 0 && after === null
  return {
    lines,
    next: found?.next ?? null,
    anew: after === null,
    because: isEmpty ? await explainMissingLog(context, run) : null,
  }
}

/** What its command printed, if that was kept here. A link anywhere below the data folder is not followed. */
async function outputOf({ dataFolder }: LogContext, run: Run, after: string | null, limit: number) {
  if (!(await realFolder(dataFolder, 'runs', run.id))) return null
  try {
    const { logPath } = runFolder(dataFolder, run.id)
    const { lines, next, anew } = await readLogPage(logPath, after, limit)
    return next === '' ? null : { lines: lines.map(outputLine), next, anew, because: null }
  } catch (error) {
    if (error instanceof UsageError) return null
    throw error
  }
}

/** The folder, if it is there and really lies where it seems to. */
async function realFolder(base: string, ...parts: string[]): Promise<string | null> {
  const [root, folder] = await Promise.all(
    [base, join(base, ...parts)].map((path) => realpath(path).catch(() => null)),
  )
  return root && folder && folder === join(root, ...parts) ? folder : null
}

async function explainMissingLog({ store }: LogContext, run: Run): Promise<string> {
  const [newest] = await store.executions(run.id, 1)
  const command = unstuckCommand('logs', [shortId(run.id)])
  if (newest && newest.host !== hostname()) {
    return `It was kept on ${newest.host}: call \`${command}\` there.`
  }
  if (newest)
    return `It is not in the folder of this server: call \`${command}\` where it was started.`
  if (run.startedAt === null) return 'Nobody has begun with it yet.'
  return run.kind === 'crawl'
    ? 'No journal on this machine says anything about it: a worker keeps its journal where it runs, see `unstuck journal read --help`.'
    : 'It has no log: only what `unstuck run SOURCE -- CMD` starts has one.'
}

function outputLine({ at, stream, text }: LogLine): RunLog['lines'][number] {
  return { at, stream: stream === 'run' ? 'event' : stream, text: safeText(redact(text)) }
}

function eventLine(entry: JournalEntry & { readonly time: string }): RunLog['lines'][number] {
  const { run: _, target: __, ...facts } = entry
  const text = `${String(entry.type)} ${formatFacts(facts)}`.trim()
  return { at: entry.time, stream: 'event', text: safeText(redact(text)).slice(0, TEXT_MAX) }
}

const TEXT_MAX = 4_000
