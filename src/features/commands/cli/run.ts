import { Cron } from 'croner'
import type { RestartPolicy } from '../ending.ts'
import { messageOf, UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { shortId } from '../../../core/model/id.ts'
import { checkSource } from '../../../lib/validate/source.ts'
import { runCommand } from '../../../core/model/shell-command.ts'
import { trackingGap } from '../start-tagged.ts'
import { Supervisor, type SupervisorResult } from '../supervisor.ts'
import { commandOptions } from './options.ts'
import { makeCommandSetup } from './setup.ts'
import { SystemdNotifier } from '../../../lib/process/sd-notify.ts'
import { defineCommand, type CliContext, type CommandResult } from '../../../contracts/command.ts'
import { argument, defaultsTo, option, SHARED_OPTIONS } from '../../../contracts/options.ts'

const options = {
  ifRunning: option.choice(
    ['wait', 'skip', 'fail'],
    'when a copy of it is running already: wait for its end, end with 0, or end with 5',
    'fail',
  ),
  interval: SHARED_OPTIONS.interval,
  cron: option.text('WHEN', "start it at these times, as in '0 3 * * *'; missed times are skipped"),
  timezone: defaultsTo("this machine's", option.text('ZONE', 'of --cron, as in Europe/Berlin')),
  restart: defaultsTo(
    'on-failure with --interval or --cron, else never',
    option.choice(['always', 'on-failure', 'never'], 'start it again after its end', undefined),
  ),
  restartDelay: option.duration('TIME', 'before a restart; doubles while it dies at once', 10_000),
  maxRestarts: option.count('N', 'without progress within the window, then it gives up', 5, {
    min: 0,
  }),
  restartWindow: option.duration('TIME', 'the window for --max-restarts', 15 * 60_000),
  minUptime: option.duration('TIME', 'a failure after less than this doubles the delay', 30_000),
  ...commandOptions,
}
type Run = CliContext<{ source: Arg; command: Rest }, typeof options>
type Arg = ReturnType<typeof argument.required>
type Rest = ReturnType<typeof argument.rest>

export const command = defineCommand({
  examples: [
    'unstuck run stake -- python run_scraper.py',
    'unstuck run stake --interval 30s -- python run_scraper.py   # again and again, 30 s apart',
    "unstuck run stake --cron '0 3 * * *' --max-duration 2h -- ./nightly.sh",
    'unstuck run stake --if-running skip -- ./scrape.sh          # in a crontab',
  ],
  args: {
    source: argument.required('what it scrapes: at most one copy runs per source'),
    command: argument.rest('the program and its arguments, after --'),
  },
  options,
  ignoresClosedPipe: true,

  async run(context) {
    const { source, command } = context.args
    checkSource(source)
    if (command.length === 0) {
      throw new UsageError(
        `There is no command. Write it after two dashes: ${runCommand(source, ['python', 'scraper.py'])}`,
      )
    }
    if (context.options.cron !== undefined && context.options.interval !== undefined)
      throw new UsageError('Use either --cron or --interval, not both.')
    return report(context, await superviseCommand(context))
  },
})

async function superviseCommand(context: Run): Promise<SupervisorResult> {
  const { args, settings, database } = context
  const { source, command } = args
  const policy = (await settings()).policyFor(source)
  const { runner, cycle, log, supervise } = await makeCommandSetup(context, source, policy)
  let status = `starting ${source}`
  const manager = new SystemdNotifier({
    isHealthy: () => runner.isHeartbeating,
    status: () => status,
    log,
  })
  const supervisor = new Supervisor({
    store: await database.openWithin(context.options.dbTimeout, log),
    runner,
    cycleOptions: {
      ...cycle,
      source,
      command,
      policy,
      onReady: (run) => {
        status = `run ${shortId(run)} of ${source}: at work`
        manager.ready()
      },
    },
    restarts: restartsOf(context.options),
    msUntilNextTick: makeSchedule(context.options.cron, context.options.timezone),
    ifRunning: context.options.ifRunning,
    log: (text) => {
      log(text)
      status = text
      // A process that waits for its time or for another copy is ready too.
      if (!context.options.waitReady || context.options.cron !== undefined) manager.ready()
    },
  })
  return supervise(manager, async (services) => {
    const ended = await supervisor.run()
    // This may be the only process that sends alerts.
    if (ended.gaveUp !== null) await services.finish()
    return ended
  })
}

function restartsOf(given: Run['options']): RestartPolicy {
  const isRepeated = given.interval !== undefined || given.cron !== undefined
  return {
    restart: given.restart ?? (isRepeated ? 'on-failure' : 'never'),
    intervalMs: given.interval ?? null,
    delayMs: given.restartDelay,
    max: given.maxRestarts,
    windowMs: given.restartWindow,
    minUptimeMs: given.minUptime,
  }
}

function report({ args, output }: Run, ended: SupervisorResult): CommandResult {
  const { last, exitCode, gaveUp, skipped, tracking } = ended
  if (gaveUp !== null) output.note(`[unstuck] gave up on ${args.source}: ${gaveUp}`)
  if (skipped !== null) output.note(`[unstuck] skipped: ${skipped}`)
  if (last) {
    const go =
      exitCode === EXIT.resumable ? ' The next start continues from its last checkpoint.' : ''
    const seen =
      tracking !== null && trackingGap(tracking) !== null
        ? ' No process that Unstuck can see is left.'
        : ''
    output.note(
      `[unstuck] run ${shortId(last.run)} of ${args.source}: ${last.because}.${go}${seen}`,
    )
  }
  return {
    exitCode,
    print: () => {},
    data: {
      source: args.source,
      run: last?.run ?? null,
      outcome: last === null ? null : last.isStopped ? 'stopped' : last.end.outcome,
      because: last?.because ?? skipped,
      exitCode,
      gaveUp,
      skipped: skipped !== null,
      tracking,
    },
  }
}

/** Returns a function that returns the time until the next entry of a crontab line; null without one. */
function makeSchedule(
  expression: string | undefined,
  timezone: string | undefined,
): () => number | null {
  if (expression === undefined) {
    if (timezone !== undefined) throw new UsageError('--timezone goes with --cron.')
    return () => null
  }
  const cron = parseCron(expression, timezone)
  return () => {
    const next = cron.nextRun()
    // Croner rounds down to whole seconds: never the same moment twice.
    return next === null ? null : Math.max(1, next.getTime() - Date.now())
  }
}

function parseCron(when: string, timezone: string | undefined): Cron {
  try {
    const cron = new Cron(when, { paused: true, ...(timezone !== undefined && { timezone }) })
    if (cron.nextRun() !== null) return cron
  } catch (error) {
    throw new UsageError(
      `--cron ${JSON.stringify(when)} cannot be read: ${messageOf(error)}. Five fields, as in '0 3 * * *': minute, hour, day, month, weekday.`,
      { cause: error },
    )
  }
  throw new UsageError(`--cron ${JSON.stringify(when)} names no time that is still to come.`)
}
