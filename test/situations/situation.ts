import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { HealthState, Severity } from '../../src/core/decide/health.ts'
import { thisProcess } from '../../src/core/host/identity.ts'
import type { Claim } from '../../src/core/model/claim.ts'
import { newId, type RunId, type WorkerId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY, type Policy } from '../../src/core/model/policy.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { ProcessIdentity } from '../../src/core/model/worker.ts'
import type { Store } from '../../src/core/store/store.ts'
import { COMMAND_STORE } from '../../src/features/commands/store/store.ts'
import { LogFile } from '../../src/features/commands/log-file.ts'
import { runFolder } from '../../src/lib/files/data-folder.ts'
import { tagVariable } from '../../src/lib/process/process-tree.ts'
import type { StartAction } from '../../src/presenters/check.ts'
import {
  assertAllOk,
  beginOne,
  claim,
  claimOne,
  enqueueCrawl,
  makeTargets,
  registerWorker,
  savePage,
  SOURCE,
} from '../../src/testing/fixtures.ts'
import type { Engine, TestDatabase } from '../../src/testing/test-database.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import type { NewRow, UserTable } from '../../src/testing/user-tables.ts'

/** The same for each call: another environment would take a process of its own. */
export const WIDE = { COLUMNS: '999' }

export const SECOND = 1_000
export const MINUTE = 60 * SECOND
export const HOUR = 60 * MINUTE

/** A state of the database, and what every interface reports about it. What is left out is empty. */
export type Situation = {
  readonly severity: Severity
  /** Of each live run, by source; several of one source: an array, sorted. */
  readonly health?: Readonly<Record<string, HealthState | readonly HealthState[]>>
  /** The action of `unstuck check`, by source. */
  readonly check?: Readonly<Record<string, StartAction>>
  /** What recovery would apply or list, as `action source`. */
  readonly verdicts?: readonly string[]
  /** Rules of the alerts that are open then. */
  readonly alerts?: readonly string[]
  /** What needs attention, as `source: what`, with the command that is named for it without ids. */
  readonly attention?: Readonly<Record<string, string>>
  /** Further lines of the config. */
  readonly config?: string
  readonly tables?: Readonly<Record<string, SituationTable>>
  /** An operator acknowledged its live runs: they count as well. */
  readonly isAcknowledged?: true
  /** What no interface may report of a live run. */
  readonly unsaid?: RegExp
  /** Only where this engine can be in it. */
  readonly only?: Engine['name']
  readonly arrange: (fixture: Fixture) => Promise<unknown>
  /** What happens once the alerts are open, while no process checks their rules. */
  readonly afterAlerts?: (fixture: Fixture) => Promise<unknown>
}

export type SituationTable = {
  readonly table: UserTable
  readonly rows: () => NewRow[]
  /** Further options of the mapping, as in a config: functions and a policy. */
  readonly options?: string
}

export type Situations = Readonly<Record<string, Situation>>

/** What situations are arranged with. */
export class Fixture {
  readonly db: TestDatabase
  readonly store: Store
  readonly folder: string
  readonly ends = new AsyncDisposableStack()

  constructor(db: TestDatabase, store: Store, folder: string) {
    this.db = db
    this.store = store
    this.folder = folder
  }

  /** A command of an operator. */
  async cli(...args: string[]): Promise<void> {
    const { code, stdout, stderr } = await unstuck(args, { cwd: this.folder, env: WIDE })
    assert.ok(code === 0 || code === 3, `unstuck ${args.join(' ')}: ${stdout}${stderr}`)
  }

  /** In this process, which lives. Nothing sends its heartbeats: its lease outlasts the test on a busy machine. */
  liveWorker(source = SOURCE): Promise<WorkerId> {
    return this.#worker(source, {}, 5 * MINUTE)
  }

  /** Of a process that the kernel shows as gone. */
  deadWorker(source = SOURCE): Promise<WorkerId> {
    return this.#worker(source, { pid: 4_194_297, startTicks: 1 })
  }

  /** On another host: only its heartbeats are known. */
  remoteWorker(source = SOURCE): Promise<WorkerId> {
    return this.#worker(source, { host: 'elsewhere', bootId: 'another' })
  }

  /** In another container of this host: only its heartbeats are known. */
  containerWorker(source = SOURCE): Promise<WorkerId> {
    return this.#worker(source, { pidNamespace: 'pid:[1]' })
  }

