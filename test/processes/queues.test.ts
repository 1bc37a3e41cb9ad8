import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findModule, notInstalled } from '../../bench/packages.ts'
import { crawlPortal } from '../../examples/queues/portal-job.ts'
import { AlreadyRunningError, open } from '../../src/index.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ProcessTestContext, waitFor } from './harness.ts'

const example = (name: string) =>
  fileURLToPath(new URL(`../../examples/queues/${name}`, import.meta.url))
const noServer = process.env['UNSTUCK_TEST_PG'] ? false : 'no PostgreSQL was started'
const noRedis = process.env['REDIS_URL'] ? false : 'REDIS_URL names no Redis'
const noBullmq = findModule('bullmq') ? false : notInstalled('bullmq')
const resolveBullmq = ['--import', import.meta.resolve('../../bench/resolve-bullmq.ts')]

describe('a job that a queue delivers twice', { concurrency: 3 }, () => {
  test('is done once, however many deliveries there are at the same moment', async () => {
    await using database = await sqliteEngine.fresh()
    await using one = await open({ db: database.url, signals: false })
    await using other = await open({ db: database.url, signals: false })
    const job = { portal: 'portal-a', pages: 3 }

    /** As a queue does: an error is a delivery again, a moment later. */
    const deliver = async (n: number): Promise<string> => {
      try {
        return await crawlPortal(n % 2 ? one : other, '4711', job)
      } catch (error) {
        assert.ok(error instanceof AlreadyRunningError, String(error))
        await new Promise((resolve) => setTimeout(resolve, 5 + n))
        return deliver(n)
      }
    }
    const answers = await Promise.all(Array.from({ length: 12 }, (_, n) => deliver(n)))

    assert.deepEqual(answers.toSorted(), ['done', ...Array(11).fill('was done already')])
    const store = await database.open()
    const { items } = await store.runs({ source: 'portal-a/4711', limit: 50 })
    assert.equal(items.filter(({ status }) => status === 'succeeded').length, 1)
    assert.equal(
      items.reduce((pages, { counts }) => pages + counts.pages, 0),
      3,
    )
  })

  test('continues after its last page when pg-boss delivers it to another process', async (t) => {
    if (noServer) return t.skip(noServer)
    await using ctx = await ProcessTestContext.create(postgresEngine)
    await assertRedelivery(ctx, [example('pg-boss.ts')])
  })

  test('continues after its last page when BullMQ delivers it to another process', async (t) => {
    if (noRedis || noBullmq) return t.skip(noRedis || noBullmq || undefined)
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await assertRedelivery(ctx, [...resolveBullmq, example('bullmq.ts')])
  })
})

/** A worker is killed in the middle of a job, another one takes it up and is stopped, a third one ends it. */
async function assertRedelivery(ctx: ProcessTestContext, args: readonly string[]): Promise<void> {
  const env = { REDIS_URL: process.env['REDIS_URL'] ?? '' }
  const sender = ctx.start([...args, 'portal-a'], { env })
  assert.equal(await sender.waitForExit(), 0, sender.output)
  const [, id] = /sent (\S+)/.exec(sender.output)!

  const first = ctx.start(args, { env })
  await first.waitForOutput('page 4 saved')
  first.signal('SIGKILL')
  await first.waitForExit()

  const second = ctx.start(args, { env })
  const resumed = await second.waitForOutput(/continues after page \d+\b/)
  const page = Number(resumed.split(' ').at(-1))
  assert.ok(page >= 4 && page < 20, resumed)
  await second.waitForOutput(`page ${page + 1} saved`)
  second.signal('SIGTERM')
  assert.equal(await second.waitForExit(), 0, second.output)
  assert.doesNotMatch(second.output, /page 20 saved/)

  const third = ctx.start(args, { env })
  await third.waitForOutput(`job ${id}: done`)
  await waitFor('the end of the run', async () => {
    const run = await ctx.run(`portal-a/${id}`)
    return run.status === 'succeeded' && run
  })
  const { counts } = await ctx.run(`portal-a/${id}`)
  assert.deepEqual([counts.pages, counts.itemsNew, counts.itemsUpdated], [20, 60, 0])
  third.signal('SIGTERM')
  assert.equal(await third.waitForExit(), 0, third.output)
}
