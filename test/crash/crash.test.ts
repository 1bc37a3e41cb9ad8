import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLong } from '../../src/testing/long-tests.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { assertNothingLost } from './assert-nothing-lost.ts'
import { runCrashTest } from './crash-runner.ts'

/** More by `npm run proof`, and as many as you like by `npm run crash -- --kills N`. */
const KILLS = isLong ? 36 : 6

const formatPercentiles = (ms: readonly number[]): string => ms.toSorted((a, b) => a - b).join(' ')

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`P4 P5 P8 ${engine.name}: after ${KILLS} kill -9 nothing is lost or doubled, each death is proven at once`, async (t) => {
    await using db = await engine.fresh()
    const seed = Number(process.env['CRASH_SEED'] ?? Date.now() % 1_000_000)
    const report = await runCrashTest(db, { kills: KILLS, seed })
    const { kills, recoveriesMs, claimableMs } = report
    t.diagnostic(`seed ${seed}, kills ${JSON.stringify(kills)}`)
    t.diagnostic(`ms until claimable: ${formatPercentiles(claimableMs)}`)
    t.diagnostic(`ms until claimed: ${formatPercentiles(recoveriesMs)}`)

    assertNothingLost(report)
    for (const phase of ['claim', 'fetch', 'commit', 'recovery'] as const) {
      assert.ok(kills[phase] > 0, `no kill in phase ${phase} (seed ${seed})`)
    }
    // How soon depends on how fast this machine starts processes when the other workers were killed too; that no lease
    // was waited for does not. test/processes/bounded-recovery.test.ts leaves a survivor and looks at the time.
    const silent = report.reasons.filter(
      (because) => !/freed its lock|no longer exists/.test(because),
    )
    assert.deepEqual(silent, [], `seed ${seed}`)
  })
}
