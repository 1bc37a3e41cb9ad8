import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId, type RunId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import type { Store } from '../../src/core/store/store.ts'
import { readResults, type SavedResults } from '../../src/features/chaos/demo/report.ts'
import { makeDirectory, Site, type Directory } from '../../src/features/chaos/demo/site.ts'
import { takeSnapshot } from '../../src/features/chaos/demo/worker-pool.ts'
import { openLedger } from '../../src/features/chaos/ledger.ts'
import { ProcessRun } from '../../src/features/chaos/process-run.ts'
import { makeRandom, type Random } from '../../src/features/chaos/random.ts'
import { readRecovery } from '../../src/features/chaos/recovery-tracker.ts'
import type { TestDatabase } from '../../src/testing/test-database.ts'

export type CrashTestOptions = {
  readonly kills: number
  readonly seed: number
  readonly workers?: number
  readonly log?: (line: string) => void
}

export type Phase = 'claim' | 'fetch' | 'commit' | 'recovery'

export type CrashTestReport = {
  readonly seed: number
  readonly expected: Directory
  readonly results: SavedResults
  readonly kills: Record<Phase, number>
  /**
   * From each kill to the next claim of the target that the killed process held; from the last kill of an idle process
   * that could have claimed it, if that was later.
   */
  readonly recoveriesMs: number[]
  /** From each kill until its target could be claimed again. */
  readonly claimableMs: number[]
  /** The reasons of the verdicts on these targets. */
  readonly reasons: string[]
}

const BIN = fileURLToPath(new URL('../../bin/unstuck.js', import.meta.url))
const CRAWL = fileURLToPath(new URL('./crawl.ts', import.meta.url))
const SELF_KILL_MODULE = new URL('./self-kill.ts', import.meta.url).href
const SOURCE = 'crash'
/** Phases too short to be hit from outside: there the process kills itself. */
const SELF_KILLS = ['recovery', 'claim', 'commit'] as const
type SelfKill = (typeof SELF_KILLS)[number]
/** The statement of its phase at which a process kills itself, at most: a worker makes few claims and many commits. */
const STATEMENTS_MAX: Record<SelfKill, number> = { recovery: 3, claim: 10, commit: 25 }
const SELF_KILLS_AT_ONCE = 2
/** The kills here are not the targets' fault. */
const POLICY = { ...DEFAULT_POLICY, maxCrashes: 1_000 }
/** Ends a test in which some phase cannot be hit: it then fails and names the phase. */
const MAX_ATTEMPTS_PER_KILL = 3
/** Enough targets to last until the kills are done. */
const TARGETS_PER_KILL = 2.2
const SLOWDOWN = 0.4

/** Crawls with real processes that are killed with -9 again and again, in every phase of their work. */
export async function runCrashTest(
  db: TestDatabase,
  options: CrashTestOptions,
): Promise<CrashTestReport> {
  const { kills, seed, workers = 4, log = () => {} } = options
  const random = makeRandom(seed)
  const expected = makeDirectory(seed, Math.max(10, Math.round(kills * TARGETS_PER_KILL)))
  const store = await db.open()
  const ledger = await openLedger(store.engine, db.url, SOURCE)
  const site = await Site.open(expected, { slowdown: SLOWDOWN, holdsLastPage: true })
  const run = newId()
  await store.enqueue({ id: run, source: SOURCE, kind: 'crawl', policy: POLICY })
  const runner = new CrashRunner({ db, store, run, site, random, kills, log })
  try {
    void runner.killWorkers()
    await Promise.all(Array.from({ length: workers }, () => runner.keepWorkerRunning()))
    const results = await readResults(store, ledger, run, SOURCE)
    const { counts, recoveriesMs, claimableMs, reasons } = runner
    runner.end()
    await Promise.all(runner.recoveryWatches)
    return { seed, expected, results, kills: counts, recoveriesMs, claimableMs, reasons }
  } finally {
    runner.end()
    await Promise.all(runner.recoveryWatches)
    await Promise.all([site.close(), ledger.close()])
  }
}

type CrashTestSetup = {
  readonly db: TestDatabase
  readonly store: Store
  readonly run: RunId
  readonly site: Site
  readonly random: Random
  readonly kills: number
  readonly log: (line: string) => void
}

class CrashRunner {
  readonly counts: CrashTestReport['kills'] = { claim: 0, fetch: 0, commit: 0, recovery: 0 }
  readonly recoveriesMs: number[] = []
  readonly claimableMs: number[] = []
  readonly reasons: string[] = []
  readonly recoveryWatches: Promise<void>[] = []
  readonly #setup: CrashTestSetup
  readonly #alive = new Set<ProcessRun>()
  /** When processes that held nothing were killed. */
  readonly #idleKilledAt: number[] = []
  /** Processes that will kill themselves. */
  readonly #selfKilling = new Set<ProcessRun>()
  /** Processes that were killed from outside. */
  readonly #killed = new Set<ProcessRun>()
  #plannedSelfKills = 0
  #isOver = false

  constructor(setup: CrashTestSetup) {
    this.#setup = setup
  }

