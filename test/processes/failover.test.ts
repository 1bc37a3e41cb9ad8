import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { StoreReadOnlyError, StoreUnavailableError } from '../../src/core/model/errors.ts'
import { openStore } from '../../src/core/store/open.ts'
import { startServer } from '../../src/testing/postgres.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { ENGINES, ProcessTestContext, waitFor } from './harness.ts'
import { readDatabaseInfo } from '../../src/features/inspection/store/database-info.ts'

const TARGETS = 30
const PAGES = 4
const LEASE_MS = 3_000
/** Longer than a lease: on the standby every heartbeat is too old. */
const WITHOUT_PRIMARY_MS = LEASE_MS + 2_000

const CRAWL = `
  *targets() { for (let n = 1; n <= ${TARGETS}; n++) yield { key: 'target-' + n } },
  async page({ target, page }) {
    mark('page')
    await sleep(50)
    return { items: [{ key: target.key, data: page }], next: page < ${PAGES} ? 'next' : null,
             inTransaction: ledger(target.key, page) }
  },
  concurrency: 2,
  policy: { heartbeat: '400ms', lease: '${LEASE_MS}ms' },
`

async function query(url: string, text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

describe('a primary and its standby', { skip: !ENGINES.includes(postgresEngine) }, () => {
  test('P9 the primary crashes and the standby is promoted: workers find it, no verdict is reached on the standby, no page is lost or duplicated', async () => {
    await using stack = new AsyncDisposableStack()
    const primary = await startServer()
    stack.defer(() => primary.remove())
    const standby = await startServer({ standbyOf: primary })
    stack.defer(() => standby.remove())
    const [{ host: first, password }, { host: second }] = [
      new URL(standby.url),
      new URL(primary.url),
    ]
    const address = `postgres://postgres:${password}@${first},${second}/postgres?target_session_attrs=read-write`
    await query(primary.url, 'CREATE TABLE ledger (target_key text, page integer)')

    // The standby is the first of the two, and is passed over.
    const store = await openStore(address)
    stack.defer(() => store.close())
    assert.equal(store.location, `postgres://${first},${second}/postgres`)
    assert.equal((await readDatabaseInfo(address)).engine!.name, 'postgres')
    await waitFor('the standby has the schema', async () => {
      const [row] = await query(
        standby.url,
        `SELECT to_regclass('unstuck.run') IS NOT NULL AS found`,
      )
      return row!['found']
    })
    await assert.rejects(openStore(standby.url), StoreReadOnlyError)
    const reader = await openStore(standby.url, { readOnly: true })
    assert.deepEqual(await reader.observations(), [])
    await reader.close()
    // From here on an acknowledged page is on both.
    await query(primary.url, `ALTER SYSTEM SET synchronous_standby_names = '*'`)
    await query(primary.url, 'SELECT pg_reload_conf()')
    await waitFor('the standby is synchronous', async () => {
      const rows = await query(primary.url, 'SELECT sync_state FROM pg_stat_replication')
      return rows[0]?.['sync_state'] === 'sync'
    })

    await using ctx = ProcessTestContext.createWithoutDatabase(postgresEngine)
    const crawl = ctx.crawl(CRAWL)
    const env = { UNSTUCK_DB: address, STAGE_ENGINE: 'postgres' }
    const CLI = new URL('../../bin/unstuck.js', import.meta.url).pathname
    const workers = [1, 2].map(() => ctx.start([CLI, 'work', crawl, '--drain'], { env }))
    await waitFor('both at work', () => new Set(ctx.marks('page').map(({ pid }) => pid)).size === 2)
    await ctx.waitForMarks('page', 20)

    primary.crash()
    for (const worker of workers) await worker.waitForOutput('does not answer')
    await assert.rejects(store.observations(), (error) => {
      assert.ok(error instanceof StoreUnavailableError)
      assert.ok(error.message.includes(`${first}: this server is a standby`), error.message)
      assert.match(error.message, new RegExp(`${second}: .*ECONNREFUSED`))
      assert.doesNotMatch(error.message, new RegExp(password))
      return true
    })
    await sleep(WITHOUT_PRIMARY_MS)
    await query(standby.url, 'SELECT pg_promote()')

    for (const worker of workers) assert.equal(await worker.waitForExit(), 0, worker.output)
    const [run] = (await store.runs({ source: 'stage', limit: 1 })).items
    assert.equal(run!.status, 'succeeded')
    assert.equal(run!.counts.pages, TARGETS * PAGES)
    const pages = await query(standby.url, 'SELECT target_key, page FROM ledger')
    assert.equal(pages.length, TARGETS * PAGES)
    assert.equal(new Set(pages.map((row) => JSON.stringify(row))).size, TARGETS * PAGES)
    assert.deepEqual(await store.audit({ limit: 10 }), [])
    for (const worker of workers) assert.ok(!worker.output.includes(password))
  })
})
