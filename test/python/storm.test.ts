import { describe, test } from 'node:test'
import { isLong } from '../../src/testing/long-tests.ts'
import { ENGINES } from '../processes/harness.ts'
import { noLibpq, noPython } from './python.ts'
import { assertUnharmed, describeStorm, runStorm, WHOLE, type StormSize } from './storm.ts'

const SMALL: StormSize = {
  extent: { states: 4, cities: 2, trades: 3 },
  kills: 8,
  supervisors: 3,
  workers: 2,
  slowdown: 0.4,
  zombies: 1,
}
const SIZE = isLong ? WHOLE : SMALL

describe('a crawl in Python, in a storm', { concurrency: isLong ? 1 : 2 }, () => {
  for (const engine of ENGINES) {
    const skip = noPython || (engine.name === 'postgres' && noLibpq)
    test(
      `P1 P5 ${engine.name}: after ${SIZE.kills} kill -9, a deploy and suspended workers a crawl in Python has each page once, as one in TypeScript`,
      { skip },
      async (t) => {
        const seed = Number(process.env['STORM_SEED'] ?? Date.now() % 1_000_000)
        t.diagnostic(`seed ${seed}; again: STORM_SEED=${seed}`)
        const log = (line: string): void => t.diagnostic(line)
        const report = await runStorm(engine, { ...SIZE, seed, log })
        for (const line of describeStorm(report)) t.diagnostic(line)
        assertUnharmed(report, SIZE)
      },
    )
  }
})
