import { hostname } from 'node:os'
import { dirname } from 'node:path'
import process from 'node:process'
import { NotFoundError, StoreUnavailableError } from '../../../core/model/errors.ts'
import { COMMAND_STORE, type Execution } from '../../../features/commands/store/store.ts'
import { isLive, type Run } from '../../../core/model/run.ts'
import { runName } from '../../../core/model/traits.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import { safeJson } from '../../../lib/text/safe-text.ts'
import { REAL_CLOCK } from '../../../core/host/clock.ts'
import { dataFolder, runFolderExists, runFolder } from '../../../lib/files/data-folder.ts'
import { LOG_STREAMS, type LogLine } from '../log-file.ts'
import { logExists, readLog, type FollowOptions } from '../log-reader.ts'
import type { Store } from '../../../core/store/store.ts'
import { findRun } from '../../../presenters/find.ts'
import { formatRunStatus } from '../../../presenters/format.ts'
import { untilInterrupted } from '../../../lib/process/until-interrupted.ts'
import { defineCommand, type Output } from '../../../contracts/command.ts'
import { argument, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

/** How many executions of a run's command are searched for a log on this machine. */
const EXECUTIONS_MAX = 20
const POLL_MS = 1_000

export const command = defineCommand({
  examples: [
    'unstuck logs 4f2a91bc -f               # until the run has ended',
    'unstuck logs portal-a --lines all      # of the newest run of a source',
    'unstuck logs 4f2a91bc --stream err --since 10m',
    'unstuck logs 4f2a91bc --json           # JSON lines',
  ],
  args: {
    run: argument.required(
      'its last 8 digits or full id, or a source: its live run, else its last',
    ),
  },
  options: {
    follow: SHARED_OPTIONS.follow,
    lines: option.countOrAll('N', 'how many of the last lines', 100, { max: 1_000_000 }),
    stream: option.choice(LOG_STREAMS, 'only stdout, stderr, or the notes of Unstuck', undefined),
    since: SHARED_OPTIONS.since,
  },

  async run({ args, options, json, database, output }) {
    const store = await database.openExisting()
    const run = await findRun(store, args.run, 'logs')
    const here = runFolder(dataFolder(await database.address(), process.cwd()), run.id).logPath
    const enough = options.follow ? untilInterrupted() : null
    const search = { store, run, here, output }
    const path = enough ? await waitForLog(search, enough) : await findLog(search)
    if (path === null) return
    const { lines, stream } = options
    const since = options.since === undefined ? undefined : new Date(Date.now() - options.since)
    const following = enough && follow(search, enough)
    for await (const batch of readLog(path, { lines, stream, since }, following)) {
      await output.write(json ? formatJson(batch) : formatText(batch, output))
    }
    if (enough && !enough.aborted) await reportEnd(search)
  },
})

type Search = {
  readonly store: Store
  readonly run: Run
  /** Where its log would be if it was made with this database from this folder. */
  readonly here: string
  readonly output: Output
}

/** The log that is here. Throws an error with the reason and the next step when there is none. */
async function findLog({ store, run, here, output }: Search): Promise<string> {
  const executions = await (await store.extend(COMMAND_STORE)).executions([run.id], EXECUTIONS_MAX)
  const [newest] = executions
  for (const path of new Set([...executions.map(({ log }) => log), here])) {
    if (!(await logExists(path, run.id))) continue
    if (newest && newest.host !== hostname()) {
      output.note(`Its newest attempt ran on ${newest.host}. This is what is here, in ${path}:`)
    }
    return path
  }
  throw logNotFound(run, newest)
}

/** The same for one that may still begin: waits for it. Null when it was interrupted before. */
async function waitForLog(search: Search, enough: AbortSignal): Promise<string | null> {
  const { store, run, output } = search
  for (let hasNoted = false; ; hasNoted = true) {
    const isWaiting =
      isLive((await store.run(run.id))?.status ?? 'cancelled') &&
      (await (await store.extend(COMMAND_STORE)).executions([run.id], 1)).length === 0 &&
      !(await logExists(search.here, run.id))
    if (!isWaiting) return findLog(search)
    if (!hasNoted) output.note(`Run ${runName(run)} has printed nothing yet. Waiting for it.`)
    await REAL_CLOCK.sleep(POLL_MS, enough)
    if (enough.aborted) return null
  }
}

function logNotFound(run: Run, newest: Execution | undefined): NotFoundError {
  const id = runName(run)
  const what = `log of run ${id} (${run.source}) here`
  if (newest === undefined) {
    const why =
      run.kind === 'crawl'
        ? 'It is a crawl: its workers keep journals, see `unstuck journal read --help`.'
        : 'No command was started for it. What `unstuck run SOURCE -- CMD` starts has one.'
    return new NotFoundError(what, why)
  }
  const { host, log } = newest
  if (host !== hostname()) {
    return new NotFoundError(
      what,
      `It was made on ${host}: call \`${unstuckCommand('logs', [id])}\` there.`,
    )
  }
  const why = runFolderExists(dirname(dirname(dirname(log))), run.id)
    ? `It was in ${log}, and was removed since, or is not a log.`
    : `Its output was in ${dirname(log)} and was removed, by \`--keep-output\` or by hand.`
  return new NotFoundError(
    what,
    `${why} How each start ended is kept: \`${unstuckCommand('show', [id])}\`.`,
  )
}

function follow({ store, run, output }: Search, signal: AbortSignal): FollowOptions {
  let askedAt = -Infinity
  return {
    signal,
    async isFinished() {
      if (REAL_CLOCK.now() - askedAt < POLL_MS) return false
      askedAt = REAL_CLOCK.now()
      try {
        return !isLive((await store.run(run.id))?.status ?? 'cancelled')
      } catch (error) {
        // The log is a file: it can be read without the database.
        if (error instanceof StoreUnavailableError) return false
        throw error
      }
    },
    onMissed: () => output.note('Some lines were rotated away before they could be shown here.'),
  }
}

async function reportEnd({ store, run, output }: Search): Promise<void> {
  const ended = await store.run(run.id)
  if (ended) output.note(`Run ${runName(run)} has ended: ${formatRunStatus(ended.status).text}.`)
}

function formatJson(batch: readonly LogLine[]): string {
  return batch.map((line) => `${safeJson(line)}\n`).join('')
}

/** `2026-11-16 10:00:00.123 out text`, whole, however narrow the terminal: a stack or an address is no use when cut. */
function formatText(batch: readonly LogLine[], output: Output): string {
  const writer = output.makeWriter(Infinity)
  for (const { at, stream, text } of batch) {
    const time = at.replace('T', ' ').replace('Z', '')
    const own = stream === 'run' ? ('strong' as const) : undefined
    writer.line(
      { text: `${time} `, style: 'dim' },
      { text: `${stream} `, style: stream === 'err' ? 'bad' : 'dim' },
      { text, style: own },
    )
  }
  return writer.toString()
}
