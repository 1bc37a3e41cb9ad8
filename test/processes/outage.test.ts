import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer, type TestServer } from '../../src/testing/postgres.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { ENGINES, kill, SHORT_LEASE, Stage, until } from './harness.ts'

/** Three leases. */
const AWAY_MS = 6_000
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
  policy: ${SHORT_LEASE},
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

    const ways: Record<string, () => Promise<unknown>> = {
      'killed -9': async () =>
        kill(Number(readFileSync(postmaster, 'utf8').split('\n')[0]), 'SIGKILL'),
      'stopped in good order': () => server.stop(),
    }
    for (const [way, takeAway] of Object.entries(ways)) {
      test(`P9 ${way}: workers go on by themselves, nobody alive is taken from, no page is lost or doubled`, async () => {
        await using stage = await Stage.set(postgresEngine)
        const crawl = stage.crawl(CRAWL)
        const programs = [1, 2].map(() => stage.unstuck('work', crawl, '--drain'))
        await until(
          'both at work',
          () => new Set(stage.marks('page').map((mark) => mark.pid)).size === 2,
        )
        await stage.marked('page', 20)

        await takeAway()
        await sleep(AWAY_MS)
        assert.deepEqual(
          programs.map((program) => program.isAlive),
          [true, true],
        )
        await server.start()

        for (const program of programs) {
          assert.equal(await program.end(), 0, program.output)
          assert.match(program.output, /trouble with the database/)
          assert.match(program.output, /the database is back after/)
        }
        const run = await stage.run()
        assert.deepEqual([run.status, run.counts.pages], ['succeeded', 3 * TARGETS])
        assert.deepEqual(await stage.verdicts(), [])
        const targets = [...(await stage.targets()).values()]
        assert.deepEqual(
          targets.filter(({ attempts }) => attempts !== 1),
          [],
        )
        const ledger = await stage.ledger()
        assert.equal(ledger.length, 3 * TARGETS)
        assert.equal(new Set(ledger).size, 3 * TARGETS)
      })
    }
  },
)
