import { pollUntil } from './poll.ts'
import { REAL_CLOCK } from '../../core/host/clock.ts'
import { isLive } from '../../core/model/run.ts'
import { humanizeDuration } from '../../core/model/time.ts'
import { isAlive, type ProcessRef } from '../../lib/process/process-tree.ts'
import { plural } from '../../presenters/format.ts'
import { isAllDone } from './compare.ts'
import {
  longestLeaseMs,
  PausedProcesses,
  type ProcessExit,
  type ProcessRun,
  type ProcessRuns,
} from './process-run.ts'
import { readRuns } from './outcome.ts'
import { RecoveryTracker } from './recovery-tracker.ts'
import { countPages, logTail, timeoutProblem, type Reference } from './reference.ts'
import { delayMsOf, makeSchedule, defaultWithinMs, type Fault, type Signal } from './schedule.ts'
import type { PhaseContext } from './scratch.ts'
import { DEFAULT_KILLS, makeProblem, type Problem, type Trial } from './trial.ts'

/** A fault that reached a process. */
export type Kill = {
  readonly signal: Signal
  readonly moment: Fault['moment']
  /** Since the start of that copy. */
  readonly afterMs: number
  /** Pages saved by then. */
  readonly pages: number
  /** How many processes got it. */
  readonly processes: number
}

/** The injected faults, and what became of the command. */
export type InjectionResult = Pick<
  ChaosRunner,
  | 'kills'
  | 'starts'
  | 'forced'
  | 'withinMs'
  | 'tookMs'
  | 'isDoneEarly'
  | 'problem'
  | 'reclaimedMs'
  | 'recoveries'
>

const POLL_MS = 20
const STATUS_INTERVAL_MS = 100
const RESTART_MS = 500
/** As long as process managers wait after SIGTERM. */
const STOP_MS = 30_000
/** Beyond two leases: how long the command may end again and again without saving anything. */
const NO_PROGRESS_MS = 15_000
const NO_PROGRESS_EXITS = 3

/** Kills the command again and again, restarts it, and lets it finish in the end. */
export class ChaosRunner {
  readonly kills: Kill[] = []
  /** How often it was started. */
  starts = 0
  /** How often it did not stop after a signal, and was killed. */
  forced = 0
  /** Longest time from the first page after a start to the kill. */
  readonly withinMs: number
  tookMs = 0
  /** It was done before all kills were injected. */
  isDoneEarly = false
  /** Why the trial was aborted; null when the command came to its end. */
  problem: Problem | null = null
  /** From a kill to the next claim of a target that was held, including the restart. */
  readonly reclaimedMs: readonly number[]
  /** Number of verdicts on targets, by action. */
  readonly recoveries: Readonly<Record<string, number>>
  readonly #trial: Trial
  readonly #phase: PhaseContext
  readonly #processes: ProcessRuns
  readonly #reference: Reference
  readonly #tracker: RecoveryTracker
  readonly #paused: PausedProcesses
  /** Fires when `--duration` has passed. */
  readonly #timeUp: AbortSignal
  #run!: ProcessRun
  #deadline!: AbortSignal
  #pagesBefore = 0
  #isFresh = true
  #noProgress = { since: 0, times: 0, pages: -1 }
  #isOver = false

  constructor(trial: Trial, phase: PhaseContext, processes: ProcessRuns, reference: Reference) {
    this.#trial = trial
    this.#phase = phase
    this.#processes = processes
    this.#reference = reference
    this.#tracker = new RecoveryTracker(phase.store)
    this.reclaimedMs = this.#tracker.reclaimedMs
    this.recoveries = this.#tracker.byAction
    this.#paused = new PausedProcesses(phase.store, trial.progress)
    this.withinMs =
      trial.within ?? defaultWithinMs(reference.timing, trial.killsAsked ?? DEFAULT_KILLS)
    this.#timeUp =
      trial.duration === undefined
        ? new AbortController().signal
        : AbortSignal.timeout(trial.duration)
  }

