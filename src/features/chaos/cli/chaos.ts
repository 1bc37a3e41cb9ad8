import { randomInt } from 'node:crypto'
import { isAbsolute, join, normalize } from 'node:path'
import process from 'node:process'
import { runChaos, type ChaosResult, type KeptData } from '../chaos.ts'
import { KILL_TARGETS } from '../process-run.ts'
import { makeProgress } from '../progress.ts'
import { replayCommand, DEFAULT_TIMEOUT_MS } from '../trial.ts'
import { printProblems, printReport, printNextSteps, type ReportContext } from '../report-text.ts'
import { SIGNALS } from '../schedule.ts'
import type { Trial } from '../trial.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { redact } from '../../../core/model/redact.ts'
import { shellWord, unstuckCommand } from '../../../core/model/shell-command.ts'
import { TIMER_MAX_MS } from '../../../core/host/clock.ts'
import { defineCommand, type CliContext } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

const options = {
  kills: option.count('N', 'how often it is killed; default: 10', undefined, { max: 10_000 }),
  for: option.duration(
    'TIME',
    'kill only for so long; without --kills as often as fits',
    undefined,
  ),
  // All of them in place of the value would make every line of the help too long.
  signal: {
    ...option.choice(
      [...SIGNALS, 'mix'],
      `what it gets: ${SIGNALS.join(', ')} (asleep beside a second copy until its lease is over, then woken up), or mix (SIGKILL, SIGTERM and SIGINT by the dice)`,
      'SIGKILL',
    ),
    value: 'SIGNAL',
  },
  whom: option.choice(
    KILL_TARGETS,
    'who gets it: every process of the command at once, only the one that was started, or one by the dice',
    'all',
  ),
  seed: option.count('N', 'the same kills again', undefined, { min: 0 }),
  within: option.duration(
    'TIME',
    'from its first saved page to the kill, at most; default: so that the kills fit into the work',
    undefined,
  ),
  output: option.text(
    'FILE',
    'a file that the command writes into the folder $UNSTUCK_CHAOS_DIR: one key per line, or JSON with a key, url or id. A key twice is doubled, a missing one lost',
  ),
  ignoreData: option.flag('compare the keys of items and not their data: for sites that change'),
  timeout: option.duration('TIME', 'from a start to its end, at most; default: 10m', undefined),
  keep: option.flag('keep databases, files and logs even when all is well'),
}
const args = {
  command: argument.rest('your command, after two dashes; it finds its database as UNSTUCK_DB'),
}
type Chaos = CliContext<typeof args, typeof options>

export const command = defineCommand({
  examples: [
    'unstuck chaos -- npx unstuck work crawl.ts --drain',
    'unstuck chaos --kills 30 --signal mix -- node nightly.ts',
    'unstuck chaos --output out.jsonl -- node nightly.ts  # which writes $UNSTUCK_CHAOS_DIR/out.jsonl',
    'unstuck chaos --db postgres://… -- node nightly.ts   # in databases made there, and dropped',
  ],
  args,
  options,
  passThrough: true,

  async run(context) {
    const { output } = context
    checkArguments(context)
    const trial = await trialOf(context)
    const end = await runChaos(trial)
    if (!end) {
      output.note('Stopped before the end, so nothing is proved. Nothing is left behind.')
      return EXIT.failed
    }
    const { report, problems, kept } = end
    const around = surroundings(trial, end)
    return {
      data: {
        ...report,
        ok: problems.length === 0,
        problems,
        killed: end.kills,
        seed: trial.seed,
        engine: end.engine,
        replay: around.replay,
        folder: kept?.folder ?? null,
        databases: kept?.databases ?? [],
      },
      print: (writer) => {
        if (report) return printReport(writer, report, around)
        printProblems(writer, problems)
        printNextSteps(writer, around)
      },
      exitCode: problems.length === 0 ? EXIT.done : EXIT.failed,
    }
  },
})

async function trialOf({ args, options, output, database }: Chaos): Promise<Trial> {
  const { address, from } = await database.locate()
  return {
    command: args.command,
    seed: options.seed ?? randomInt(1_000_000),
    kills: options.kills,
    forMs: options.for === undefined ? undefined : atMost(options.for),
    signal: options.signal,
    whom: options.whom,
    withinMs: options.within === undefined ? undefined : atMost(options.within),
    timeoutMs: atMost(options.timeout ?? DEFAULT_TIMEOUT_MS),
    output: options.output,
    ignoreData: options.ignoreData,
    keep: options.keep,
    // Only when it is named here and now: neither a config nor UNSTUCK_DB says where to try things out.
    server: from === '--db' ? serverAt(address) : null,
    progress: makeProgress(output.note),
    interrupted: onInterrupt(output.note),
  }
}

/** No timer waits longer. */
function atMost(ms: number): number {
  return Math.min(ms, TIMER_MAX_MS)
}

function checkArguments({ args: { command }, options: { output: file }, output }: Chaos): void {
  if (process.platform === 'win32') {
    throw new UsageError(
      'Windows has no signals, so processes cannot be killed there as elsewhere. Run it under WSL or in a container.',
    )
  }
  if (command.length === 0) {
    throw new UsageError(
      'There is no command to kill. Write it after two dashes: unstuck chaos -- npx unstuck work crawl.ts --drain',
    )
  }
  if (file !== undefined && (isAbsolute(file) || normalize(file).startsWith('..'))) {
    throw new UsageError(
      '--output must lie in the folder that the command finds as UNSTUCK_CHAOS_DIR, as out.jsonl does: each phase has a folder of its own.',
    )
  }
  if (command.some((word) => word === '--db' || word.startsWith('--db='))) {
    output.note(
      'Warning: the command itself has a --db. It must work on the scratch database, which it finds as UNSTUCK_DB; if nothing arrives there, nothing is killed.',
    )
  }
}

function serverAt(address: string): string {
  if (!address.startsWith('sqlite:')) return address
  throw new UsageError(
    '--db names a PostgreSQL server here, on which two databases are made and dropped. Leave it out for SQLite: the files are made in a temporary folder.',
  )
}

/** On a signal, the command and all that it started are ended, and what was created for the trial is removed. */
function onInterrupt(note: (text: string) => void): AbortSignal {
  const controller = new AbortController()
  const stop = (): void => {
    if (controller.signal.aborted) process.exit(EXIT.failed)
    controller.abort()
    note('Stopping: ending the command and all that it started. Once more to end at once.')
  }
  process.on('SIGINT', stop).on('SIGTERM', stop).on('SIGHUP', stop)
  return controller.signal
}

function surroundings(trial: Trial, { report, kept }: ChaosResult): ReportContext {
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
    const shows = phase === 'kills' ? 'its runs with kills' : 'its runs in the reference'
    return [[`npx ${unstuckCommand('runs', [], { db: redact(address) })}`, shows]]
  })
  return [[`less ${shellWord(log)}`, 'what the command said'], ...databases.reverse()]
}

function describeKept({ folder, databases }: KeptData): string {
  const left = [`the folder ${folder}`, ...databases.map((name) => `the database ${name}`)]
  return `Left for a look: ${left.join(', ')}. Delete it when you have seen enough.`
}
