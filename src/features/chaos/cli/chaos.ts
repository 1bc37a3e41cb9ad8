import { randomInt } from 'node:crypto'
import { isAbsolute, join, normalize } from 'node:path'
import process from 'node:process'
import { runChaos, type ChaosResult, type KeptData } from '../chaos.ts'
import { untilStopped } from '../poll.ts'
import { makeProgress } from '../progress.ts'
import { DEFAULT_KILLS, replayCommand, trialOptions, type Trial } from '../trial.ts'
import { printProblems, printReport, printNextSteps, type ReportContext } from '../report-text.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { redact } from '../../../core/model/redact.ts'
import { shellWord, unstuckCommand } from '../../../core/model/shell-command.ts'
import { TIMER_MAX_MS } from '../../../core/host/clock.ts'
import { defineCommand, type CliContext } from '../../../contracts/command.ts'
import { argument } from '../../../contracts/options.ts'

const args = {
  command: argument.rest('your command, after two dashes; UNSTUCK_DB is its database'),
}
type Chaos = CliContext<typeof args, typeof trialOptions>

export const command = defineCommand({
  examples: [
    'unstuck chaos -- npx unstuck work crawl.ts --drain',
    'unstuck chaos --kills 30 --signal mix -- node nightly.ts',
    'unstuck chaos --output out.jsonl -- node nightly.ts  # which writes $UNSTUCK_CHAOS_DIR/out.jsonl',
    'unstuck chaos --db postgres://… -- node nightly.ts   # in databases that are created there and dropped',
  ],
  args,
  options: trialOptions,
  passThrough: true,

  async run(context) {
    const { output } = context
    checkArguments(context)
    const trial = await trialOf(context)
    const end = await runChaos(trial)
    if (!end) {
      output.note('Interrupted, so there is no result. Nothing is left behind.')
      return EXIT.failed
    }
    const { report, problems, kept } = end
    const reportContext = makeReportContext(trial, end)
    return {
      data: {
        ...report,
        ok: problems.length === 0,
        problems,
        killed: end.kills,
        seed: trial.seed,
        engine: end.phases[0]!.store.engine,
        replay: reportContext.replay,
        folder: kept?.folder ?? null,
        databases: kept?.databases ?? [],
      },
      print: (writer) => {
        if (report) return printReport(writer, report, reportContext)
        printProblems(writer, problems)
        printNextSteps(writer, reportContext)
      },
      exitCode: problems.length === 0 ? EXIT.done : EXIT.failed,
    }
  },
})

async function trialOf({ args, options, output, database }: Chaos): Promise<Trial> {
  const { address, from } = await database.locate()
  return {
    ...options,
    command: args.command,
    seed: options.seed ?? randomInt(1_000_000),
    killsAsked: options.kills ?? (options.duration === undefined ? DEFAULT_KILLS : null),
    duration: options.duration && Math.min(options.duration, TIMER_MAX_MS),
    within: options.within && Math.min(options.within, TIMER_MAX_MS),
    maxDuration: Math.min(options.maxDuration, TIMER_MAX_MS),
    // Only an explicit --db: the database of a config or of UNSTUCK_DB is not for trials.
    server: from === '--db' ? serverAt(address) : null,
    progress: makeProgress(output.note),
    interrupted: untilStopped(() =>
      output.note(
        'Stopping the command and all that it started. Press Ctrl-C again to exit at once.',
      ),
    ),
  }
}

function checkArguments({ args: { command }, options: { output: file }, output }: Chaos): void {
  if (process.platform === 'win32') {
    throw new UsageError('Windows has no signals. Run it under WSL or in a container.')
  }
  if (command.length === 0) {
    throw new UsageError(
      'There is no command to kill. Write it after two dashes: unstuck chaos -- npx unstuck work crawl.ts --drain',
    )
  }
  if (file !== undefined && (isAbsolute(file) || normalize(file).startsWith('..'))) {
    throw new UsageError(
      '--output must be a path inside the folder UNSTUCK_CHAOS_DIR, such as out.jsonl: each phase has its own folder.',
    )
  }
  if (command.some((word) => word === '--db' || word.startsWith('--db='))) {
    output.note(
      'Warning: the command has a --db of its own. It must use the database of UNSTUCK_DB; if no run appears there, nothing is killed.',
    )
  }
}

function serverAt(address: string): string {
  if (!address.startsWith('sqlite:')) return address
  throw new UsageError(
    '--db must name a PostgreSQL server, on which two databases are created and dropped. Omit it for SQLite files in a temporary folder.',
  )
}

function makeReportContext(trial: Trial, { report, kept }: ChaosResult): ReportContext {
  return {
    seed: trial.seed,
    replay: replayCommand(trial, report?.withinMs),
    next: kept ? nextCommands(kept) : [],
    leftBehind: kept ? describeKept(kept) : null,
  }
}

function nextCommands({ folder, phases }: KeptData): [command: string, shows: string][] {
  const last = phases.at(-1)!
  const log = join(folder, last.phase, 'command.log')
  const databases = phases.flatMap(({ phase, address }): [string, string][] => {
    if (address === null) return []
    const shows = phase === 'kills' ? 'runs with kills' : 'runs of the reference'
    return [[`npx ${unstuckCommand('runs', [], { db: redact(address) })}`, shows]]
  })
  return [[`less ${shellWord(log)}`, 'output of the command'], ...databases.reverse()]
}

function describeKept({ folder, databases }: KeptData): string {
  const left = [`the folder ${folder}`, ...databases.map((name) => `the database ${name}`)]
  return `Kept for inspection: ${left.join(', ')}. Delete it afterwards.`
}
