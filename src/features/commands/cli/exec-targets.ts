import { join } from 'node:path'
import type { CliContext } from '../../../contracts/command.ts'
import type { ExecMode, TargetWork } from '../../../contracts/feature.ts'
import type { WorkHost, Workers } from '../../../contracts/workers.ts'
import { UsageError } from '../../../core/model/errors.ts'
import { newId, shortId } from '../../../core/model/id.ts'
import type { Policy } from '../../../core/model/policy.ts'
import { formatDuration } from '../../../core/model/time.ts'
import { openStore } from '../../../core/store/open.ts'
import { journalName, openJournal, pruneJournalsHourly } from '../../../lib/files/journal.ts'
import { sourceMistake } from '../../../lib/validate/source.ts'
import { describeEvent } from '../../../presenters/event.ts'
import { WorkerPool } from '../worker-pool.ts'
import { commandOptions, type CommandOptions } from './options.ts'
import { makeCommandSettings } from './setup.ts'

type TargetsContext = CliContext & {
  readonly options: CommandOptions & {
    readonly source: readonly string[]
    readonly concurrency: number | undefined
    readonly workers: number
    readonly drain: boolean
    readonly journal: string | undefined
  }
}

/** `unstuck work --exec --targets --source S -- CMD`: copies of a command that claim targets over their API. */
export const workOnTargets: ExecMode['onTargets'] = async (context: TargetsContext, command) => {
  const source = checkRequest(context, command)
  const policy = (await context.settings()).policyFor(source)
  const work = { source, policy, command }
  return {
    source,
    policy,
    killTimeoutMs: context.options.killTimeout,
    flags: flagsOf(context.options),
    makeWorkers: (host) => makeWorkers(context, work, host),
  }
}

function flagsOf(options: CommandOptions): TargetWork['flags'] {
  const { killTimeout, maxMemory, logSize, socket, quiet } = options
  const isDefault = (name: 'killTimeout' | 'logSize'): boolean =>
    options[name] === commandOptions[name].defaultValue
  return {
    killTimeout: isDefault('killTimeout') ? undefined : formatDuration(killTimeout),
    maxMemory: maxMemory === undefined ? undefined : `${maxMemory / 1_024}K`,
    logSize: isDefault('logSize') ? undefined : `${logSize / 1_024}K`,
    socket,
    quiet,
  }
}

/** Connections of the store that all copies share: pages that find both busy are saved together. */
const CONNECTIONS = 2

async function makeWorkers(
  context: TargetsContext,
  work: { readonly source: string; readonly policy: Policy; readonly command: readonly string[] },
  host: WorkHost,
): Promise<Workers> {
  const { workers: count, drain, journal: folder } = context.options
  const { db, overrides, endpoint, cycle } = await makeCommandSettings(context, work.policy, count)
  const journals = folder ?? join(cycle.base, 'journal')
  pruneJournalsHourly(journals, () => context.database.open())
  // The counters have a writer of their own, whatever copy a page is from.
  const writer = newId()
  const store = await openStore(db, { writer, connections: CONNECTIONS })
  const pool = new WorkerPool({
    ...cycle,
    ...work,
    store,
    db,
    overrides,
    api: endpoint,
    count,
    drain,
    log: host.log,
    onReady: host.onReady,
    emitFor: (worker, pid) => {
      const journal = openJournal(join(journals, journalName(work.source, worker, pid)), worker)
      return (event) => {
        journal(event)
        const text = describeEvent(event)
        if (text !== null) host.log(`[${shortId(worker)}] ${text}`)
      }
    },
  })
  return {
    id: null,
    openStore: async () => store,
    isHealthy: () => pool.isHealthy,
    stop: (because) => pool.stop(because),
    kill: () => pool.kill(),
    async run() {
      await endpoint.start()
      try {
        await host.onBegin(store)
        await host.ensureRun(store)
        return await pool.run()
      } finally {
        await endpoint.stop()
        await store.retireWorker(writer).catch(() => {})
        await store.close()
      }
    },
  }
}

const EXAMPLE = 'unstuck work --exec --targets --source directory --workers 10 -- python crawl.py'

/** Returns the source. */
function checkRequest({ options }: TargetsContext, command: readonly string[]): string {
  const [source, ...others] = options.source
  if (source === undefined || others.length > 0)
    throw new UsageError(`--targets needs one --source. For example: ${EXAMPLE}`)
  const mistake = source.endsWith('*') ? 'must be one source' : sourceMistake(source)
  if (mistake !== null) throw new UsageError(`--source ${JSON.stringify(source)} ${mistake}`)
  if (command.length === 0)
    throw new UsageError(`There is no command. Write it after two dashes: ${EXAMPLE}`)
  if (options.concurrency !== undefined)
    throw new UsageError(
      'With --targets the command itself decides how many pages it fetches at once; --workers is the number of its copies.',
    )
  if (options.maxDuration !== undefined || options.waitReady || options.keepOutput !== undefined)
    throw new UsageError(
      '--max-duration, --wait-ready and --keep-output are about runs of one command each. With --targets set maxDuration in the policy of the source.',
    )
  return source
}
