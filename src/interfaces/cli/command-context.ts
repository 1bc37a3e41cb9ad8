import { join } from 'node:path'
import { newId, type WorkerId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import { openJournal } from '../../core/events/journal.ts'
import { describeEvent } from '../../presenters/event.ts'
import type { CycleOptions } from '../../features/commands/cycle.ts'
import { dataFolder } from '../../lib/files/data-folder.ts'
import type { RunnerOptions } from '../../features/commands/runner.ts'
import { pruneJournalsHourly } from '../../features/journal/prune-journals.ts'
import { openStore } from '../../core/store/open.ts'
import { alertSecrets } from '../../features/alerts/config.ts'
import { RunApi } from '../../features/commands/run-api/run-api.ts'
import type { CommandOptions } from './command-options.ts'
import { currentUser } from '../../app/open-context.ts'
import type { CliContext } from '../../contracts/command.ts'

/** What commands are run with: the API they reach, and whoever runs them. */
export type CommandContext = {
  readonly endpoint: RunApi
  /** For one life of the watchdog: each has an identity and a journal of its own. */
  readonly runner: () => Promise<RunnerOptions>
  /** The watchdog's of now, or the last one's. */
  readonly worker: () => WorkerId | null
  readonly cycle: Omit<
    CycleOptions,
    'source' | 'command' | 'policy' | 'processTag' | 'stop' | 'force'
  >
  readonly log: (text: string) => void
}

/** Files of a log: the one at work and the full ones that are kept. */
const LOG_FILES = 4

/** `source`: empty where many are served. */
export async function makeCommandContext(
  context: Pick<CliContext, 'database' | 'output' | 'json' | 'settings'> & {
    readonly options: CommandOptions
  },
  source: string,
  policy: Policy,
): Promise<CommandContext> {
  const { database, output, options } = context
  const log = (text: string): void => output.note(`[unstuck] ${text}`)
  const db = await database.address()
  const base = dataFolder(db, process.cwd())
  const endpoint = new RunApi({ log, ...(options.socket && { socketFolder: join(base, 'api') }) })
  const { alerts, overrides } = await context.settings()
  const journals = join(base, 'journal')
  pruneJournalsHourly(journals, () => database.open())
  let current: WorkerId | null = null
  return {
    endpoint,
    log,
    worker: () => current,
    runner: async () => {
      const worker = newId()
      current = worker
      const journal = openJournal(join(journals, `${worker}.jsonl`), worker)
      return {
        // With the one of the supervisor and the two of the watchdog: four.
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
      // No line of a command's output may show a password, or where alerts go.
      secrets: [db, ...alertSecrets(alerts)],
    },
  }
}
