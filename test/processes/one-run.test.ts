import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { isLong } from '../../src/testing/long-tests.ts'
import { startServer, type TestServer } from '../../src/testing/postgres.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { SOME_ENGINES, ProcessTestContext, waitFor } from './harness.ts'

/** On PostgreSQL fewer: there the unique index is the server's, and each process costs it several connections. */
const STARTS = isLong ? { sqlite: 50, postgres: 20 } : { sqlite: 8, postgres: 8 }

/** Each is known to the others before the moment comes, so that nothing but the start itself is left to do. */
const STARTER = `
  const unstuck = await open()
  // So many at once can keep the database from answering in time on a small machine: that is not what is looked at.
  const withRetry = async (call) => {
    for (;;) {
      try {
        return await call()
      } catch (error) {
        if (error.code !== 'E_DB_UNREACHABLE') throw error
      }
    }
  }
  await using warm = await withRetry(() => unstuck.begin('warm-' + process.pid))
  mark('ready')
  await opened('go')
  try {
    const run = await withRetry(() => unstuck.begin('same'))
    mark('won')
    await opened('finish')
    await run.succeed()
  } catch (error) {
    if (!(error instanceof AlreadyRunningError)) throw error
    mark('refused')
    console.error(error.message)
    process.exitCode = exitCodeOf(error)
  } finally {
    await unstuck.close()
  }
`

/** So many processes with several connections each are more than the tests' common server has room for. */
async function startLargeServer(): Promise<TestServer> {
  const server = await startServer()
  process.env['UNSTUCK_TEST_PG'] = server.url
  await using database = await postgresEngine.empty()
  await database.raw('ALTER SYSTEM SET max_connections = 600')
  await server.stop()
  await server.start()
  return server
}

for (const engine of SOME_ENGINES) {
  const starts = STARTS[engine.name]
  describe(`P10 one live run per source, ${engine.name}`, () => {
    let server: TestServer | undefined
    before(async () => {
      if (engine.name === 'postgres') server = await startLargeServer()
    })
    after(() => server?.remove())

    test(`of ${starts} processes that begin at the same moment exactly one wins, the others end with 5`, async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const starter = ctx.module('starter.ts', STARTER)
      const programs = Array.from({ length: starts }, () => ctx.start([starter]))
      await waitFor('all ready', () => {
        const dead = programs.find((program) => !program.isAlive)
        if (dead) throw new Error(`One ended before it was ready:\n${dead.output}`)
        return ctx.marks('ready').length === starts
      })
      ctx.openGate('go')
      await ctx.waitForMarks('refused', starts - 1)
      ctx.openGate('finish')

      const codes = await Promise.all(programs.map((program) => program.waitForExit()))
      assert.deepEqual(
        codes.sort((a, b) => Number(a) - Number(b)),
        [0, ...Array<number>(starts - 1).fill(5)],
      )
      assert.equal(ctx.marks('won').length, 1)
      const refused = programs.find((program) => program.output !== '')!
      assert.match(
        refused.output,
        /same is already running: run .{8}, since .*process \d+ on .* is alive: last heartbeat .* Wait for it/,
      )
      const { items } = await (await ctx.store()).runs({ source: 'same', limit: 10 })
      assert.deepEqual(
        items.map((run) => run.status),
        ['succeeded'],
      )
    })

    test('a killed holder does not block its source: the next begin continues after the last checkpoint', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.module(
        'job.ts',
        `
        const unstuck = await open()
        const run = await unstuck.begin('job')
        mark(run.resumed ? 'resumed' : 'started', JSON.stringify(run.cursor), run.page)
        for (let page = run.page + 1; page <= 5; page++) {
          await run.checkpoint({ page, items: [{ key: 'i' + page, data: page }], cursor: { at: page } }, ledger('job', page))
          if (page === 3) { mark('three'); await opened('never') }
        }
        await run.succeed()
        await unstuck.close()
      `,
      )
      const first = ctx.start([program])
      await ctx.waitForMarks('three')
      first.signal('SIGKILL')
      await first.waitForExit()

      const second = ctx.start([program])
      assert.equal(await second.waitForExit(), 0, second.output)
      const [resumed] = ctx.marks('resumed')
      assert.deepEqual([resumed?.page, resumed?.key], [3, '{"at":3}'])
      assert.deepEqual(await ctx.ledger(), ['job/1', 'job/2', 'job/3', 'job/4', 'job/5'])
      const run = await ctx.run('job')
      assert.deepEqual([run.status, run.counts.pages, run.counts.itemsNew], ['succeeded', 5, 5])
    })
  })
}

test('P10 of five workers that start a crawl at the same moment one begins the run', async () => {
  await using ctx = await ProcessTestContext.create(sqliteEngine)
  const crawl = ctx.crawl(`
    *targets() { for (const key of 'abcdefghij') yield { key } },
    async page({ target, page }) {
      mark('page')
      await opened('gate')
      return { next: null, inTransaction: ledger(target.key, page) }
    },
    concurrency: 2,
    setup: async () => { mark('ready'); await opened('go') },
    teardown: () => mark('over'),
  `)
  const programs = Array.from({ length: 5 }, () => ctx.unstuck('work', crawl, '--drain'))
  await ctx.waitForMarks('ready', 5)
  ctx.openGate('go')
  // Each process has two of the ten, so none starts after all is done and begins a new run.
  await ctx.waitForMarks('page', 10)
  ctx.openGate('gate')
  for (const program of programs) assert.equal(await program.waitForExit(), 0)
  const { items } = await (await ctx.store()).runs({ source: 'stage', limit: 10 })
  assert.equal(items.length, 1)
  assert.equal((await ctx.ledger()).length, 10)
})
