// The long proof: npm run crash -- --kills 1000 [--seed N] [--db sqlite|postgres]
import { parseArgs } from 'node:util'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { startServer } from '../../src/testing/postgres.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { assertNothingLost } from './assert-nothing-lost.ts'
import { runCrashTest } from './crash-runner.ts'

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    db: { type: 'string', default: 'sqlite,postgres' },
  },
})
const wanted = values.db.split(',')
const server = wanted.includes('postgres') ? await startServer() : null
if (server) process.env['UNSTUCK_TEST_PG'] = server.url
try {
  for (const engine of [sqliteEngine, postgresEngine].filter(({ name }) => wanted.includes(name))) {
    await using db = await engine.fresh()
    const seed = Number(values.seed)
    console.log(`${engine.name}: ${values.kills} kills, seed ${seed}`)
    const report = await runCrashTest(db, {
      kills: Number(values.kills),
      seed,
      log: (line) => console.log(`  ${line}`),
    })
    assertNothingLost(report)
    const sorted = report.recoveriesMs.toSorted((a, b) => a - b)
    console.log(
      `${engine.name}: kills ${JSON.stringify(report.kills)}, ${report.results.run.counts.pages} pages, 0 lost, 0 doubled, ` +
        `recovery median ${sorted[sorted.length >> 1]} ms, slowest ${sorted.at(-1)} ms`,
    )
  }
} finally {
  await server?.remove()
}