  /** Restarts a worker each time it is killed, until one exits by itself. */
  async keepWorkerRunning(): Promise<void> {
    while (true) {
      const selfKill = this.#nextSelfKill()
      const worker = await this.#start(selfKill)
      if (selfKill !== null) this.#selfKilling.add(worker)
      const { code, signal } = await worker.exited
      const killedAt = Date.now()
      this.#alive.delete(worker)
      this.#selfKilling.delete(worker)
      if (signal !== 'SIGKILL') {
        if (code !== 0)
          throw new Error(`a worker ended with exit code ${code} (seed ${this.#setup.random.seed})`)
        // The work was done before the statement at which it would have killed itself.
        return
      }
      this.counts[this.#killed.has(worker) ? 'fetch' : (selfKill ?? 'fetch')]++
      this.recoveryWatches.push(this.#watchRecovery(worker.pid, killedAt))
    }
  }

  /** Kills workers from outside, each during a page, until every phase has been hit. Then lets the crawl end. */
  async killWorkers(): Promise<void> {
    const { site, random, kills } = this.#setup
    while (
      !this.#isOver &&
      !this.#hasEnoughKills() &&
      this.#killed.size < MAX_ATTEMPTS_PER_KILL * kills
    ) {
      await sleep(random.between(300, 800))
      const fetching = await this.#fetching()
      // A worker that waits for its own kill is spared while there is another.
      const spared = fetching.filter((worker) => !this.#selfKilling.has(worker))
      const candidates = spared.length > 0 ? spared : fetching
      if (candidates.length === 0) continue
      const worker = random.pick(candidates)
      this.#killed.add(worker)
      worker.killNow()
    }
    site.release()
  }

  end(): void {
    this.#isOver = true
    for (const worker of this.#alive) worker.killNow()
  }

  /** Returns the workers that wait for a page now. */
  async #fetching(): Promise<ProcessRun[]> {
    const { store, run, site } = this.#setup
    const { workers, held } = await takeSnapshot(store, run, SOURCE)
    const waits = workers.filter(({ id }) => site.remainingMs(held.get(id)?.key ?? '') > 0)
    const pids = new Set(waits.map(({ process }) => process.pid))
    return [...this.#alive].filter(({ pid }) => pids.has(pid))
  }

  #hasEnoughKills(): boolean {
    const counts = Object.values(this.counts)
    const total = counts.reduce((sum, count) => sum + count, 0)
    return total >= this.#setup.kills && counts.every((count) => count > 0)
  }

  /** Few at a time: if all workers are killed together, none is left to recover their targets. */
  #nextSelfKill(): SelfKill | null {
    if (this.#hasEnoughKills() || this.#selfKilling.size >= SELF_KILLS_AT_ONCE) return null
    // Each phase in turn, so that none is left out by chance.
    return SELF_KILLS[this.#plannedSelfKills++ % SELF_KILLS.length]!
  }

  async #start(selfKill: SelfKill | null): Promise<ProcessRun> {
    const { db, store, site, random } = this.#setup
    const nth = random.between(1, selfKill === null ? 1 : STATEMENTS_MAX[selfKill])
    const node = [process.execPath, '--import', SELF_KILL_MODULE]
    const worker = await ProcessRun.start({
      command: [...node, BIN, 'work', CRAWL, '--drain', '--no-start'],
      logPath: process.env['CRASH_DEBUG'] ? '/dev/stderr' : '/dev/null',
      env: {
        UNSTUCK_DB: db.url,
        UNSTUCK_DEMO_SITE: site.address,
        UNSTUCK_DEMO_SOURCE: SOURCE,
        UNSTUCK_DEMO_ENGINE: store.engine,
        CRASH_FATE: selfKill === null ? '' : `${selfKill}:${nth}`,
      },
    })
    this.#alive.add(worker)
    return worker
  }

  async #watchRecovery(pid: number, killedAt: number): Promise<void> {
    const { store, log } = this.#setup
    const dead = (await store.observations()).find(({ worker }) => worker.process.pid === pid)
    const held = dead ? await store.claimsOf(dead.worker.id, null, 10) : []
    if (held.length === 0) this.#idleKilledAt.push(killedAt)
    for (const { target } of held) {
      let found = await readRecovery(store, target, killedAt)
      while (!found && !this.#isOver) {
        await sleep(15)
        found = await readRecovery(store, target, killedAt)
      }
      if (!found?.recovery) continue
      const { reclaimedMs, claimableMs, because } = found.recovery
      const takenAt = killedAt + reclaimedMs
      const since = this.#idleKilledAt.filter((at) => at > killedAt && at < takenAt)
      const tookMs = takenAt - Math.max(killedAt, ...since)
      this.recoveriesMs.push(tookMs)
      if (because !== null) {
        this.claimableMs.push(claimableMs)
        this.reasons.push(because)
      }
      log(
        `process ${pid} killed; ${target.key} claimable after ${claimableMs} ms, claimed after ${reclaimedMs} ms` +
          (since.length > 0 ? ` (${tookMs} ms after the last kill of an idle worker)` : ''),
      )
    }
  }
}
