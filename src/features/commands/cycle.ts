import { hostname } from 'node:os'
import { readEnding, type StopReason } from './ending.ts'
import { messageOf } from '../../core/model/errors.ts'
import { newId, shortId, type RunId } from '../../core/model/id.ts'
import type { Policy } from '../../core/model/policy.ts'
import type { Run } from '../../core/model/run.ts'
import { redactArguments } from '../../core/model/redact.ts'
import { whenAvailable } from '../../core/store/open.ts'
import { beginRun, claimAgain } from '../../core/worker/begin.ts'
import { REAL_CLOCK, TIMER_MAX_MS } from '../../core/host/clock.ts'
import { RunHandle } from '../../core/worker/run-handle.ts'
import { commandEnvironment } from './environment.ts'
import { makeRunFolder, runFolder } from '../../lib/files/data-folder.ts'
import { CommandRefused, type Charge } from './watchdog.ts'
import type { CommandSpec } from './watchdog-messages.ts'
import { LogFile } from './log-file.ts'
import type { Admission } from './endpoint.ts'
import type { ClaimHost, CommandRunner } from './runner.ts'
import { NEVER_STARTED, recordEnd, settle, unlessHurried, type CycleResult } from './settle-run.ts'

/** What one cycle of a command is to be. */
export type CycleOptions = {
  readonly source: string
  readonly command: readonly string[]
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  readonly policy: Policy
  readonly cookie: string
  /** Where runs keep their output. */
  readonly base: string
  readonly killTimeoutMs: number
  readonly maxDurationMs: number | null
  /** In bytes, of the whole tree. */
  readonly maxMemory: number | null
  /** Null: it is ready when it is started. */
  readonly readyWithinMs: number | null
  readonly logBytes: number
  readonly quiet: boolean
  readonly secrets: readonly string[]
  /** Fires when Unstuck is to stop, with the reason in words. */
  readonly stop: AbortSignal
  /** Fires when there is no more time to be polite. */
  readonly hurry: AbortSignal
  readonly onReady?: (run: RunId) => void
}

const WATCH_GUARD_MS = 2_000
const MEASURE_EVERY_MS = 1_000
const MEASURE_SELDOM_MS = 5_000

/** One cycle: begins or takes up the source's run, starts the command, and settles the run when all of it is gone. */
export async function runCycle(runner: CommandRunner, options: CycleOptions): Promise<CycleResult> {
  const { worker, actor, log } = runner.options
  const { source, policy } = options
  const { life } = runner.guardian
  const store = life.timed(runner.options.store)
  const claimant = { source, worker, policy }
  const begun = await beginRun({ store, actor, life }, claimant, options.stop)
  const { claimed, resumed } = begun
  const onEnd = (): void => life.ended(handle.claim.claimId)
  const handle: RunHandle = new RunHandle(store, claimed, resumed, onEnd, runner.options.emit, () =>
    cycle.claimAgain(),
  )
  const before = (await whenAvailable(() => store.run(claimed.run), options.stop))!
  const cycle = new Cycle(runner, options, handle, before)
  runner.claims.set(claimed.claimId, cycle)
  if (runner.failure) cycle.stop({ why: 'guardian-lost' }, true)
  try {
    log(`run ${shortId(before.id)} of ${source} ${resumed ? 'goes on' : 'starts'}`)
    return await cycle.run()
  } catch (error) {
    // Nothing of it runs: what was begun is handed back, so that it is not taken for a crash.
    await handle.release().catch(() => {})
    throw error
  } finally {
    runner.claims.delete(handle.claim.claimId)
    life.ended(handle.claim.claimId)
  }
}

class Cycle implements ClaimHost {
  readonly #runner: CommandRunner
  readonly #options: CycleOptions
  readonly #handle: RunHandle
  readonly #before: Run
  readonly #timers = new Set<NodeJS.Timeout>()
  #charge: Charge | null = null
  #stop: StopReason | null = null
  #said: 'finished' | 'failed' | 'again' | null = null
  #isReady = false
  #hasExited = false
  #claiming: Promise<boolean> | null = null

