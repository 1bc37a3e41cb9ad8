import { pause, until } from './demo/pause.ts'
import { isLive } from '../../core/model/run.ts'
import { inWords } from '../../core/model/time.ts'
import { isAlive, type Member } from '../../core/host/process-tree.ts'
import { plural } from '../../presenters/format.ts'
import { isAllDone } from './compare.ts'
import type { Life, LifeEnd } from './process-run.ts'
import { readRuns } from './outcome.ts'
import { Recoveries } from './recoveries.ts'
import { countPages, lastWords, neverEnded, type Reference } from './reference.ts'
import { delayOf, makeSchedule, withinFor, type Blow, type Signal } from './schedule.ts'
import type { Place } from './scratch.ts'
import { longestLeaseMs, Sleepers } from './paused-processes.ts'
import type { Lives, Problem, Trial } from './trial.ts'

export const KILLS = 10

/** A blow that hit somebody. */
export type Kill = {
  readonly signal: Signal
  readonly moment: Blow['moment']
  /** Since the start of that life. */
  readonly afterMs: number
  /** Saved by then. */
  readonly pages: number
  /** How many got it. */
  readonly processes: number
}

/** What was done to the command, and how it bore it. */
export type Deeds = {
  readonly kills: readonly Kill[]
  /** How often it was started. */
  readonly starts: number
  readonly withinMs: number
  /** From a kill to the next claim of what the dead one held, the new start included. */
  readonly takenUpMs: readonly number[]
  /** How often recovery did what to a target. */
  readonly recoveries: Readonly<Record<string, number>>
  readonly tookMs: number
  /** Times it did not stop when asked, and was killed. */
  readonly forced: number
  /** It was done before the kills were. */
  readonly isDoneEarly: boolean
  /** Why it was given up; null when it came to its end. */
  readonly problem: Problem | null
}

const LOOK_EVERY_MS = 20
const SHOW_EVERY_MS = 100
const RESTART_MS = 500
/** As long as process managers wait after SIGTERM. */
const STOP_MS = 30_000
/** Beyond two leases: for so long it may end by itself again and again without saving anything. */
const UNAIDED_MS = 15_000
const UNAIDED_MIN = 3

/** Kills the command again and again, starts it again, and lets it finish in the end. */
export class Storm {
  readonly #trial: Trial
  readonly #place: Place
  readonly #lives: Lives
  readonly #reference: Reference
  readonly #recoveries: Recoveries
  readonly #sleepers: Sleepers
  readonly #withinMs: number
  /** Fires when `--for` has passed. */
  readonly #enough: AbortSignal
  readonly #kills: Kill[] = []
  #life!: Life
  #deadline!: AbortSignal
  #pagesBefore = 0
  #isFresh = true
  #starts = 0
  #forced = 0
  #unaided = { since: 0, times: 0, pages: -1 }
  #isOver = false
  #problem: Problem | null = null

  constructor(trial: Trial, place: Place, lives: Lives, reference: Reference) {
    this.#trial = trial
    this.#place = place
    this.#lives = lives
    this.#reference = reference
    this.#recoveries = new Recoveries(place.store)
    this.#sleepers = new Sleepers(place.store, trial.progress)
    this.#withinMs = trial.withinMs ?? withinFor(reference.pace, trial.kills ?? KILLS)
    this.#enough =
      trial.forMs === undefined ? new AbortController().signal : AbortSignal.timeout(trial.forMs)
  }

