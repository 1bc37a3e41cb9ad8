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
import { formatFacts } from '../../../features/journal/text.ts'
import type { logPage } from '../../../presenters/schema/overview.ts'
import { COMMAND_STORE } from '../../../features/commands/store/store.ts'

export type RunLog = InferOutput<typeof logPage>

/** Logs are read only from the data folder of this machine. */
type LogContext = { readonly store: Store; readonly dataFolder: string }

/** The clocks of database and worker may differ. */
const CLOCK_SLACK_MS = 60_000

/**
 * Returns a part of a run's log, after a position or its newest lines: the output of a wrapped command, or the journal
 * entries about it on this machine. `because` explains an empty log.
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

/** Returns the output of the run's command, if it is on this machine. Links below the data folder are not followed. */
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

/** Returns the folder if it exists and no link leads elsewhere. */
async function realFolder(base: string, ...parts: string[]): Promise<string | null> {
  const [root, folder] = await Promise.all(
    [base, join(base, ...parts)].map((path) => realpath(path).catch(() => null)),
  )
  return root && folder && folder === join(root, ...parts) ? folder : null
}

async function explainMissingLog({ store }: LogContext, run: Run): Promise<string> {
  const [newest] = await (await store.extend(COMMAND_STORE)).executions(run.id, 1)
  const command = unstuckCommand('logs', [shortId(run.id)])
  if (newest && newest.host !== hostname()) {
    return `It was kept on ${newest.host}: call \`${command}\` there.`
  }
  if (newest)
    return `It is not in the folder of this server: call \`${command}\` where it was started.`
  if (run.startedAt === null) return 'It has not started yet.'
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
