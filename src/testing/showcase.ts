import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import type { ClaimedTarget } from '../core/model/claim.ts'
import type { UnstuckEvent } from '../core/model/event.ts'
import { UsageError } from '../core/model/errors.ts'
import { newId, shortId, type RunId, type TargetId, type WorkerId } from '../core/model/id.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { dataFolder, createRunFolder } from '../lib/files/data-folder.ts'
import { journalName } from '../lib/files/journal.ts'
import { iso } from '../core/model/time.ts'
import { safeJson } from '../lib/text/safe-text.ts'
import { openStore } from '../core/store/open.ts'
import type { Store } from '../core/store/store.ts'
import { untilInterrupted } from '../lib/process/until-interrupted.ts'
import { beginOne, EVIDENCE, unwrap, savePage } from './fixtures.ts'
import { openDatabaseClock } from './database-clock.ts'
import {
  nameSources,
  createPastRuns,
  type PastRuns,
  createAlerts,
  type Sources,
} from './showcase-history.ts'
import { Simulation, type SimulatedWorker } from './showcase-simulation.ts'
import { COMMAND_STORE } from '../features/commands/store/store.ts'

/** A scraping company at three in the morning, with something of everything. Dispose it to end its workers. */
export type Showcase = AsyncDisposable & {
  readonly sources: Sources
  readonly runs: Omit<PastRuns, 'stuckTarget'> &
    Record<
      'healthy' | 'orphaned' | 'stalled' | 'silent' | 'interrupted' | 'dead' | 'command' | 'queued',
      RunId
    >
  readonly workers: Record<'present' | 'gone' | 'silent' | 'stalled', WorkerId>
  readonly targets: Record<'inProgress' | 'done' | 'failed' | 'parked' | 'stuck', TargetId>
  /** The healthy crawl goes on by a page of each of its targets in hand. */
  saveMorePages(): Promise<void>
}

export type ShowcaseOptions = {
  /** Every text that a stranger could have written is an attack. */
  readonly hostile?: boolean
  /** The address that the store was opened with. Only a database file is found without it. */
  readonly url?: string
  /** Where the output of its command and the journals of its workers are kept; otherwise beside the database file. */
  readonly folder?: string
}

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
/** The last part of the story is played minute by minute. */
const MINUTES = 45

/**
 * Fills an empty store by its own verbs, moving time in between. Live workers hold their presence in this process and
 * beat until the showcase is disposed of.
 */
export async function fillShowcase(
  store: Store,
  { hostile = false, url = fileAddress(store), folder }: ShowcaseOptions = {},
): Promise<Showcase> {
  await using clock = await openDatabaseClock(url)
  const simulation = new Simulation(store, clock, hostile)
  const sources = nameSources(simulation)
  const past = await createPastRuns(simulation, sources)
  await simulation.advance(2 * HOUR_MS)
  const files = folder === undefined ? openFolder(url) : { path: folder, remove: () => {} }
  const tonight = await createCurrentRuns(simulation, sources, past, files.path)
  const beating = startHeartbeats(simulation)
  const { stuckTarget, ...pastRuns } = past
  return {
    sources,
    runs: { ...pastRuns, ...tonight.runs },
    workers: tonight.workers,
    targets: {
      ...(await pickTargets(store, tonight.runs.healthy)),
      stuck: stuckTarget,
    },
    async saveMorePages() {
      for (const simulated of tonight.liveWorkers) {
        await simulation.workOnce(simulated)
        await simulation.claim(simulated)
      }
    },
    async [Symbol.asyncDispose]() {
      await beating.stop()
      for (const presence of simulation.presences) await presence.release()
      files.remove()
    },
  }
}

type CurrentRuns = {
  readonly runs: Omit<Showcase['runs'], keyof PastRuns>
  readonly workers: Showcase['workers']
  readonly liveWorkers: readonly SimulatedWorker[]
}