  /** Until the command has come to its end, was given up, or somebody pressed Ctrl-C. */
  async play(): Promise<Deeds> {
    const startedAt = performance.now()
    const over = new AbortController()
    const watching = this.#recoveries.watch(over.signal)
    try {
      await this.#begin()
      for (const blow of makeSchedule(this.#trial.seed, this.#trial.signal)) {
        if (this.#isEnough || !(await this.#reach(blow))) break
        await this.#deal(blow)
        if (this.#isOver) break
      }
      const isDoneEarly = this.#isOver && !this.#isEnough && this.#problem === null
      while (!this.#isOver) await this.#toTheEnd()
      const tookMs = performance.now() - startedAt
      over.abort()
      await watching
      await this.#recoveries.look()
      return this.#deeds(tookMs, isDoneEarly)
    } finally {
      this.#sleepers.wakeAll()
      over.abort()
    }
  }

  get #isEnough(): boolean {
    const { kills = this.#trial.forMs === undefined ? KILLS : Infinity } = this.#trial
    return this.#enough.aborted || this.#kills.length >= kills
  }

  #deeds(tookMs: number, isDoneEarly: boolean): Deeds {
    return {
      kills: this.#kills,
      starts: this.#starts,
      withinMs: this.#withinMs,
      takenUpMs: this.#recoveries.takenUpMs,
      recoveries: this.#recoveries.byAction,
      tookMs,
      forced: this.#forced,
      isDoneEarly,
      problem: this.#problem,
    }
  }

  async #begin(): Promise<void> {
    this.#pagesBefore = await countPages(this.#place)
    this.#life = await this.#lives.start(this.#place)
    this.#deadline = AbortSignal.timeout(this.#trial.timeoutMs)
    this.#isFresh = true
    this.#starts++
  }

  /** Waits for the blow's moment, with a new start where the command ends before it. False: there will be none. */
  async #reach(blow: Blow): Promise<boolean> {
    for (;;) {
      if (await this.#isDue(blow)) return true
      if (this.#enough.aborted) return false
      await this.#afterEnd()
      if (this.#isOver) return false
    }
  }

  async #isDue(blow: Blow): Promise<boolean> {
    const { pace } = this.#reference
    const over = AbortSignal.any([this.#overOrLate, this.#enough])
    // A command that saves no pages at all is hit by the clock alone.
    const waitsForPage = pace.pages > 0 && (blow.moment === 'work' || !this.#isFresh)
    if (waitsForPage) {
      const hasSaved = async (): Promise<boolean> => (await this.#look()) > this.#pagesBefore
      await until(hasSaved, { everyMs: LOOK_EVERY_MS, atMostMs: Infinity, over })
    }
    await this.#lookOn(delayOf(blow, pace.startMs, this.#withinMs), over)
    // Done, and about to end: a kill would disturb nothing, and a new start would begin it all again.
    if (!over.aborted && (await this.#isAllDone())) await this.#end()
    return !over.aborted && this.#life.isRunning
  }

  async #lookOn(forMs: number, over: AbortSignal): Promise<void> {
    const end = performance.now() + forMs
    for (let left = forMs; left > 0 && !over.aborted; left = end - performance.now()) {
      await this.#look()
      await pause(Math.max(0, Math.min(SHOW_EVERY_MS, end - performance.now())), over)
    }
  }

  async #deal({ signal, moment, pick }: Blow): Promise<void> {
    const { store } = this.#place
    const life = this.#life
    const [at, pages] = [await store.now(), await countPages(this.#place)]
    const members = life.choose(this.#trial.whom, pick)
    const afterMs = Math.round(performance.now() - life.startedAt)
    const processes = life.signal(signal, members)
    // It had ended by itself just before.
    if (processes === 0) return
    this.#recoveries.killedAt(at)
    this.#kills.push({ signal, moment, afterMs, pages, processes })
    this.#tellKill()
    if (signal === 'SIGSTOP') {
      await this.#sleepers.add(life, members)
      return this.#begin()
    }
    await this.#untilGone(life, members, signal)
    if (life.isRunning) {
      this.#pagesBefore = await countPages(this.#place)
      this.#isFresh = false
    } else if (await this.#isAllDone()) this.#isOver = true
    else if (!this.#trial.interrupted.aborted) await this.#begin()
  }

  async #untilGone(life: Life, members: readonly Member[], signal: Signal): Promise<void> {
    const { whom, interrupted } = this.#trial
    if (signal === 'SIGKILL' && whom === 'all') await life.kill()
    else {
      const left = (): readonly Member[] =>
        whom === 'all' ? life.members() : members.filter(isAlive)
      const isGone = await until(async () => left().length === 0, {
        everyMs: LOOK_EVERY_MS,
        atMostMs: STOP_MS,
        over: interrupted,
      })
      if (!isGone && !interrupted.aborted) {
        this.#forced++
        this.#trial.progress.tell(`not stopped ${inWords(STOP_MS)} after ${signal}: killed`)
        await life.kill()
      }
    }
    await life.noticed()
  }

  async #toTheEnd(): Promise<void> {
    await this.#lookOn(Infinity, this.#overOrLate)
    await this.#afterEnd()
  }

  /** The command ended by itself, or it takes too long, or it was Ctrl-C. Starts it again where it is to go on. */
  async #afterEnd(): Promise<void> {
    const end = await this.#end()
    if (this.#trial.interrupted.aborted) this.#isOver = true
    else if (!end) this.#giveUp(neverEnded(this.#trial.timeoutMs, this.#place))
    else if (await this.#isFinished(end)) this.#isOver = true
    else if (await this.#isHopeless())
      this.#giveUp(endsAgain(end, this.#unaided.times, this.#place))
    else {
      await pause(RESTART_MS, this.#trial.interrupted)
      if (!this.#trial.interrupted.aborted) await this.#begin()
    }
  }

  /** Null when it did not end in time. */
  #end(): Promise<LifeEnd | null> {
    return this.#life.endedBefore(AbortSignal.any([this.#deadline, this.#trial.interrupted]))
  }

  /** It says that it is done, and the database does not contradict. */
  async #isFinished({ code }: LifeEnd): Promise<boolean> {
    const runs = await readRuns(this.#place.store)
    if (code === 0) return runs.length > 0 && runs.every(({ status }) => !isLive(status))
    // Killed, by a blow at another of its processes, with all work done.
    return this.#kills.length > 0 && isAllDone(this.#reference.outcome.runs, runs)
  }

  async #isAllDone(): Promise<boolean> {
    return isAllDone(this.#reference.outcome.runs, await readRuns(this.#place.store))
  }

  /** Ended by itself again and again for longer than it takes to be free of a dead copy, and nothing was saved. */
  async #isHopeless(): Promise<boolean> {
    const pages = await countPages(this.#place)
    const now = performance.now()
    if (pages !== this.#unaided.pages) this.#unaided = { since: now, times: 0, pages }
    this.#unaided.times++
    const { times, since } = this.#unaided
    return (
      times >= UNAIDED_MIN &&
      now - since > UNAIDED_MS + 2 * (await longestLeaseMs(this.#place.store))
    )
  }

  #giveUp(problem: Problem): void {
    this.#problem = problem
    this.#isOver = true
  }

  get #overOrLate(): AbortSignal {
    return AbortSignal.any([this.#life.over, this.#deadline, this.#trial.interrupted])
  }

  /** Pages saved so far, and the line that says so. */
  async #look(): Promise<number> {
    const pages = await countPages(this.#place)
    const { kills } = this.#trial
    const of = kills === undefined && this.#trial.forMs !== undefined ? '' : ` of ${kills ?? KILLS}`
    this.#trial.progress.show(
      `${pages} of ${this.#reference.pace.pages} pages, ${this.#kills.length}${of} kills`,
    )
    return pages
  }

  #tellKill(): void {
    const { signal, moment, afterMs, pages, processes } = this.#kills.at(-1)!
    const whom = processes > 1 ? ` to ${processes} processes` : ''
    const when = moment === 'start' && this.#isFresh ? 'while it started' : 'at work'
    this.#trial.progress.tell(
      `kill ${this.#kills.length}: ${signal}${whom} ${when}, ${inWords(afterMs)} after its start, ${plural(pages, 'page')} saved`,
    )
  }
}

function endsAgain({ code, signal }: LifeEnd, times: number, place: Place): Problem {
  return {
    what: 'does-not-go-on',
    says: `After a kill the command ended by itself with ${signal ?? `exit code ${code}`}, ${times} times in a row, and saved nothing more.`,
    count: 1,
    examples: lastWords(place),
    hint: 'Started again after a kill it must go on by itself; what it said is in its log.',
  }
}