  /** Runs until the command has come to its end, makes no progress, or Ctrl-C. */
  async run(): Promise<void> {
    const startedAt = performance.now()
    const over = new AbortController()
    const tracking = this.#tracker.watch(over.signal)
    try {
      await this.#start()
      for (const fault of makeSchedule(this.#trial.seed, this.#trial.signal)) {
        if (this.#hasEnoughKills || !(await this.#waitUntilDue(fault))) break
        await this.#inject(fault)
        if (this.#isOver) break
      }
      this.isDoneEarly = this.#isOver && !this.#hasEnoughKills && this.problem === null
      while (!this.#isOver) await this.#runToEnd()
      this.tookMs = performance.now() - startedAt
      over.abort()
      await tracking
      await this.#tracker.update()
    } finally {
      this.#paused.resumeAll()
      over.abort()
    }
  }

  get #hasEnoughKills(): boolean {
    return this.#timeUp.aborted || this.kills.length >= (this.#trial.killsAsked ?? Infinity)
  }

  async #start(): Promise<void> {
    this.#pagesBefore = await countPages(this.#phase)
    this.#run = await this.#processes.start(this.#phase)
    this.#deadline = AbortSignal.timeout(this.#trial.maxDuration)
    this.#isFresh = true
    this.starts++
  }

  /** Waits until the fault is due; restarts the command if it ends before. Returns false if the fault is no longer due. */
  async #waitUntilDue(fault: Fault): Promise<boolean> {
    for (;;) {
      if (await this.#isDue(fault)) return true
      if (this.#timeUp.aborted) return false
      await this.#handleExit()
      if (this.#isOver) return false
    }
  }

  async #isDue(fault: Fault): Promise<boolean> {
    const { timing } = this.#reference
    const over = AbortSignal.any([this.#exitOrTimeout, this.#timeUp])
    // For a command that saves no pages, only the time counts.
    const waitsForPage = timing.pages > 0 && (fault.moment === 'work' || !this.#isFresh)
    if (waitsForPage) {
      const hasSaved = async (): Promise<boolean> =>
        (await this.#updateStatus()) > this.#pagesBefore
      await pollUntil(hasSaved, { everyMs: POLL_MS, timeoutMs: Infinity, signal: over })
    }
    await this.#watch(delayMsOf(fault, timing.startMs, this.withinMs), over)
    // Done, and about to end: a kill would prove nothing, and a restart would begin a new run.
    if (!over.aborted && (await this.#isAllDone())) await this.#waitForExit()
    return !over.aborted && this.#run.isRunning
  }

  async #watch(forMs: number, over: AbortSignal): Promise<void> {
    const end = performance.now() + forMs
    for (let left = forMs; left > 0 && !over.aborted; left = end - performance.now()) {
      await this.#updateStatus()
      await REAL_CLOCK.sleep(Math.min(STATUS_INTERVAL_MS, end - performance.now()), over)
    }
  }

  async #inject({ signal, moment, pick }: Fault): Promise<void> {
    const { store } = this.#phase
    const run = this.#run
    const [at, pages] = [await store.now(), await countPages(this.#phase)]
    const processes = run.selectProcesses(this.#trial.whom, pick)
    const afterMs = Math.round(performance.now() - run.startedAt)
    const count = run.signal(signal, processes)
    // It ended by itself just before.
    if (count === 0) return
    this.#tracker.recordKill(at)
    this.kills.push({ signal, moment, afterMs, pages, processes: count })
    this.#logKill()
    if (signal === 'SIGSTOP') {
      await this.#paused.add(run, processes)
      return this.#start()
    }
    await this.#waitUntilGone(run, processes, signal)
    if (run.isRunning) {
      this.#pagesBefore = await countPages(this.#phase)
      this.#isFresh = false
    } else if (await this.#isAllDone()) this.#isOver = true
    else if (!this.#trial.interrupted.aborted) await this.#start()
  }

  async #waitUntilGone(
    run: ProcessRun,
    processes: readonly ProcessRef[],
    signal: Signal,
  ): Promise<void> {
    const { whom, interrupted } = this.#trial
    if (signal === 'SIGKILL' && whom === 'all') await run.kill()
    else {
      const left = (): readonly ProcessRef[] =>
        whom === 'all' ? run.processes() : processes.filter(isAlive)
      const isGone = await pollUntil(async () => left().length === 0, {
        everyMs: POLL_MS,
        timeoutMs: STOP_MS,
        signal: interrupted,
      })
      if (!isGone && !interrupted.aborted) {
        this.forced++
        this.#trial.progress.log(`not stopped ${humanizeDuration(STOP_MS)} after ${signal}: killed`)
        await run.kill()
      }
    }
    await run.waitIfDead()
  }

  async #runToEnd(): Promise<void> {
    await this.#watch(Infinity, this.#exitOrTimeout)
    await this.#handleExit()
  }

  /** Handles the end of the command, a timeout and Ctrl-C. Restarts the command if work is left. */
  async #handleExit(): Promise<void> {
    const end = await this.#waitForExit()
    if (this.#trial.interrupted.aborted) this.#isOver = true
    else if (!end) this.#giveUp(timeoutProblem(this.#trial.maxDuration, this.#phase))
    else if (await this.#isFinished(end)) this.#isOver = true
    else if (await this.#makesNoProgress())
      this.#giveUp(noProgressProblem(end, this.#noProgress.times, this.#phase))
    else {
      await REAL_CLOCK.sleep(RESTART_MS, this.#trial.interrupted)
      if (!this.#trial.interrupted.aborted) await this.#start()
    }
  }

  /** Null when it did not end in time. */
  #waitForExit(): Promise<ProcessExit | null> {
    return this.#run.exitedBefore(AbortSignal.any([this.#deadline, this.#trial.interrupted]))
  }

  /** Whether the exit code and the database both show that all work is done. */
  async #isFinished({ code }: ProcessExit): Promise<boolean> {
    const runs = await readRuns(this.#phase.store)
    if (code === 0) return runs.length > 0 && runs.every(({ status }) => !isLive(status))
    // Killed through another of its processes, with all work done.
    return this.kills.length > 0 && isAllDone(this.#reference.outcome.runs, runs)
  }

  async #isAllDone(): Promise<boolean> {
    return isAllDone(this.#reference.outcome.runs, await readRuns(this.#phase.store))
  }

  /** Whether it ended again and again without saving, for longer than a dead copy can block it. */
  async #makesNoProgress(): Promise<boolean> {
    const pages = await countPages(this.#phase)
    const now = performance.now()
    if (pages !== this.#noProgress.pages) this.#noProgress = { since: now, times: 0, pages }
    this.#noProgress.times++
    const { times, since } = this.#noProgress
    return (
      times >= NO_PROGRESS_EXITS &&
      now - since > NO_PROGRESS_MS + 2 * (await longestLeaseMs(this.#phase.store))
    )
  }

  #giveUp(problem: Problem): void {
    this.problem = problem
    this.#isOver = true
  }

  get #exitOrTimeout(): AbortSignal {
    return AbortSignal.any([this.#run.exitSignal, this.#deadline, this.#trial.interrupted])
  }

  /** Shows the status line. Returns the number of pages saved so far. */
  async #updateStatus(): Promise<number> {
    const pages = await countPages(this.#phase)
    const { killsAsked } = this.#trial
    const of = killsAsked === null ? '' : ` of ${killsAsked}`
    this.#trial.progress.showStatus(
      `${pages} of ${this.#reference.timing.pages} pages, ${this.kills.length}${of} kills`,
    )
    return pages
  }

  #logKill(): void {
    const { signal, moment, afterMs, pages, processes } = this.kills.at(-1)!
    const whom = processes > 1 ? ` to ${processes} processes` : ''
    const when = moment === 'start' && this.#isFresh ? 'while it started' : 'at work'
    this.#trial.progress.log(
      `kill ${this.kills.length}: ${signal}${whom} ${when}, ${humanizeDuration(afterMs)} after its start, ${plural(pages, 'page')} saved`,
    )
  }
}

function noProgressProblem(
  { code, signal }: ProcessExit,
  times: number,
  phase: PhaseContext,
): Problem {
  return makeProblem(
    'does-not-go-on',
    `After a kill the command ended by itself with ${signal ?? `exit code ${code}`}, ${times} times in a row, and saved nothing.`,
    'It must continue by itself when it is started again; its log has its output.',
    logTail(phase),
  )
}