async function createCurrentRuns(
  simulation: Simulation,
  sources: Sources,
  past: PastRuns,
  folder: string,
): Promise<CurrentRuns> {
  const { store } = simulation
  const healthy = await simulation.enqueue(sources.tenders, 360, [
    'Deutschland',
    'España',
    'Ελλάδα',
    'Polska',
    'Česko',
    'Österreich',
  ])
  const orphaned = await simulation.enqueue(sources.yellow, 120, ['bavaria', 'saxony', 'hesse'])
  const stalled = await simulation.enqueue(sources.courses, 90, ['physics', 'law', 'medicine'])
  const silent = await simulation.enqueue(sources.registers, 80, ['gmbh', 'ag'])
  const interrupted = await simulation.enqueue(sources.hotels, 60, ['rome', 'vienna'])
  const steady = await Promise.all(
    [1, 2, 3].map(() => simulation.addWorker(sources.tenders, 'here', undefined, 6)),
  )
  const killed = await simulation.addWorker(sources.yellow, 'killed', undefined, 5)
  const hung = await simulation.addWorker(sources.courses, 'here', undefined, 4)
  const far = await simulation.addWorker(sources.registers, 'far', 'scraper-03', 3)
  const deployed = await simulation.addWorker(sources.hotels, 'killed', 'scraper-02', 5)
  for (const simulated of [...steady, killed]) simulated.failureRate = 0.06
  const command = await ShowcaseCommand.start(simulation, sources.property, folder)
  let queued = ''

  for (let minute = MINUTES; minute >= 0; minute--) {
    for (const simulated of steady) await simulation.workOnce(simulated)
    const isTheirs = minute % 2 === 0
    if (isTheirs && minute >= 12) await simulation.workOnce(killed)
    if (isTheirs && minute >= 32) await simulation.workOnce(hung)
    if (isTheirs && minute >= 6) await simulation.workOnce(far)
    if (isTheirs && minute >= 24) await simulation.workOnce(deployed)
    if (minute === 32) await simulation.claim(hung)
    if (minute === 24) await simulation.retire(deployed)
    if (minute === 12) await simulation.claimAndHeartbeat(killed)
    if (minute === 6) await simulation.claimAndHeartbeat(far)
    if (minute === 30) await command.crash()
    else await command.print(MINUTES - minute)
    if (minute === 14) await createAlerts(simulation, sources, { ...past, stalled })
    if (minute === 4) queued = await simulation.enqueue(sources.reviews, 30)
    await store.takeSample()
    if (minute > 0) await simulation.advance(MINUTE_MS)
  }
  for (const simulated of [...steady, hung]) await simulation.claimAndHeartbeat(simulated)
  await command.flush()
  await writeJournal(store, healthy, folder)
  return {
    liveWorkers: steady,
    runs: { healthy, orphaned, stalled, silent, interrupted, queued, command: command.run },
    workers: {
      present: steady[0]!.worker,
      gone: killed.worker,
      silent: far.worker,
      stalled: hung.worker,
    },
  }
}

/** A scraper in Python, wrapped: its first life ran out of memory, its second continues from there. */
class ShowcaseCommand {
  readonly run: RunId
  readonly #scene: Simulation
  readonly #places: ReturnType<typeof createRunFolder>
  readonly #lines: string[] = []
  #hand: SimulatedWorker
  #claimed: ClaimedTarget
  #execution = ''

  private constructor(
    simulation: Simulation,
    simulated: SimulatedWorker,
    claimed: ClaimedTarget,
    folder: string,
  ) {
    this.run = claimed.run
    this.#scene = simulation
    this.#hand = simulated
    this.#claimed = claimed
    this.#places = createRunFolder(folder, claimed.run)
  }

  static async start(
    simulation: Simulation,
    source: string,
    folder: string,
  ): Promise<ShowcaseCommand> {
    const simulated = await simulation.addWorker(source, 'killed', undefined, 1)
    const claimed = await ShowcaseCommand.#begin(simulation, simulated)
    const command = new ShowcaseCommand(simulation, simulated, claimed, folder)
    await command.#startExecution()
    return command
  }

