import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Engine } from '../../src/testing/test-database.ts'
import { ENGINES, SOME_ENGINES, ProcessTestContext, type Program } from './harness.ts'

const CRAWL = `
  *targets() { yield { key: 'a' }; yield { key: 'b' } },
  async page({ target, page }) {
    mark('page', target.key, page)
    await sleep(20)
    return { items: [{ key: target.key + '/' + page, data: page }], next: 'next' }
  },
`
/** Nothing is in hand: both targets wait for their next try. */
const WAITING = `
  *targets() { yield { key: 'a' }; yield { key: 'b' } },
  async page({ target }) { mark('page', target.key); throw new Error('not now') },
  policy: { backoff: '1h', backoffMax: '1h' },
`

/** All rows of ours. The user's own tables in the same database are left alone. */
async function emptyTables({ engine, database }: ProcessTestContext): Promise<void> {
  const rows = await database.raw(
    engine.name === 'sqlite'
      ? `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT IN ('ledger', 'migration') AND name NOT LIKE 'sqlite%'`
      : `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'unstuck' AND tablename <> 'migration'`,
  )
  const tables = rows.map(({ name }) => database.table(String(name)))
  await database.raw(
    engine.name === 'sqlite'
      ? `BEGIN IMMEDIATE; PRAGMA defer_foreign_keys = ON; ${tables.map((table) => `DELETE FROM ${table}`).join(';')}; COMMIT`
      : `TRUNCATE ${tables.join(', ')} CASCADE`,
  )
}

async function dropTables({ engine, database }: ProcessTestContext): Promise<void> {
  if (engine.name === 'postgres') return void (await database.raw('DROP SCHEMA unstuck CASCADE'))
  const tables = ['target', 'worker', 'run', 'run_counters', 'item', 'leader', 'migration']
  await database.raw(
    `BEGIN IMMEDIATE; ${tables.map((name) => `DROP TABLE ${name}`).join(';')}; COMMIT`,
  )
}

async function assertExits7(program: Program, why: RegExp): Promise<void> {
  assert.equal(await program.waitForExit(), 7, program.output)
  assert.match(program.output, why)
  assert.match(program.output, /E_DB_UNUSABLE.*start again/)
}

const DATA_LOSSES: readonly [string, (ctx: ProcessTestContext) => Promise<void>, RegExp][] = [
  ['emptied', emptyTables, /does not know this worker/],
  ['dropped', dropTables, /The tables of Unstuck in .* are gone/],
]

function testDataLoss(engine: Engine): void {
  for (const [how, lose, why] of DATA_LOSSES) {
    test(`tables that are ${how} in the middle of a crawl end it with 7`, async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const worker = ctx.unstuck('work', ctx.crawl(CRAWL), '--drain')
      await ctx.waitForMarks('page', 10)
      await lose(ctx)
      await assertExits7(worker, why)
    })

    if (!SOME_ENGINES.includes(engine)) continue
    test(`tables that are ${how} while every target waits: not "nothing is left", but 7`, async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const worker = ctx.unstuck('work', ctx.crawl(WAITING), '--drain')
      await ctx.waitForMarks('page', 2)
      await lose(ctx)
      await assertExits7(worker, why)
    })
  }

  if (!SOME_ENGINES.includes(engine)) return
  test('tables that are emptied under the processes of one command end it with 7', async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const parent = ctx.unstuck('work', ctx.crawl(CRAWL), '--workers', '2', '--drain')
    await ctx.waitForMarks('page', 10)
    await emptyTables(ctx)
    await assertExits7(parent, /does not know this worker/)
  })

  test('tables that are emptied under a wrapped command end it and `unstuck run` with 7', async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const program = ctx.unstuck('run', 'portal', '--', 'bash', '-c', 'echo up; sleep 1000')
    await program.waitForOutput('] up')
    await emptyTables(ctx)
    await assertExits7(program, /does not know this worker/)
    await ctx.assertNoProcessesLeft()
  })
}

for (const engine of ENGINES) {
  describe(`the database is emptied under workers, ${engine.name}`, { concurrency: 2 }, () =>
    testDataLoss(engine),
  )
}
