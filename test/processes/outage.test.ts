import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer, type TestServer } from '../../src/testing/postgres.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { ENGINES, kill, ProcessTestContext, waitFor } from './harness.ts'
import { waitForWatchdog } from './wrapped.ts'

const HEARTBEAT_MS = 400
const LEASE_MS = 4_000
/** Longer than a lease: when the server is back, every beat it knows of is too old. */
const OUTAGE_MS = 6_000
const TARGETS = 60

const CRAWL = `
  *targets() { for (let n = 1; n <= ${TARGETS}; n++) yield { key: 'target-' + n } },
  async page({ target, page }) {
    mark('page', target.key, page)
    await sleep(50)
    return { items: [{ key: target.key, data: page }], next: page < 3 ? 'next' : null,
             inTransaction: ledger(target.key, page) }
  },
  concurrency: 2,
  policy: { heartbeat: '${HEARTBEAT_MS}ms', lease: '${LEASE_MS}ms' },
`

/** One page that lasts. */
const HANGING_CRAWL = `
  *targets() { yield { key: 'a' } },
  async page() { mark('page'); await opened('never'); return { next: null } },
  policy: { heartbeat: '2s', lease: '6s' },
`

describe(
  'PostgreSQL goes away and comes back while all workers live',
  { skip: !ENGINES.includes(postgresEngine) },
  () => {
    // One of its own: others are at work on the common one.
    let server: TestServer
    let postmaster = ''
    before(async () => {
      server = await startServer()
      process.env['UNSTUCK_TEST_PG'] = server.url
      await using database = await postgresEngine.empty()
      const [row] = await database.raw('SHOW data_directory')
      postmaster = join(String(row!['data_directory']), 'postmaster.pid')
    })
    after(() => server.remove())

    test('P9 killed -9 for longer than a lease, then restarted: nothing is taken from a live worker, no page is lost or duplicated', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      const crawl = ctx.crawl(CRAWL)
      const programs = ['quick', 'slow'].map(() => ctx.unstuck('work', crawl, '--drain'))
      const atWork = () => new Set(ctx.marks('page').map((mark) => mark.pid)).size === 2
      await waitFor('both at work', atWork)
      await ctx.waitForMarks('page', 20)

      kill(Number(readFileSync(postmaster, 'utf8').split('\n')[0]), 'SIGKILL')
      const [quick, slow] = programs
      await slow!.waitForOutput('database error')
      slow!.signal('SIGSTOP')
      await sleep(OUTAGE_MS)
      assert.deepEqual(
        programs.map((program) => program.isAlive),
        [true, true],
      )
      await server.start()
      // One has been heard several times before the other finds its way back.
      await quick!.waitForOutput('database reachable again after')
      await sleep(3 * HEARTBEAT_MS)
      slow!.signal('SIGCONT')
      await slow!.waitForOutput('database reachable again after')
      await ctx.waitForMarks('page', ctx.marks('page').length + 20)
      await server.stop()
      await server.start()

      for (const program of programs) {
        assert.equal(await program.waitForExit(), 0, program.output)
        assert.match(program.output, /database error: The database .* does not answer/)
        assert.match(program.output, /database reachable again after \d+ m?s/)
      }
      const run = await ctx.run()
      assert.deepEqual([run.status, run.counts.pages], ['succeeded', 3 * TARGETS])
      assert.deepEqual(await ctx.verdicts(), [])
      const targets = [...(await ctx.targets()).values()]
      assert.deepEqual(
        targets.filter(({ attempts }) => attempts !== 1),
        [],
      )
      const expected = targets.flatMap(({ key }) => [1, 2, 3].map((page) => `${key}/${page}`))
      assert.deepEqual(await ctx.ledger(), expected.sort())
    })

    test('P9 a wrapped command continues through it, its checkpoint waits, and no other copy takes over', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      ctx.writeConfig({ portal: { heartbeat: `${HEARTBEAT_MS}ms`, lease: `${LEASE_MS}ms` } })
      const post = `curl -sf -H "Authorization: Bearer $UNSTUCK_TOKEN" -H 'content-type: application/json'`
      const script =
        `echo up; until [ -e go.gate ]; do sleep 0.05; done; echo posting; ` +
        `${post} "$UNSTUCK_URL/checkpoint" -d '{"page":1,"items":[{"key":"a","data":1}]}'; ${post} "$UNSTUCK_URL/finish" -d '{}'`
      const program = ctx.unstuck('run', 'portal', '--', 'bash', '-c', script)
      await program.waitForOutput('] up')
      const waiting = ctx.unstuck('run', 'portal', '--if-running', 'wait', '--', 'echo', 'second')
      await waiting.waitForOutput('waiting: portal is running')

      await server.stop()
      ctx.openGate('go')
      await program.waitForOutput('] posting')
      // A watchdog that dies meanwhile can be replaced only when the database is back.
      kill(await waitForWatchdog(waiting), 'SIGKILL')
      await sleep(OUTAGE_MS)
      assert.ok(program.isAlive)
      await server.start()

      assert.equal(await program.waitForExit(), 0, program.output)
      assert.equal(await waiting.waitForExit(), 0, waiting.output)
      const store = await ctx.store()
      const runs = (await store.runs({ source: 'portal', limit: 10 })).items.toReversed()
      assert.deepEqual(
        runs.map(({ status, resumes, counts }) => [status, resumes, counts.pages]),
        [
          ['succeeded', 0, 1],
          ['succeeded', 0, 0],
        ],
      )
    })

    test('P9 a command started right after an outage waits for heartbeats first, and takes nothing from a live worker', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      const program = ctx.unstuck('work', ctx.crawl(HANGING_CRAWL))
      await ctx.waitForMarks('page')
      await ctx.freeze(program)
      await server.stop()
      await sleep(OUTAGE_MS)
      await server.start()

      // Its last heartbeat is older than a lease, its session is gone; and the moment the command looks, it goes on.
      const recover = ctx.unstuck('recover', '--yes', '--json')
      await sleep(300)
      program.signal('SIGCONT')

      assert.equal(await recover.waitForExit(), 0, recover.output)
      assert.deepEqual((JSON.parse(recover.output) as { verdicts: unknown[] }).verdicts, [])
      assert.deepEqual(await ctx.verdicts(), [])
    })

    test('commands that work wait at their start until it answers, up to their limit', async () => {
      await using ctx = await ProcessTestContext.create(postgresEngine)
      const crawl = ctx.crawl(`
        *targets() { yield { key: 'a' } },
        async page() { return { next: null } },
      `)
      const commands = [
        ['work', '--drain', crawl],
        ['work', '--drain', '--workers', '2', crawl],
        ['work', '--drain', '--exec', '--source', 'reports', '--', 'true'],
        ['run', 'portal', '--', 'true'],
        ['run', 'yearly', '--cron', '0 0 1 1 *', '--', 'true'],
      ]
      const start = ([command = '', ...args]: readonly string[], limit: string) =>
        ctx.unstuck(command, '--db-timeout', limit, ...args)
      await server.stop()

      for (const program of commands.map((command) => start(command, '700ms'))) {
        assert.equal(await program.waitForExit(), 7, program.output)
        assert.match(program.output, /waiting up to 700ms for the database: .* does not answer/)
        assert.match(program.output, /Tried (once|\d+ times in .*); `--db-timeout` sets/)
      }

      const stopped = commands.map((command) => start(command, '10m'))
      for (const program of stopped) {
        await program.waitForOutput('waiting up to 10m for the database')
        program.signal('SIGTERM')
        assert.equal(await program.waitForExit(), 75, program.output)
        assert.match(program.output, /SIGTERM before the database answered: nothing was started/)
      }

      const programs = commands.map((command) => start(command, '10m'))
      for (const program of programs)
        await program.waitForOutput('waiting up to 10m for the database')
      await server.start()
      const yearly = programs.at(-1)!
      await yearly.waitForOutput('first run in')
      yearly.signal('SIGTERM')
      for (const program of programs) {
        assert.equal(await program.waitForExit(), 0, program.output)
        assert.match(program.output, /the database answers, after \d/)
      }
    })
  },
)