  static async #begin(
    { store }: Simulation,
    { source, worker }: SimulatedWorker,
  ): Promise<ClaimedTarget> {
    await store.lockSource({ source, worker, killTimeoutMs: 30_000, processTag: newId() })
    return beginOne(store, worker, { source, policy: DEFAULT_POLICY })
  }

  async print(minute: number): Promise<void> {
    const { store } = this.#scene
    if (minute % 10 === 9) {
      const items = [{ key: `flat-${minute}`, data: { title: this.#scene.text('Flat, 3 rooms') } }]
      this.#claimed = await savePage(store, this.#claimed, { items, next: null })
    }
    unwrap(await store.reportProgress(this.#claimed, { done: 40 * minute, total: 4_800 }))
    unwrap(await store.reportActivity(this.#claimed, Math.floor(minute / 20)))
    this.#line(minute, minute % 17 === 0 ? 'err' : 'out', `page ${minute}: 40 listings`)
  }

  async crash(): Promise<void> {
    const { store } = this.#scene
    const { worker, source } = this.#hand
    const because = 'killed by SIGKILL, probably out of memory'
    const at = await store.now()
    const [artifacts, peakMemory] = [2, 1_932_735_283]
    const end = { at, exitCode: null, signal: 'SIGKILL', because, artifacts, peakMemory }
    await (await store.extend(COMMAND_STORE)).endExecution(this.#execution, end)
    this.#line(MINUTES - 30, 'run', because)
    const judgements = (await store.claimsOf(worker, null, 10)).map((held) => ({
      held,
      decision: { action: 'resume', because } as const,
      liveness: 'gone' as const,
      evidence: { ...EVIDENCE, host: this.#hand.host },
      newRun: newId(),
    }))
    await store.applyVerdicts(judgements, `start of ${source}`)
    await store.unlockSource({ source, worker })
    this.#hand.claims = []
    await this.#scene.retire(this.#hand)
    this.#hand = await this.#scene.addWorker(source, 'here', undefined, 1)
    this.#claimed = await ShowcaseCommand.#begin(this.#scene, this.#hand)
    this.#hand.claims = [this.#claimed]
    await this.#startExecution()
  }

  /** Its log is written, and it is heard once more. */
  async flush(): Promise<void> {
    await this.#scene.heartbeat(this.#hand)
    writeFileSync(this.#places.logPath, this.#lines.join(''), { mode: 0o600 })
  }

  async #startExecution(): Promise<void> {
    const { store } = this.#scene
    this.#execution = newId()
    await (
      await store.extend(COMMAND_STORE)
    ).startExecution({
      id: this.#execution,
      run: this.run,
      worker: this.#hand.worker,
      host: this.#hand.host,
      command: ['python', 'scrape.py', '--portal', this.#scene.text('immo')],
      outputDir: this.#places.outputDir,
      log: this.#places.logPath,
      startedAt: await store.now(),
      end: null,
    })
  }

  #line(minute: number, stream: string, text: string): void {
    const at = new Date(Date.now() - (MINUTES - minute) * MINUTE_MS).toISOString()
    const safe = this.#scene.text(text).replaceAll(/[\r\n]/g, ' ')
    this.#lines.push(`${at} ${stream} ${safe}\n`)
  }
}

const JOURNAL_TARGETS = 60

/** The last events of a run, as one of its workers would have recorded them. */
async function writeJournal(store: Store, run: RunId, folder: string): Promise<void> {
  const worker = newId()
  const statuses = ['in_progress', 'done', 'failed'] as const
  const { items } = await store.targets(run, { statuses, limit: JOURNAL_TARGETS })
  const events = items.flatMap(({ id, key, page, status, lastError, lastActivityAt }) => {
    const of = { run, target: id, key }
    const saved: UnstuckEvent = { type: 'page_complete', ...of, page, items: 3 }
    const error = lastError ?? ''
    const failed: UnstuckEvent = { type: 'target_error', ...of, page, error, retryInMs: null }
    const done: UnstuckEvent = { type: 'target_complete', ...of, page }
    const last = { done: [saved, done], failed: [failed], in_progress: [saved] }[
      status as (typeof statuses)[number]
    ]
    return last.map((event) => ({ time: iso(lastActivityAt), worker, ...event }))
  })
  const lines = events
    .toSorted((a, b) => a.time.localeCompare(b.time))
    .map((event) => `${safeJson(event)}\n`)
  mkdirSync(join(folder, 'journal'), { recursive: true })
  const { source } = (await store.run(run))!
  const path = join(folder, 'journal', journalName(source, worker, process.pid))
  writeFileSync(path, lines.join(''), { mode: 0o600 })
}

async function pickTargets(store: Store, run: RunId): Promise<Omit<Showcase['targets'], 'stuck'>> {
  const first = async (status: 'in_progress' | 'done' | 'failed' | 'parked'): Promise<TargetId> => {
    const { items } = await store.targets(run, { statuses: [status], limit: 1 })
    return items[0]!.id
  }
  return {
    inProgress: await first('in_progress'),
    done: await first('done'),
    failed: await first('failed'),
    parked: await first('parked'),
  }
}

/** The living keep beating, whatever they do besides. */
function startHeartbeats(simulation: Simulation): { stop(): Promise<void> } {
  const alive = simulation.workers.filter(({ isLocal }) => isLocal)
  let last = Promise.resolve()
  const beat = async (): Promise<void> => {
    // A database that is away is not what a showcase is about.
    for (const simulated of alive) await simulation.heartbeat(simulated).catch(() => {})
  }
  const timer = setInterval(() => {
    last = last.then(beat)
  }, DEFAULT_POLICY.heartbeatMs).unref()
  return {
    async stop() {
      clearInterval(timer)
      await last
    },
  }
}

/** Where the output of wrapped commands goes: beside a database file, else where it goes again. */
function openFolder(url: string): { path: string; remove(): void } {
  if (url.startsWith('sqlite:')) return { path: dataFolder(url, process.cwd()), remove: () => {} }
  const path = mkdtempSync(join(tmpdir(), 'unstuck-showcase-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

function fileAddress({ engine, location }: Store): string {
  if (engine === 'sqlite') return `sqlite:${location}`
  throw new UsageError('The address of a server holds a password: give it as `url`.')
}

const PAGE_INTERVAL_MS = 10_000

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    options: { hostile: { type: 'boolean' }, once: { type: 'boolean' } },
    allowPositionals: true,
  })
  const [url] = positionals
  if (url === undefined) {
    throw new UsageError('Usage: node src/testing/showcase.ts DB-URL [--hostile] [--once]')
  }
  const store = await openStore(url)
  const showcase = await fillShowcase(store, { url, hostile: values.hostile ?? false })
  for (const [what, run] of Object.entries(showcase.runs)) {
    console.log(`${shortId(run)}  ${what}`)
  }
  if (!values.once) {
    console.log('Its workers live until Ctrl-C, and the healthy ones save pages.')
    const stopped = untilInterrupted()
    while (!stopped.aborted) {
      await sleep(PAGE_INTERVAL_MS, undefined, { signal: stopped }).catch(() => {})
      if (!stopped.aborted) await showcase.saveMorePages()
    }
  }
  await showcase[Symbol.asyncDispose]()
  await store.close()
}

if (import.meta.main) await main()
