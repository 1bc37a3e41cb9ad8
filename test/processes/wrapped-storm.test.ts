import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { ENGINES, kill, Stage, until, type Program } from './harness.ts'
import { guardianNow, lives, overlaps, ticker, ticks } from './wrapped.ts'

/** Together 200, and more when asked for: `UNSTUCK_STORM_CYCLES=1000 npm run unit test/processes/wrapped-storm.test.ts`. */
const CYCLES = { sqlite: 140, postgres: 60 }
const SEED = Number(process.env['UNSTUCK_STORM_SEED'] ?? Date.now() % 1_000_000)

/** Always two of them: whenever one ends, the other is waiting to take over. */
class Pair {
  readonly #stage: Stage
  readonly #command: string[]
  #programs: Program[] = []

  constructor(stage: Stage) {
    this.#stage = stage
    this.#command = ticker(stage)
    this.fill()
  }

  fill(): Program[] {
    this.#programs = this.#programs.filter((program) => program.isAlive)
    while (this.#programs.length < 2) {
      const args = 'run storm --if-running wait --kill-timeout 60ms --restart always'.split(' ')
      const restarts = '--restart-delay 1ms --min-uptime 0ms --max-restarts 100000'.split(' ')
      this.#programs.push(
        this.#stage.unstuck(...args, ...restarts, '--quiet', '--', ...this.#command),
      )
    }
    return this.#programs
  }

  async stop(): Promise<void> {
    for (const program of this.#programs) program.signal('SIGTERM')
    await Promise.all(this.#programs.map((program) => program.end()))
  }
}

for (const engine of ENGINES) {
  const cycles = Number(process.env['UNSTUCK_STORM_CYCLES'] ?? CYCLES[engine.name])
  test(`${cycles} rapid starts, stops and kills on ${engine.name}: never two copies at once, nobody left (P10, P13)`, async (t) => {
    t.diagnostic(`UNSTUCK_STORM_SEED=${SEED}`)
    const random = numbers(SEED)
    await using stage = await Stage.set(engine)
    const pair = new Pair(stage)
    for (let seen = ''; lives(ticks(stage)).length < cycles;) {
      const copy = await until('a new copy at work', () => {
        pair.fill()
        const last = ticks(stage).at(-1)?.copy
        return last !== undefined && last !== seen ? last : null
      })
      seen = copy
      await sleep(random() * 60)
      const [one, other] = pair.fill()
      const program = random() < 0.5 ? one! : other!
      const kind = random()
      // Most often the command alone, which costs least; else Unstuck in every way that it can end.
      if (kind < 0.6) kill(Number(copy), 'SIGKILL')
      else if (kind < 0.7) program.signal('SIGTERM')
      else if (kind < 0.8) program.signal('SIGKILL')
      else {
        const guardian = guardianNow(program)
        if (guardian !== undefined) kill(guardian, 'SIGKILL')
        if (kind > 0.9) program.signal('SIGKILL')
      }
      pair.fill()
      // It was the one that waited, or is dying slowly: the copy at work is ended then, so that there is a next one.
      if (kind >= 0.6) setTimeout(() => kill(Number(copy), 'SIGKILL'), 30)
    }
    await pair.stop()
    await stage.assertNobodyLeft()
    const all = ticks(stage)
    assert.deepEqual(overlaps(all), [])
    assert.ok(all.some(({ who }) => who === 'grandchild'))
  })
}

/** The same numbers from the same seed, between 0 and 1. */
function numbers(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}
