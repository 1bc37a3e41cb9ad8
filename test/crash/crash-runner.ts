import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import type { Run } from '../../src/core/model/run.ts'
import type { Store } from '../../src/core/store/store.ts'
import type { TestDatabase } from '../../src/testing/test-database.ts'
import { seededRandom, type Random } from './random.ts'
import { startSite, type Site } from './site.ts'

export type CrashTestOptions = {
  readonly kills: number
  readonly seed: number
  readonly workers?: number
  readonly log?: (line: string) => void
}

export type Phase = 'claim' | 'fetch' | 'commit' | 'recovery'

export type CrashTestReport = {
  readonly seed: number
  readonly run: Run
  readonly site: Site
  readonly kills: Record<Phase, number>
  /**
   * From each kill to the next claim of the target that the killed process held; from the last kill of a process that
   * was free to take it, where that one was killed too.
   */
  readonly recoveriesMs: number[]
  /** From each kill until its target could be claimed again. */
  readonly claimableMs: number[]
  /** Why recovery took each target back. */
  readonly reasons: string[]
  readonly ledger: { target: string; page: number }[]
  readonly items: Set<string>
}

const BIN = fileURLToPath(new URL('../../bin/unstuck.js', import.meta.url))
const CRAWL = fileURLToPath(new URL('./crawl.ts', import.meta.url))
const SELF_KILL_MODULE = new URL('./self-kill.ts', import.meta.url).href
/** Phases too short to be hit from outside: there the process ends by its own hand. */
const SELF_KILLS = ['recovery', 'claim', 'commit'] as const
type SelfKill = (typeof SELF_KILLS)[number]
const SELF_KILLS_AT_ONCE = 2
/** The kills here are not the targets' fault. */
const POLICY = { ...DEFAULT_POLICY, maxCrashes: 1_000 }
/** Ends a storm in which some phase cannot be hit: its test then fails and names the phase. */
const MAX_ATTEMPTS_PER_KILL = 3
/** How many targets keep the storm going until its kills are used up. */
const TARGETS_PER_KILL = 2.2

/** A crawl by real processes that are killed with -9 again and again, in every phase of their work. */
export async function runCrashTest(
  db: TestDatabase,
  options: CrashTestOptions,
): Promise<CrashTestReport> {
  const { kills, seed, workers = 4, log = () => {} } = options
  const random = seededRandom(seed)
  const site = await startSite(Math.max(10, Math.round(kills * TARGETS_PER_KILL)))
  const store = await db.open()
  await db.raw('CREATE TABLE ledger (target TEXT NOT NULL, page INTEGER NOT NULL)')
  const runId = newId()
  await store.enqueue({ id: runId, source: 'crash', kind: 'crawl', policy: POLICY })
  const storm = new CrashRunner({ db, store, site, random, kills, log })
  try {
    void storm.killWorkers()
    await Promise.all(Array.from({ length: workers }, () => storm.keepWorkerRunning()))
  } finally {
    storm.end()
    await Promise.all(storm.recoveryWatches)
    await site.close()
  }
  const ledger = (await db.raw('SELECT target, page FROM ledger')) as {
    target: string
    page: number
  }[]
  return {
    seed,
    site,
    run: (await store.run(runId))!,
    kills: storm.counts,
    recoveriesMs: storm.recoveriesMs,
    claimableMs: storm.claimableMs,
    reasons: storm.reasons,
    ledger,
    items: await allItems(store),
  }
}

