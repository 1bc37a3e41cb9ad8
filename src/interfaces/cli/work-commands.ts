import type { RestartPolicy } from '../../features/commands/next-cycle.ts'
import { UsageError } from '../../core/model/errors.ts'
import { EXIT } from '../../core/model/exit-codes.ts'
import { sourceMistake } from '../../core/model/source.ts'
import { ExecWorker } from '../../features/commands/exec-worker.ts'
import { startBackgroundAlerts } from './background-alerts.ts'
import type { CommandOptions } from './command-options.ts'
import { makeCommandContext } from './command-context.ts'
import { onCommandSignals } from './command-signals.ts'
import { withStopNotice, SystemdNotifier } from './sd-notify.ts'
import type { CliContext, CommandResult } from '../../contracts/command.ts'

export type ExecRequest = Pick<CliContext, 'settings' | 'database' | 'output' | 'json'> & {
  readonly command: readonly string[]
  readonly options: CommandOptions & {
    readonly source: readonly string[]
    readonly concurrency: number | undefined
    readonly drain: boolean
  }
}

/** A run that died with progress is taken up again as `unstuck run --restart on-failure` would. */
const RESTARTS: RestartPolicy = {
  restart: 'on-failure',
  intervalMs: null,
  delayMs: 10_000,
  max: 5,
  windowMs: 15 * 60_000,
  minUptimeMs: 30_000,
}

/** `unstuck work --source S --exec -- CMD`: takes queued runs, each in a child process. */
export async function workOnCommands(request: ExecRequest): Promise<CommandResult> {
  const { command, options } = request
  checkRequest(request)
  const settings = await request.settings()
  const policy = settings.policyFor(options.source[0]!)
  const { endpoint, runner, cycle, log, worker: id } = await makeCommandContext(request, '', policy)
  const waits = `waiting for runs of ${options.source.join(', ')}`
  const manager = new SystemdNotifier({
    isHealthy: () => worker.isHeartbeating,
    status: () => worker.activeSources.map((name) => `at work on ${name}`).join(', ') || waits,
    log,
  })
  const worker = new ExecWorker({
    store: await request.database.open({ connections: 1 }),
    runnerOptions: runner,
    cycleOptions: { ...cycle, command, maxDurationMs: options.maxDuration ?? null },
    policyFor: (source) => settings.policyFor(source),
    sources: options.source,
    concurrency: options.concurrency ?? 1,
    drain: options.drain,
    restarts: RESTARTS,
    onStarted: () => manager.ready(),
    log,
  })
  const alerts = await startBackgroundAlerts(request, log, id)
  await endpoint.start()
  const forget = onCommandSignals(withStopNotice(manager, worker), log)
  try {
    log(waits)
    const done = await worker.run()
    if (!done.isStopped) await alerts.finish()
    const { succeeded, failed, isStopped } = done
    const left = isStopped ? ', and some are left' : ''
    log(`${succeeded} succeeded, ${failed} failed${left}`)
    const exitCode =
      isStopped && options.drain ? EXIT.resumable : failed > 0 ? EXIT.needsAttention : EXIT.done
    return { data: { ...done, exitCode }, exitCode, print: () => {} }
  } finally {
    forget()
    await alerts.stop()
    await endpoint.stop()
    await manager.close()
  }
}

function checkRequest({ command, options }: ExecRequest): void {
  const example = 'unstuck work --source reports --exec -- python report.py'
  if (options.source.length === 0)
    throw new UsageError(`--exec needs to know whose runs to take. For example: ${example}`)
  if (command.length === 0)
    throw new UsageError(`What is to be run? Write the command after two dashes: ${example}`)
  const mistakes = options.source.flatMap((name) => {
    const mistake = name === '*' ? null : sourceMistake(name.replace(/\*$/, ''))
    return mistake === null ? [] : [`--source ${JSON.stringify(name)} ${mistake}`]
  })
  if (mistakes.length > 0) throw new UsageError(mistakes.join('\n'))
}
