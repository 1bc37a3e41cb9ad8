import { join } from 'node:path'
import type { CliContext } from '../../../contracts/command.ts'
import type { BackgroundService } from '../../../contracts/feature.ts'
import { openJournal } from '../../../lib/files/journal.ts'
import { currentUser } from '../../../core/host/identity.ts'
import { newId, type WorkerId } from '../../../core/model/id.ts'
import type { Policy } from '../../../core/model/policy.ts'
import { openStore } from '../../../core/store/open.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import { pruneJournalsHourly } from '../../../lib/files/prune-journals.ts'
import type { SystemdNotifier } from '../../../lib/process/sd-notify.ts'
import { describeEvent } from '../../../presenters/event.ts'
import type { CycleOptions } from '../cycle.ts'
import { RunApi } from '../run-api/run-api.ts'
import type { RunnerOptions } from '../runner.ts'
import type { CommandOptions } from './options.ts'
import { onCommandSignals, type Stoppable } from './signals.ts'

/** The parts of a process that wraps commands. */
export type CommandSetup = {
  /** Options of a new watchdog: each has its own identity and journal. */
  readonly runner: () => Promise<RunnerOptions>
  readonly cycle: Omit<
    CycleOptions,
    'source' | 'command' | 'policy' | 'processTag' | 'stop' | 'force'
  >
  readonly log: (text: string) => void
  /** Runs a supervisor with its API, the background services and signal handlers, and ends them after it. */
  readonly supervise: <T>(
    supervisor: Stoppable,
    manager: SystemdNotifier,
    run: (services: Pick<Required<BackgroundService>, 'finish'>) => Promise<T>,
  ) => Promise<T>
}

/** Files of a log: the current one and the full ones that are kept. */
const LOG_FILES = 4

/** `source`: empty if the process works for many. */
export async function makeCommandSetup(
  context: Pick<CliContext, 'database' | 'output' | 'json' | 'settings' | 'startServices'> & {
    readonly options: CommandOptions
  },
  source: string,
  policy: Policy,
): Promise<CommandSetup> {
  const { database, output, options } = context
  const log = (text: string): void => output.note(`[unstuck] ${text}`)
  const db = await database.address()
  const base = dataFolder(db, process.cwd())
  const endpoint = new RunApi({ log, ...(options.socket && { socketFolder: join(base, 'api') }) })
  const { secrets, overrides } = await context.settings()
  const journals = join(base, 'journal')
  pruneJournalsHourly(journals, () => database.open())
  let current: WorkerId | null = null
  return {
    log,
    runner: async () => {
      const worker = newId()
      current = worker
      const journal = openJournal(join(journals, `${worker}.jsonl`), worker)
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
    },
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
    async supervise(supervisor, manager, run) {
      const services = await context.startServices(log, () => current)
      await endpoint.start()
      const stop = (by: string): void => {
        manager.stopping()
        supervisor.stop(by)
      }
      const removeHandlers = onCommandSignals(
        { stop, forceStop: () => supervisor.forceStop() },
        log,
      )
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
