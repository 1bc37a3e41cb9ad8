import assert from 'node:assert/strict'
import { test } from 'node:test'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { assertNothingLost } from './proof.ts'
import { crashStorm } from './storm.ts'

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`P4 P5 P8 ${engine.name}: after 36 kill -9 nothing is lost or doubled, each recovered within 1 s`, async (t) => {
    await using db = await engine.fresh()
    const seed = Number(process.env['CRASH_SEED'] ?? Date.now() % 1_000_000)
    const report = await crashStorm(db, { kills: 36, seed })
    const { kills, recoveriesMs } = report
    t.diagnostic(
      `seed ${seed}, kills ${JSON.stringify(kills)}, recoveries in ms ${recoveriesMs.toSorted((a, b) => a - b).join(' ')}`,
    )
    assertNothingLost(report)
    for (const phase of ['claim', 'fetch', 'commit', 'recovery'] as const) {
      assert.ok(kills[phase] > 0, `no kill in phase ${phase} (seed ${seed})`)
    }
    const total = kills.claim + kills.fetch + kills.commit + kills.recovery
    assert.ok(total >= 30, `only ${total} kills (seed ${seed})`)
    assert.ok(
      Math.max(...recoveriesMs) < 1_000,
      `slowest recovery: ${Math.max(...recoveriesMs)} ms`,
    )
  })
}