  #worker(
    source: string,
    process: Partial<ProcessIdentity>,
    leaseMs = 15 * SECOND,
  ): Promise<WorkerId> {
    return registerWorker(this.store, {
      source,
      process: { ...thisProcess(), ...process },
      heartbeatMs: 50,
      leaseMs,
    })
  }

  /** A crawl with two targets; the worker holds one of them. */
  async crawl(
    worker: WorkerId,
    { pages = 1, policy = {}, source = SOURCE, targets = 2 }: CrawlOptions = {},
  ): Promise<RunId> {
    const run = await enqueueCrawl(this.store, targets, { policy, source })
    let claimed = await claimOne(this.store, worker, { source })
    for (let page = 0; page < pages; page++) claimed = await savePage(this.store, claimed)
    return run
  }

  /** A run with one target; the worker holds it. */
  async single(
    worker: WorkerId,
    { pages = 1, policy = {}, source = SOURCE }: CrawlOptions = {},
  ): Promise<RunId> {
    let claimed = await beginOne(this.store, worker, { policy, source })
    for (let page = 0; page < pages; page++) claimed = await savePage(this.store, claimed)
    return claimed.run
  }

  async heartbeat(worker: WorkerId): Promise<void> {
    const held = await this.store.claimsOf(worker, null, 100)
    const claimIds = held.map(({ target }) => target.claimId!)
    await this.store.heartbeat({ worker, claimIds, loopLagMs: 0 })
  }

  /** Moves the time and keeps these workers alive. */
  async advance(ms: number, ...alive: WorkerId[]): Promise<void> {
    await this.db.advanceClock(ms)
    for (const worker of alive) await this.heartbeat(worker)
  }

  /** Releases what a worker holds, as it does when it stops. */
  async stop(worker: WorkerId): Promise<void> {
    await this.release(worker)
    await this.store.retireWorker(worker)
    await this.store.settle()
  }

  async release(worker: WorkerId): Promise<void> {
    assertAllOk(await this.store.release(await this.#claims(worker)))
  }

  /** The queue of a Crawlee crawler, with two requests. */
  async crawlee(): Promise<void> {
    const id = newId()
    const run = { id, source: SOURCE, kind: 'crawl', profile: 'requests' } as const
    await this.store.enqueue({ ...run, policy: DEFAULT_POLICY })
    await this.store.plan(id, makeTargets(2))
    await this.store.finishPlanning(id)
  }

  /** Fails what a worker holds. */
  async fail(worker: WorkerId): Promise<void> {
    const failed = { error: 'selector found nothing', becomes: 'failed' } as const
    const claims = await this.#claims(worker)
    assertAllOk(await this.store.fail(claims.map((one) => ({ ...one, ...failed }))))
    await this.store.settle()
  }

  async #claims(worker: WorkerId): Promise<Claim[]> {
    const held = await this.store.claimsOf(worker, null, 100)
    return held.map(({ target: { id: target, epoch, claimId } }) => {
      return { target, epoch, claimId: claimId!, worker }
    })
  }

  /** A run with one target that its worker released with work left. */
  async interrupted(options: CrawlOptions = {}): Promise<RunId> {
    const worker = await this.liveWorker(options.source)
    const run = await this.single(worker, options)
    await this.stop(worker)
    return run
  }

  /** A run whose targets a worker has ended: so many failed, parked and done. */
  async ended(
    { failed = 0, parked = 0, done = 0 }: { failed?: number; parked?: number; done?: number },
    source = SOURCE,
  ): Promise<RunId> {
    const worker = await this.liveWorker(source)
    const run = await enqueueCrawl(this.store, failed + parked + done, { source })
    const held = await claim(this.store, worker, failed + parked + done, { source })
    const error = 'selector found nothing'
    await this.store.fail(
      held.slice(0, failed + parked).map((one, n) => {
        return { ...one, error, becomes: n < failed ? 'failed' : 'parked' } as const
      }),
    )
    await this.store.finish(held.slice(failed + parked))
    await this.store.retireWorker(worker)
    await this.store.settle()
    return run
  }

  async parkOne(source = SOURCE): Promise<void> {
    const run = await this.liveRun(source)
    const { items } = await this.store.targets(run.id, { statuses: ['planned'], limit: 1 })
    const targets = items.map(({ id }) => id)
    await this.store.parkTargets({ targets, actor: 'the tests', because: 'broken page' })
  }

  async liveRun(source = SOURCE): Promise<Run> {
    return (await this.store.liveRun(source))!
  }

  /** What `unstuck run` records when it starts the command of a run. */
  async execution(worker: WorkerId, run: RunId): Promise<void> {
    const { outputDir, logPath: log } = runFolder(this.folder, run)
    const output = new LogFile(log)
    output.write('out', ['page 1'])
    output.close()
    const { host } = thisProcess()
    const command = ['python', 'scraper.py']
    const started = { id: newId(), run, worker, host, command, outputDir, log }
    const commands = await this.store.extend(COMMAND_STORE)
    await commands.startExecution({ ...started, startedAt: Date.now(), end: null })
  }

  async lock(worker: WorkerId, source = SOURCE): Promise<string> {
    const processTag = newId()
    await this.store.lockSource({ source, worker, killTimeoutMs: SECOND, processTag })
    return processTag
  }

  /** A process of a wrapped command. */
  async process(processTag: string): Promise<void> {
    const env = { ...process.env, [tagVariable(processTag)]: '1' }
    const child = spawn('sleep', ['600'], { env, stdio: 'ignore' })
    await once(child, 'spawn')
    this.ends.defer(async () => {
      const ended = once(child, 'exit')
      if (child.kill('SIGKILL')) await ended
    })
  }
}

export type CrawlOptions = {
  readonly pages?: number
  readonly policy?: Partial<Policy>
  readonly source?: string
  readonly targets?: number
}

/** How long ago, for a column of the user's. */
export const ago = (ms: number): Date => new Date(Date.now() - ms)