type CrashTestSetup = {
  readonly db: TestDatabase
  readonly store: Store
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
  readonly #alive = new Set<ChildProcess>()
  /** When processes that held nothing were killed. */
  readonly #idleKilledAt: number[] = []
  /** Those that will end by their own hand. */
  readonly #selfKilling = new Set<ChildProcess>()
  /** Those that were killed from outside. */
  readonly #killed = new Set<ChildProcess>()
  #plannedSelfKills = 0
  #isOver = false

  constructor(world: CrashTestSetup) {
    this.#setup = world
  }

  /** Starts a worker again each time it is killed, until one comes to its own end. */
  async keepWorkerRunning(): Promise<void> {
    while (true) {
      const fate = this.#nextSelfKill()
      const child = this.#spawn(fate)
      if (fate !== null) this.#selfKilling.add(child)
      const [code, signal] = (await once(child, 'exit')) as [number | null, string | null]
      const killedAt = Date.now()
      this.#alive.delete(child)
      this.#selfKilling.delete(child)
      if (signal !== 'SIGKILL') {
        if (code !== 0)
          throw new Error(`a worker ended with exit code ${code} (seed ${this.#setup.random.seed})`)
        // It outlived what was planned for it: the work was done first.
        return
      }
      this.counts[this.#killed.has(child) ? 'fetch' : (fate ?? 'fetch')]++
      this.recoveryWatches.push(this.#watchRecovery(child.pid!, killedAt))
    }
  }

  /** Kills workers from outside, each in the middle of a page, until every phase has been hit. Then the crawl may end. */
  async killWorkers(): Promise<void> {
    const { site, random, kills } = this.#setup
    while (
      !this.#isOver &&
      !this.#hasEnoughKills() &&
      this.#killed.size < MAX_ATTEMPTS_PER_KILL * kills
    ) {
      await sleep(random.between(300, 800))
      const fetching = [...this.#alive].filter((child) => site.isFetching(child.pid!))
      // A worker that waits for its own kill is spared while there is another.
      const spared = fetching.filter((child) => !this.#selfKilling.has(child))
      const candidates = spared.length > 0 ? spared : fetching
      if (candidates.length === 0) continue
      const child = random.pick(candidates)
      this.#killed.add(child)
      child.kill('SIGKILL')
    }
    site.release()
  }

  end(): void {
    this.#isOver = true
    for (const child of this.#alive) child.kill('SIGKILL')
  }

  #hasEnoughKills(): boolean {
    const counts = Object.values(this.counts)
    const total = counts.reduce((sum, count) => sum + count, 0)
    return total >= this.#setup.kills && counts.every((count) => count > 0)
  }

  /** Few at a time: a worker that is killed together with all the others leaves none that could take up its work. */
  #nextSelfKill(): SelfKill | null {
    if (this.#hasEnoughKills() || this.#selfKilling.size >= SELF_KILLS_AT_ONCE) return null
    // Each phase in its turn, so that none is left out by chance.
    return SELF_KILLS[this.#plannedSelfKills++ % SELF_KILLS.length]!
  }

  #spawn(selfKill: SelfKill | null): ChildProcess {
    const { db, site, random } = this.#setup
    const nth = random.between(1, selfKill === 'recovery' ? 3 : 25)
    const child = spawn(
      process.execPath,
      ['--import', SELF_KILL_MODULE, BIN, 'work', CRAWL, '--drain', '--no-start'],
      {
        stdio: ['ignore', 'ignore', process.env['CRASH_DEBUG'] ? 'inherit' : 'ignore'],
        env: {
          ...process.env,
          UNSTUCK_DB: db.url,
          CRASH_DB: db.url,
          CRASH_SITE: site.url,
          CRASH_TARGETS: String(site.targets),
          CRASH_FATE: selfKill === null ? '' : `${selfKill}:${nth}`,
        },
      },
    )
    this.#alive.add(child)
    return child
  }

  async #watchRecovery(pid: number, killedAt: number): Promise<void> {
    const { store } = this.#setup
    const dead = (await store.observations()).find(({ worker }) => worker.process.pid === pid)
    const held = dead ? await store.claimsOf(dead.worker.id, null, 10) : []
    if (held.length === 0) this.#idleKilledAt.push(killedAt)
    for (const { target: before } of held) {
      while (!this.#isOver) {
        const target = (await store.target(before.id))!
        if (target.epoch > before.epoch) {
          // A target that was done or released since then has no claim to look at; its last sign is later still.
          const takenAt = target.claimedAt ?? target.lastActivityAt
          const since = this.#idleKilledAt.filter((at) => at > killedAt && at < takenAt)
          const tookMs = takenAt - Math.max(killedAt, ...since)
          this.recoveriesMs.push(tookMs)
          const trail = await store.audit({ run: before.run, target: before.id, limit: 1_000 })
          const judged = trail.find(({ at }) => at >= killedAt)
          const seenMs = judged ? judged.at - killedAt : null
          if (seenMs !== null) this.claimableMs.push(seenMs)
          if (judged) this.reasons.push(judged.because)
          this.#setup.log(
            `process ${pid} killed; ${target.key} taken back after ${seenMs} ms, taken up after ${takenAt - killedAt} ms` +
              (since.length > 0 ? ` (${tookMs} ms after the last kill of who was free)` : ''),
          )
          break
        }
        await sleep(15)
      }
    }
  }
}

async function allItems(store: Store): Promise<Set<string>> {
  const keys = new Set<string>()
  let after: string | null = null
  for (;;) {
    const items = await store.items('crash', after, 1_000)
    for (const item of items) keys.add(item.key)
    if (items.length < 1_000) return keys
    after = items.at(-1)!.key
  }
}
