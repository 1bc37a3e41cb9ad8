import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { isLong } from '../../src/testing/long-tests.ts'
import { makeRandom } from '../../src/features/chaos/random.ts'
import { SOME_ENGINES, kill, ProcessTestContext, waitFor, type Program } from './harness.ts'
import { findWatchdog, lastCopy, overlaps, ticker, ticks } from './wrapped.ts'

/** More when asked for: `npm run proof`, or `UNSTUCK_STORM_CYCLES=1000 npm run unit test/processes/wrapped-kills.test.ts`. */
const CYCLES = isLong ? { sqlite: 140, postgres: 60 } : { sqlite: 40, postgres: 20 }
const SEED = Number(process.env['UNSTUCK_STORM_SEED'] ?? Date.now() % 1_000_000)

/** Always two of them: whenever one ends, the other is waiting to take over. */
class CompetingCopies {
  readonly #ctx: ProcessTestContext
  readonly #command: string[]
  #programs: Program[] = []

  constructor(ctx: ProcessTestContext) {
    this.#ctx = ctx
    this.#command = ticker(ctx)
    this.startMissing()
  }

  startMissing(): Program[] {
    this.#programs = this.#programs.filter((program) => program.isAlive)
    while (this.#programs.length < 2) {
      const args = 'run storm --if-running wait --kill-timeout 60ms --restart always'.split(' ')
      const restarts = '--restart-delay 1ms --min-uptime 0ms --max-restarts 100000'.split(' ')
      this.#programs.push(
        this.#ctx.unstuck(...args, ...restarts, '--quiet', '--', ...this.#command),
      )
    }
    return this.#programs
  }

  async stop(): Promise<void> {
    for (const program of this.#programs) program.signal('SIGTERM')
    await Promise.all(this.#programs.map((program) => program.waitForExit()))
  }
}

for (const engine of SOME_ENGINES) {
  const cycles = Number(process.env['UNSTUCK_STORM_CYCLES'] ?? CYCLES[engine.name])
  test(`${cycles} rapid starts, stops and kills on ${engine.name}: never two copies at once, no process left (P10, P13)`, async (t) => {
    t.diagnostic(`UNSTUCK_STORM_SEED=${SEED}`)
    const random = makeRandom(SEED)
    await using ctx = await ProcessTestContext.create(engine)
    const pair = new CompetingCopies(ctx)
    const seen = new Set<string>()
    while (seen.size < cycles) {
      const copy = await waitFor('a new copy at work', () => {
        pair.startMissing()
        const last = lastCopy(ctx)
        return last !== null && !seen.has(last) ? last : null
      })
      seen.add(copy)
      await sleep(random.between(0, 60))
      const [one, other] = pair.startMissing()
      const program = random.pick([one!, other!])
      const kind = random.between(1, 100)
      // Most often the command alone, which costs least; else Unstuck in every way that it can end.
      if (kind <= 60) kill(Number(copy), 'SIGKILL')
      else if (kind <= 70) program.signal('SIGTERM')
      else if (kind <= 80) program.signal('SIGKILL')
      else {
        const watchdog = findWatchdog(program)
        if (watchdog !== undefined) kill(watchdog, 'SIGKILL')
        if (kind > 90) program.signal('SIGKILL')
      }
      pair.startMissing()
      // It was the one that waited, or is dying slowly: the copy at work is ended then, so that there is a next one.
      if (kind > 60) setTimeout(() => kill(Number(copy), 'SIGKILL'), 30)
    }
    // Who was killed together with its watchdog leaves its tree to the next one: let that come.
    await waitFor('a last copy at work', () => {
      pair.startMissing()
      const last = lastCopy(ctx)
      return last !== null && !seen.has(last)
    })
    await pair.stop()
    await ctx.assertNoProcessesLeft()
    const all = ticks(ctx)
    assert.deepEqual(overlaps(all), [])
    assert.ok(all.some(({ who }) => who === 'grandchild'))
  })
}
