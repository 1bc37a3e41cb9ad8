import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Client } from 'pg'
import { SOURCE } from '../../testing/fixtures.ts'
import { postgresEngine } from '../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import { StartWait } from './start-wait.ts'

/** Keeps every other connection from writing the row of a source. Returns a function that ends this. */
async function block(url: string): Promise<() => Promise<void>> {
  if (url.startsWith('sqlite:')) {
    const file = new DatabaseSync(url.slice('sqlite:'.length))
    file.exec('BEGIN IMMEDIATE')
    return async () => file.close()
  }
  const client = new Client({ connectionString: url })
  await client.connect()
  await client.query('BEGIN; LOCK TABLE unstuck.source IN ACCESS EXCLUSIVE MODE')
  return () => client.end()
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`a supervisor that is stopped does not wait for a database that does not respond, ${engine.name}`, async () => {
    await using db = await engine.fresh()
    const store = await db.open()
    const stop = new AbortController()
    const logged: string[] = []
    const wait = new StartWait({
      store,
      source: SOURCE,
      stopping: stop.signal,
      isLost: () => false,
      msUntilNextTick: () => null,
      log: (message) => logged.push(message),
    })
    const unblock = await block(db.url)
    const waiting = wait.forMs(3_600_000)
    stop.abort(new Error('SIGTERM'))
    await waiting
    await unblock()
    assert.deepEqual(logged, [], 'no call was waited for until it failed')
  })
}
