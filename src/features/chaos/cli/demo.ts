import { randomInt } from 'node:crypto'
import { availableParallelism, loadavg } from 'node:os'
import { join, relative } from 'node:path'
import process from 'node:process'
import { runDemo, type DemoResult } from '../demo/demo.ts'
import { SECTIONS_MAX } from '../demo/site.ts'
import { LEDGER } from '../ledger.ts'
import { untilStopped } from '../poll.ts'
import { canRedraw } from '../progress.ts'
import { makeLiveReporter, makePlainReporter, type Headline } from '../demo/reporter.ts'
import { printReport } from '../demo/report.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { shortId } from '../../../core/model/id.ts'
import { redact } from '../../../core/model/redact.ts'
import { shellWord, unstuckCommand } from '../../../core/model/shell-command.ts'
import { configFolder } from '../../../lib/files/config-file.ts'
import { plural } from '../../../presenters/format.ts'
import { defineCommand, type CliContext } from '../../../contracts/command.ts'
import { option, SHARED_OPTIONS } from '../../../contracts/options.ts'

const options = {
  sections: option.count('N', 'sections of the site to crawl, 5 to 11 pages each', 72, {
    max: SECTIONS_MAX,
  }),
  workers: SHARED_OPTIONS.workers(6, 64),
  kills: SHARED_OPTIONS.kills(14, 0),
  seed: SHARED_OPTIONS.seed,
}

export const command = defineCommand({
  examples: [
    'unstuck demo                           # about a minute, on a SQLite file of its own',
    'unstuck demo --kills 40 --sections 200  # longer and harder',
    'unstuck demo --db postgres://…         # beside what else is in that database',
    'unstuck demo --json                    # the figures; exit code 1 if anything is wrong',
  ],
  options,

  async run(context) {
    const seed = context.options.seed ?? randomInt(1_000_000)
    const end = await runDemo({
      ...context.options,
      targets: context.options.sections,
      seed,
      db: isDatabaseGiven() ? await context.database.address() : null,
      home: join(configFolder(process.cwd()), '.unstuck', 'demo'),
      reporter: (headline) => makeReporter(headline, context),
      openDashboard: context.openDashboard,
      // Workers finish their pages first.
      interrupted: untilStopped(),
    })
    if (!end) {
      context.output.note('Interrupted, so there is no result. No process is left behind.')
      return EXIT.failed
    }
    const { report, scenario, expected, tookMs, source, folder, engine, run } = end
    const where = typeableAddress(end.db)
    const leftBehind = isDatabaseGiven()
      ? `Left in the database: run ${shortId(run)} of source ${source} with its items, and the table ${LEDGER}.`
      : `All of it is in ${shortPath(folder)}: delete it when you are done.`
    return {
      data: {
        ...report,
        seconds: Math.round(tookMs / 1_000),
        seed,
        engine,
        source,
        run,
        db: redact(end.db),
        folder,
      },
      print: (writer) =>
        printReport(writer, report, {
          expected,
          faults: scenario,
          tookMs,
          seed,
          machine: `${plural(availableParallelism(), 'processor')} under load ${loadAverage()}`,
          leftBehind,
          next: nextCommands(end, where),
        }),
      exitCode: report.ok ? EXIT.done : EXIT.failed,
    }
  },
})

/** The demo creates its own database unless --db names one: a config and UNSTUCK_DB do not count here. */
function isDatabaseGiven(): boolean {
  return process.argv.some((arg) => arg === '--db' || arg.startsWith('--db='))
}

function makeReporter(
  headline: Headline,
  { json, output, options: { workers } }: CliContext<{}, typeof options>,
) {
  if (!json && canRedraw(process.stdout)) return makeLiveReporter(headline, workers, output)
  return makePlainReporter(headline, json ? output.note : (line) => output.write(`${line}\n`))
}

function nextCommands({ run, source, folder }: DemoResult, db: string): [string, string][] {
  return [
    [`export UNSTUCK_DB=${shellWord(db)}`, ''],
    ['npx unstuck serve', 'the dashboard'],
    [`npx unstuck show ${shortId(run)}`, 'the run, and what recovery did'],
    [`npx ${unstuckCommand('items', [source])}`, 'what was saved'],
    [`less ${shellWord(join(shortPath(folder), 'workers.log'))}`, 'the output of the workers'],
  ]
}

/** A relative path in an address is relative to the config's folder. */
function typeableAddress(db: string): string {
  if (!db.startsWith('sqlite:')) return redact(db)
  return `sqlite:${shortPath(db.slice('sqlite:'.length))}`
}

/** The average number of runnable processes in the last minute. */
function loadAverage(): number {
  return Math.round(loadavg()[0]! * 10) / 10
}

function shortPath(path: string): string {
  const short = relative(configFolder(process.cwd()), path)
  return short.startsWith('..') ? path : short
}
