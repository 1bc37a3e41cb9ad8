import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sqliteEngine } from '../testing/sqlite-engine.ts'
import { startBackgroundRecovery } from './start-background-recovery.ts'

// That it goes on otherwise, and looks after rows and workers, is in next.test.ts.
for (const options of [{ monitor: false }, { dryRun: true }]) {
  test(`it ends with the start: ${JSON.stringify(options)}`, async () => {
    await using database = await sqliteEngine.fresh()
    const store = await database.open()
    const lines: string[] = []
    await startBackgroundRecovery({ db: database.url, log: (line) => lines.push(line), ...options })
    // Somebody who looks after others is there within a moment.
    await sleep(1_000)
    assert.deepEqual(await store.observations(), [])
    assert.deepEqual(lines, ['no run is active'])
  })
}
