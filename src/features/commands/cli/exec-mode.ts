import type { CliContext } from '../../../contracts/command.ts'
import type { ExecMode } from '../../../contracts/feature.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { sourceMistake } from '../../../lib/validate/source.ts'
import { SystemdNotifier } from '../../../lib/process/sd-notify.ts'
import { ExecWorker } from '../exec-worker.ts'
import type { RestartPolicy } from '../ending.ts'
import type { CommandOptions } from './options.ts'
import { makeCommandSetup } from './setup.ts'

type ExecContext = CliContext & {
  readonly options: CommandOptions & {
    readonly source: readonly string[]
    readonly concurrency: number | undefined
    readonly drain: boolean
  }
}

/** A run that crashed after progress is restarted as with `unstuck run --restart on-failure`. */
const RESTARTS: RestartPolicy = {
  restart: 'on-failure',
  intervalMs: null,
  delayMs: 10_000,
  max: 5,
  windowMs: 15 * 60_000,
  minUptimeMs: 30_000,
}

/** `unstuck work --source S --exec -- CMD`: claims queued runs and starts a process for each. */
export const workOnCommands: ExecMode['run'] = async (context: ExecContext, command) => {
  const { options } = context
  checkRequest(options.source, command)
  const settings = await context.settings()
  const policy = settings.policyFor(options.source[0]!)
  const { runner, cycle, log, supervise } = await makeCommandSetup(context, '', policy)
  const waits = `waiting for runs of ${options.source.join(', ')}`
  const manager = new SystemdNotifier({
    isHealthy: () => runner.isHeartbeating,
    status: () => worker.activeSources.map((name) => `at work on ${name}`).join(', ') || waits,
    log,
  })
  const worker = new ExecWorker({
    store: await context.database.openWithin(options.dbTimeout, log),
    runner,
    cycleOptions: { ...cycle, command, maxDurationMs: options.maxDuration ?? null },
    policyFor: (source) => settings.policyFor(source),
    sources: options.source,
    concurrency: options.concurrency ?? 1,
    drain: options.drain,
    restarts: RESTARTS,
    onStarted: () => manager.ready(),
    log,
  })
  return supervise(manager, async (services) => {
    log(waits)
    const done = await worker.run()
    const { succeeded, failed, isStopped } = done
    if (!isStopped) await services.finish()
    const left = isStopped ? ', and some are left' : ''
    log(`${succeeded} succeeded, ${failed} failed${left}`)
    const exitCode =
      isStopped && options.drain ? EXIT.resumable : failed > 0 ? EXIT.needsAttention : EXIT.done
    return { data: { ...done, exitCode }, exitCode, print: () => {} }
  })
}

function checkRequest(sources: readonly string[], command: readonly string[]): void {
  const example = 'unstuck work --source reports --exec -- python report.py'
  if (sources.length === 0)
    throw new UsageError(`--exec needs the sources whose runs it takes. For example: ${example}`)
  if (command.length === 0)
    throw new UsageError(`There is no command. Write it after two dashes: ${example}`)
  const mistakes = sources.flatMap((name) => {
    const mistake = name === '*' ? null : sourceMistake(name.replace(/\*$/, ''))
    return mistake === null ? [] : [`--source ${JSON.stringify(name)} ${mistake}`]
  })
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
}
