import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isLong } from '../../src/testing/length.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { assertNothingLost } from './proof.ts'
import { crashStorm } from './storm.ts'

/** More by `npm run proof`, and as many as you like by `npm run crash -- --kills N`. */
const KILLS = isLong ? 36 : 15

const figures = (ms: readonly number[]): string => ms.toSorted((a, b) => a - b).join(' ')

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`P4 P5 P8 ${engine.name}: after ${KILLS} kill -9 nothing is lost or doubled, each target can be claimed again within 1 s`, async (t) => {
    await using db = await engine.fresh()
    const seed = Number(process.env['CRASH_SEED'] ?? Date.now() % 1_000_000)
    const report = await crashStorm(db, { kills: KILLS, seed })
    const { kills, recoveriesMs, claimableMs } = report
    t.diagnostic(`seed ${seed}, kills ${JSON.stringify(kills)}`)
    t.diagnostic(`ms until claimable: ${figures(claimableMs)}`)
    t.diagnostic(`ms until claimed: ${figures(recoveriesMs)}`)

    assertNothingLost(report)
    for (const phase of ['claim', 'fetch', 'commit', 'recovery'] as const) {
      assert.ok(kills[phase] > 0, `no kill in phase ${phase} (seed ${seed})`)
    }
    const total = kills.claim + kills.fetch + kills.commit + kills.recovery
    assert.ok(total >= KILLS * 0.8, `only ${total} kills (seed ${seed})`)
    assert.ok(Math.max(...claimableMs) < 1_000, `claimable after ${Math.max(...claimableMs)} ms`)
    // How soon a new process claims depends on how busy the machine is: `npm run crash` and the demo show it.
    assert.ok(Math.max(...recoveriesMs) < 5_000, `claimed after ${Math.max(...recoveriesMs)} ms`)
  })
}
