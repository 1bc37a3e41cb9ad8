import { join } from 'node:path'
import type { CliContext } from '../../../contracts/command.ts'
import type { BackgroundService } from '../../../contracts/feature.ts'
import { journalName, openJournal, pruneJournalsHourly } from '../../../lib/files/journal.ts'
import { currentUser } from '../../../lib/process/this-process.ts'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { newId, type WorkerId } from '../../../core/model/id.ts'
import type { Policy } from '../../../core/model/policy.ts'
import { openStore } from '../../../core/store/open.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import type { SystemdNotifier } from '../../../lib/process/sd-notify.ts'
import { describeEvent } from '../../../presenters/event.ts'
import { RunApi } from '../run-api/run-api.ts'
import { CurrentRunner } from '../runner.ts'
import type { CommandOptions } from './options.ts'

/** Files of a log: the current one and the full ones that are kept. */
const LOG_FILES = 4

type Context = Pick<CliContext, 'database' | 'output' | 'json' | 'settings' | 'startServices'> & {
  readonly options: CommandOptions
}

/** Makes what every process that starts commands has: the API for so many of them, and the settings of each. */
export async function makeCommandSettings(context: Context, policy: Policy, commands = 1) {
  const { database, output, options } = context
  const log = (text: string): void => output.note(`[unstuck] ${text}`)
  const db = await database.address()
  const base = dataFolder(db, process.cwd())
  const { secrets, overrides } = await context.settings()
  return {
    log,
    db,
    overrides,
    endpoint: new RunApi({
      log,
      commands,
      ...(options.socket && { socketFolder: join(base, 'api') }),
    }),
    cycle: {
      cwd: process.cwd(),
      env: process.env,
      base,
      killTimeoutMs: options.killTimeout,
      maxDurationMs: options.maxDuration ?? policy.maxDurationMs,
      maxMemoryBytes: options.maxMemory ?? null,
      readyTimeoutMs: options.waitReady ? options.readyTimeout : null,
      maxLogBytes: Math.floor(options.logSize / LOG_FILES),
      quiet: options.quiet || context.json,
      // Redacted in the output of the command.
      secrets: [db, ...secrets.map(({ value }) => value)],
    },
  }
}

/** Makes the parts of a process that wraps commands. `source`: empty if the process works for many. */
export async function makeCommandSetup(context: Context, source: string, policy: Policy) {
  const { database, options } = context
  const { log, db, overrides, endpoint, cycle } = await makeCommandSettings(context, policy)
  const journals = join(cycle.base, 'journal')
  pruneJournalsHourly(journals, () => database.open())
  let current: WorkerId | null = null
  // Each runner has its own identity and journal.
  const runner = new CurrentRunner(async () => {
    const worker = newId()
    current = worker
    const journal = openJournal(join(journals, journalName(source, worker, process.pid)), worker)
    return {
      // The supervisor has one connection more and the watchdog two: four.
      store: await openStore(db, { writer: worker, connections: 1 }),
      db,
      worker,
      source,
      policy,
      overrides,
      endpoint,
      keepOutput: options.keepOutput ?? null,
      actor: currentUser(),
      log,
      emit: (event) => {
        journal(event)
        const text = describeEvent(event)
        if (text !== null) log(text)
      },
    }
  }, log)
  return {
    log,
    runner,
    cycle,
    /** Runs the work with the API of its runs, the background services and signal handlers, and ends them after it. */
    supervise: async <T>(
      manager: SystemdNotifier,
      run: (services: Pick<Required<BackgroundService>, 'finish'>) => Promise<T>,
    ): Promise<T> => {
      const services = await context.startServices(log, () => current)
      await endpoint.start()
      const stop = (by: string): void => {
        manager.stopping()
        runner.requestStop(by)
      }
      const removeHandlers = onCommandSignals(stop, () => runner.forceStop(), log)
      try {
        return await run(services)
      } finally {
        removeHandlers()
        await services.stop()
        await endpoint.stop()
        await manager.close()
      }
    },
  }
}

/**
 * The first SIGTERM or SIGINT ends the command and everything it started, the second kills them. A process manager whose
 * channel to this process closed counts as the first: its next copy would wait for this one. Returns a function that
 * removes the handlers.
 */
function onCommandSignals(
  stop: (by: string) => void,
  forceStop: () => void,
  log: (message: string) => void,
): () => void {
  let signalCount = 0
  const onSignal = (by: string): void => {
    signalCount++
    if (signalCount === 1) {
      log(`${by}: ending the command and all it started. Send it again to kill it at once.`)
      stop(by)
    } else if (signalCount === 2) {
      log(`${by} again: killing it.`)
      forceStop()
    } else if (signalCount === 3) {
      log(
        `${by} a third time: exiting. The watchdog still ends the command, and keeps its source locked until then.`,
      )
      process.exit(EXIT.resumable)
    }
  }
  const onDisconnect = (): void => {
    if (signalCount === 0) onSignal('the process manager is gone')
  }
  process.on('SIGTERM', onSignal)
  process.on('SIGINT', onSignal)
  process.on('disconnect', onDisconnect)
  return () => {
    process.off('SIGTERM', onSignal)
    process.off('SIGINT', onSignal)
    process.off('disconnect', onDisconnect)
  }
}
