import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { ENGINES, ProcessTestContext, waitFor } from './harness.ts'

const TARGETS = 40
const CRAWL = `
  *targets() { for (let n = 1; n <= ${TARGETS}; n++) yield { key: 'target-' + n } },
  async page({ target, page }) {
    mark('page')
    const inTransaction = page % 2 === 0 ? ledger(target.key, page) : undefined
    return { items: [{ key: target.key, data: page }], next: page < 6 ? 'next' : null, inTransaction }
  },
  concurrency: 16,
`

/** Counts the connections to a database again and again until it is stopped, and returns the most at one moment. */
async function countConnections(url: string): Promise<() => Promise<number>> {
  const client = new Client({ connectionString: url })
  await client.connect()
  let most = 0
  let isOver = false
  const counting = (async () => {
    while (!isOver) {
      const { rows } = await client.query<{ count: number }>(
        `SELECT count(*)::int FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'unstuck'`,
      )
      most = Math.max(most, rows[0]!.count)
      await sleep(5)
    }
    await client.end()
  })()
  return async () => {
    isOver = true
    await counting
    return most
  }
}

describe('connections to PostgreSQL', { skip: !ENGINES.includes(postgresEngine) }, () => {
  test('a worker process has at most four, with sixteen pages in flight', async () => {
    await using ctx = await ProcessTestContext.create(postgresEngine)
    const stop = await countConnections(ctx.database.url)

    assert.equal(await ctx.unstuck('work', ctx.crawl(CRAWL), '--drain').waitForExit(), 0)
    const most = await stop()

    assert.equal((await ctx.run()).status, 'succeeded')
    assert.ok(most === 3 || most === 4, `${most} connections`)
  })

  test('three worker processes and their parent have at most thirteen', async () => {
    await using ctx = await ProcessTestContext.create(postgresEngine)
    const stop = await countConnections(ctx.database.url)

    const work = ctx.unstuck('work', ctx.crawl(CRAWL), '--workers', '3', '--drain')
    assert.equal(await work.waitForExit(), 0)
    const most = await stop()

    assert.ok(most >= 4 && most <= 13, `${most} connections`)
  })

  test('`unstuck run`, its watchdog and the API of its command have at most four', async () => {
    await using ctx = await ProcessTestContext.create(postgresEngine)
    const command = ctx.module(
      'command.ts',
      `
        const { UNSTUCK_URL: api, UNSTUCK_TOKEN: token } = process.env
        const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' }
        const call = (path, body) => fetch(api + path, { method: 'POST', headers, body: JSON.stringify(body) })
        for (let n = 1; n <= 10; n++) await Promise.all([1, 2, 3, 4].map(() => call('/progress', { done: n, total: 10 })))
        mark('done')
      `,
    )
    const stop = await countConnections(ctx.database.url)

    const run = ctx.unstuck('run', 'stage', '--', process.execPath, command)
    assert.equal(await run.waitForExit(), 0, run.output)
    await waitFor('the command did its work', () => ctx.marks('done').length === 1)
    const most = await stop()

    assert.ok(most >= 3 && most <= 4, `${most} connections`)
  })

  test('a program with open() has at most four, plus those that it requests', async () => {
    await using ctx = await ProcessTestContext.create(postgresEngine)
    const program = ctx.module(
      'program.ts',
      `
        const unstuck = await open({ config: { connections: Number(process.argv[2]) || undefined } })
        const runs = await Promise.all(Array.from({ length: 8 }, (_, n) => unstuck.begin('source-' + n)))
        for (let page = 1; page <= 10; page++)
          await Promise.all(runs.map((run) => run.checkpoint({ page, items: [] }, (tx) => tx.query('SELECT 1'))))
        await Promise.all(runs.map((run) => run.succeed()))
        await unstuck.close()
      `,
    )

    for (const [asked, atMost] of [
      [undefined, 4],
      [5, 7],
    ] as const) {
      const stop = await countConnections(ctx.database.url)
      const run = ctx.start([program, ...(asked ? [String(asked)] : [])])
      assert.equal(await run.waitForExit(), 0, run.output)
      const most = await stop()
      assert.ok(most >= 3 && most <= atMost, `${most} connections`)
    }
  })
})