  constructor(runner: CommandRunner, options: CycleOptions, handle: RunHandle, before: Run) {
    this.#runner = runner
    this.#options = options
    this.#handle = handle
    this.#before = before
  }

  /** Ends the command; the first reason is the one that counts. */
  stop(reason: StopReason, now = false): void {
    // What ended by itself has ended so, however long it takes to end what it left behind.
    if (!this.#hasExited) this.#stop ??= reason
    this.#charge?.end(now)
  }

  onLost(): void {
    // The command has ended its run itself, and the beat that misses it was already under way.
    if (!this.#handle.isOver) void this.claimAgain()
  }

  onCancelled(): void {
    this.stop({ why: 'cancelled' })
  }

  onOrphaned(): void {
    this.stop({ why: 'guardian-lost' }, true)
  }

  onOutdated(because: string): void {
    this.stop({ why: 'asked', by: because })
  }

  /**
   * The claim was lost. Returns true if the run could be claimed again, because no other copy has taken it or its source:
   * the command goes on. Otherwise the command is ended.
   */
  claimAgain(): Promise<boolean> {
    this.#claiming ??= this.#tryToClaim().finally(() => (this.#claiming = null))
    return this.#claiming
  }

  async #tryToClaim(): Promise<boolean> {
    const { options, guardian, claims } = this.#runner
    const { source, policy, stop } = this.#options
    const { claimId: lost } = this.#handle.claim
    const claimant = { source, worker: options.worker, policy }
    const door = { store: options.store, life: guardian.life }
    const asked = this.#stop ? null : claimAgain(door, claimant, this.#handle.id, stop)
    const claimed = await asked?.catch(() => null)
    if (this.#handle.isOver) return false
    if (!claimed) {
      this.#handle.lose()
      this.stop({ why: 'lease-lost' }, true)
      return false
    }
    claims.delete(lost)
    guardian.life.ended(lost)
    this.#handle.takeUp(claimed)
    claims.set(claimed.claimId, this)
    this.#charge?.claimed(this.#handle.claim)
    options.log(
      `run ${shortId(claimed.run)} was taken from this process while it was silent, and is claimed again`,
    )
    return true
  }

  async run(): Promise<CycleResult> {
    const { store, endpoint, worker } = this.#runner.options
    const { command, base, stop, hurry } = this.#options
    const { id } = this.#handle
    const { outputDir, log } = makeRunFolder(base, id)
    const session = endpoint.admit(this.#handle, {
      onCall: () => this.#ready(),
      isStopping: () => this.#stop !== null,
      onEnd: (end) => {
        this.#said = end === 'finish' ? 'finished' : end.retry ? 'again' : 'failed'
        this.#charge?.settled()
      },
    })
    const execution = newId()
    const startedAt = REAL_CLOCK.now()
    const onStop = (): void => this.stop({ why: 'asked', by: messageOf(stop.reason) })
    const onHurry = (): void => this.#charge?.end(true)
    try {
      this.#note(`attempt ${this.#before.resumes + 1}: ${redactArguments(command).join(' ')}`)
      await whenAvailable(
        async () =>
          store.startExecution({
            id: execution,
            run: id,
            worker,
            host: hostname(),
            command,
            outputDir,
            log,
            startedAt: await store.now(),
            end: null,
          }),
        stop,
      )
      this.#charge = this.#runner.guardian.run(this.#spec(execution, session), {
        onMemory: (bytes) => this.#memory(bytes),
        onReady: () => this.#ready(),
        onTracked: (tracking) => this.#runner.noteTracking(tracking),
        onExit: () => {
          this.#hasExited = true
        },
        log: this.#runner.options.log,
      })
      this.#setLimits()
      this.#watchGuard()
      // Asked for while the run was being begun.
      if (this.#stop) this.#charge.end(this.#stop.why === 'lease-lost')
      stop.addEventListener('abort', onStop, { once: true })
      hurry.addEventListener('abort', onHurry, { once: true })
      if (stop.aborted) onStop()
      if (hurry.aborted) onHurry()
      const over = await this.#charge.over
      session.dismiss()
      const ending = readEnding({ ...over, stop: this.#stop, said: this.#said })
      this.#note(`ended: ${ending.because}`)
      const settling = {
        handle: this.#handle,
        claim: this.#handle.claim,
        before: this.#before,
        execution,
        ending,
        over,
      }
      const uptimeMs = REAL_CLOCK.now() - startedAt
      return await unlessHurried(settle(this.#runner.options, settling, uptimeMs), stop, hurry)
    } catch (error) {
      if (!(error instanceof CommandRefused)) throw error
      await recordEnd(store, execution, NEVER_STARTED, error.message)
      await this.#handle.fail(error)
      throw error
    } finally {
      for (const timer of this.#timers) clearTimeout(timer)
      stop.removeEventListener('abort', onStop)
      hurry.removeEventListener('abort', onHurry)
      session.dismiss()
    }
  }

  #spec(execution: string, session: Admission): CommandSpec {
    const options = this.#options
    const { outputDir, log } = runFolder(options.base, this.#handle.id)
    const { url, token, socket = null } = session
    const env = commandEnvironment(options.env, {
      runId: this.#handle.id,
      source: options.source,
      url,
      token,
      socket,
      outputDir,
      resumed: this.#handle.resumed,
      input: this.#before.input,
    })
    return {
      id: execution,
      run: this.#handle.id,
      claim: this.#handle.claim,
      command: options.command,
      cwd: options.cwd,
      env,
      cookie: options.cookie,
      killTimeoutMs: options.killTimeoutMs,
      outputDir,
      log,
      logBytes: options.logBytes,
      quiet: options.quiet,
      secrets: [...options.secrets, token],
      channel: options.readyWithinMs !== null,
      measureEveryMs: options.maxMemory === null ? MEASURE_SELDOM_MS : MEASURE_EVERY_MS,
    }
  }

  #setLimits(): void {
    const { maxDurationMs, readyWithinMs } = this.#options
    if (readyWithinMs === null) this.#ready()
    else {
      this.#after(readyWithinMs, () => {
        if (!this.#isReady) this.stop({ why: 'not-ready', limitMs: readyWithinMs })
      })
    }
    if (maxDurationMs !== null) {
      this.#after(maxDurationMs, () => this.stop({ why: 'max-duration', limitMs: maxDurationMs }))
    }
  }

  /** Also for longer than a timer can wait. */
  #after(ms: number, act: () => void): void {
    const rest = ms - TIMER_MAX_MS
    const then = rest > 0 ? () => this.#after(rest, act) : act
    this.#timers.add(setTimeout(then, Math.min(ms, TIMER_MAX_MS)))
  }

  /** Beats say whether the run is still ours; that the source is, even after the run has ended, has to be looked at. */
  #watchGuard(): void {
    const { store, worker } = this.#runner.options
    const look = async (): Promise<void> => {
      const guard = await store.guard(this.#options.source)
      if (guard && guard.worker !== worker) this.stop({ why: 'lease-lost' }, true)
    }
    this.#timers.add(setInterval(() => void look().catch(() => {}), WATCH_GUARD_MS))
  }

  #ready(): void {
    if (this.#isReady) return
    this.#isReady = true
    this.#options.onReady?.(this.#handle.id)
  }

  #memory(seen: number): void {
    const { maxMemory: limit } = this.#options
    if (limit !== null && seen > limit) this.stop({ why: 'max-memory', limit, seen })
  }

  /** In the run's log, while nobody else writes to it. */
  #note(text: string): void {
    const { base, logBytes: maxBytes } = this.#options
    const log = new LogFile(runFolder(base, this.#handle.id).log, { maxBytes })
    log.note(text)
    log.close()
  }
}
