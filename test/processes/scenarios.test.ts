import assert from 'node:assert/strict'
import { createServer, type Server } from 'node:net'
import { describe, test } from 'node:test'
import { open, recoverOnStart } from '../../src/index.ts'
import { assertAllOk, claimOne, registerWorker } from '../../src/testing/fixtures.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { unstuck, unstuckProcess, type CliResult } from '../../src/testing/unstuck-cli.ts'
import { ENGINES, kill, SHORT_LEASE, ProcessTestContext, waitFor } from './harness.ts'

/** What operators live through, with real processes. */

const HOUR = 3_600_000

/** Begins the run, saves so many pages, says so, and waits for the gate; then it finishes. */
const job = (pages: number, policy: string = SHORT_LEASE): string => `
  const unstuck = await open({ policy: ${policy} })
  const run = await unstuck.begin('job')
  mark('begun', run.id, run.page)
  for (let page = run.page + 1; page <= ${pages}; page++) await run.checkpoint({ page }, ledger('job', page))
  mark('held')
  await opened('gate')
  run.signal.throwIfAborted()
  await run.succeed()
  await unstuck.close()
`

/** Another source at work, whose worker checks all others once a second. */
const OTHER_CRAWL = `
  export default defineCrawl({
    source: 'neighbour',
    *targets() { yield { key: 'n' } },
    async page() { mark('neighbour'); await opened('neighbour'); return { next: null } },
    policy: { heartbeat: '400ms', lease: '2s', maxSilence: '2s', startupGrace: '0s' },
  })
`

/** The run of this source is that much older: it began earlier, and nothing was saved since. Its beats stay fresh. */
async function ageRuns(ctx: ProcessTestContext, source: string, ms: number): Promise<void> {
  const { database } = ctx
  const by = ctx.engine.name === 'sqlite' ? String(ms) : `interval '${ms} milliseconds'`
  const runs = `(SELECT id FROM ${database.table('run')} WHERE source = '${source}')`
  const shift = (table: string, key: string, columns: readonly string[]): string =>
    `UPDATE ${database.table(table)} SET ${columns.map((name) => `${name} = ${name} - ${by}`).join(', ')} WHERE ${key} IN ${runs}`
  await database.raw(shift('run', 'id', ['created_at', 'started_at', 'planned_at']))
  await database.raw(shift('target', 'run_id', ['last_activity_at', 'claimed_at']))
  await database.raw(shift('run_counters', 'run_id', ['last_activity_at']))
}

/** Processes that recover at once. */
const RECOVERIES = isLong ? 50 : 12

async function cli(
  ctx: ProcessTestContext,
  ...args: string[]
): Promise<{ code: number | null; said: string; data: any }> {
  return readResult(await unstuck([...args, '--json'], cliOptions(ctx)))
}

function cliOptions(ctx: ProcessTestContext): { cwd: string; env: NodeJS.ProcessEnv } {
  return { cwd: ctx.folder, env: { UNSTUCK_DB: ctx.database.url } }
}

function readResult({ code, stdout, stderr }: CliResult): {
  code: number | null
  said: string
  data: any
} {
  return { code, said: stdout + stderr, data: stdout === '' ? null : JSON.parse(stdout) }
}

/** A run that was begun 25 hours ago by a process that was killed. */
async function createDeadJob(
  ctx: ProcessTestContext,
  pages: number,
  policy?: string,
): Promise<string> {
  const program = ctx.start([ctx.module('job.ts', job(pages, policy))])
  await ctx.waitForMarks('held')
  program.signal('SIGKILL')
  await program.waitForExit()
  await ageRuns(ctx, 'job', 25 * HOUR)
  return (await ctx.run('job')).id
}

for (const engine of isLong ? ENGINES : [sqliteEngine]) {
  describe(`stories, ${engine.name}`, { concurrency: 2 }, () => {
    test('(a) a container restart: the new worker logs the recovery, and the run continues', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(`
        *targets() { yield { key: 'a' }; yield { key: 'b' } },
        async page({ target, page }) {
          mark('page', target.key, page)
          if (page === 2) await opened('second')
          return { next: page < 3 ? 'next' : null, inTransaction: ledger(target.key, page) }
        },
      `)
      const parent = ctx.unstuck('work', crawl, '--workers', '2', '--drain')
      await waitFor(
        'both in their second page',
        () => ctx.marks('page').filter(({ page }) => page === 2).length === 2,
      )

      parent.signal('SIGTERM')
      await parent.waitForOutput('finishing the pages in progress')
      // The grace is over before the pages are: the container's processes are killed.
      for (const pid of ctx.processes()) kill(pid, 'SIGKILL')
      await parent.waitForExit()
      await ctx.assertNoProcessesLeft()
      ctx.openGate('second')
      const next = ctx.unstuck('work', crawl, '--drain')

      assert.equal(await next.waitForExit(), 0, next.output)
      assert.match(
        next.output,
        /recovery: resume target \S+ \(\w{8}\) of stage \(in progress → planned\): process \d+ .*continues after page 1/,
      )
      assert.match(
        next.output,
        /run \w{8} of stage is (running|interrupted): 2 of 2 targets are left/,
      )
      const run = await ctx.run()
      assert.deepEqual([run.status, run.resumes], ['succeeded', 1])
      assert.deepEqual(await ctx.ledger(), ['a/1', 'a/2', 'a/3', 'b/1', 'b/2', 'b/3'])
      assert.equal((await ctx.verdicts()).length, 2)
    })

    test('(b) a slow run of 26 h with fresh heartbeats and no items is never changed automatically', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const slow = ctx.start([
        ctx.module('job.ts', job(0, `{ ...${SHORT_LEASE}, autoClean: true }`)),
      ])
      await ctx.waitForMarks('held')
      await ageRuns(ctx, 'job', 26 * HOUR)
      const neighbour = ctx.unstuck('work', ctx.module('neighbour.ts', OTHER_CRAWL))
      await neighbour.waitForOutput(/ALERT: .* of job: .* no progress for 26 h/)

      assert.deepEqual((await cli(ctx, 'recover', '--yes')).data.applied, 0)
      assert.deepEqual((await cli(ctx, 'clean', '--yes', '--age', '12h')).data.cleaned, [])
      const lines: string[] = []
      const { verdicts } = await recoverOnStart({
        db: ctx.database.url,
        log: (line) => lines.push(line),
      })
      assert.deepEqual(
        verdicts.filter(({ outcome }) => outcome === 'applied'),
        [],
      )
      assert.match(
        lines.join('\n'),
        /run \w{8} of job is running: 0\/1 done, 26 h old; process \d+ on .* alive/,
      )
      const check = await cli(ctx, 'check', 'job')
      assert.deepEqual([check.code, check.data.action, check.data.owner.pid], [5, 'wait', slow.pid])

      assert.equal(slow.isAlive, true)
      assert.deepEqual(await ctx.verdicts(), [])
      ctx.openGate('gate')
      assert.equal(await slow.waitForExit(), 0, slow.output)
      assert.equal((await ctx.run('job')).status, 'succeeded')
    })

    test('(c), (e) a dead run of 25 h is abandoned by clean --yes, not with --age 48h; revert brings it back, and it goes on', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const id = await createDeadJob(ctx, 0)

      const left = await cli(ctx, 'clean', '--yes', '--age', '48h')
      assert.deepEqual([left.data.cleaned, left.data.dead], [[], []])
      assert.equal((await ctx.run('job')).status, 'running')

      const cleaned = await cli(ctx, 'clean', '--yes')
      assert.equal(cleaned.code, 0, cleaned.said)
      assert.deepEqual(
        cleaned.data.cleaned.map((one: any) => [one.run, one.outcome]),
        [[id, 'applied']],
      )
      const { status, finishedAt } = await ctx.run('job')
      assert.equal(status, 'abandoned')
      assert.ok(finishedAt !== null)

      const reverted = await cli(ctx, 'revert', id)
      assert.deepEqual(
        [reverted.code, reverted.data.undid, reverted.data.run.status],
        [0, 'abandon', 'interrupted'],
      )
      assert.deepEqual(
        (await cli(ctx, 'clean', '--yes')).data.cleaned.length,
        0,
        'a person has spoken',
      )
      ctx.openGate('gate')
      const again = ctx.start([ctx.module('again.ts', job(2))])
      assert.equal(await again.waitForExit(), 0, again.output)
      const run = await ctx.run('job')
      assert.deepEqual([run.id, run.status, run.counts.pages], [id, 'succeeded', 2])
      const trail = (await ctx.verdicts()).map(({ action }) => action)
      assert.deepEqual(trail.slice(-2), ['abandon', 'revert'])
    })

    test('(d) a run with a checkpoint is never cleaned, by hand or by itself', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const id = await createDeadJob(
        ctx,
        1,
        `{ ...${SHORT_LEASE}, autoClean: true, abandonAfter: '1s' }`,
      )

      assert.deepEqual((await cli(ctx, 'clean', '--yes', '--age', '1s')).data.cleaned, [])
      assert.equal((await cli(ctx, 'clean', id)).code, 2)
      const neighbour = ctx.unstuck('work', ctx.module('neighbour.ts', OTHER_CRAWL))
      await neighbour.waitForOutput(/recovery: resume target \w{8} of job/)
      await waitFor('the monitor has looked a few times', () => ctx.marks('neighbour').length > 0)
      await new Promise((resolve) => setTimeout(resolve, 2_500))

      assert.equal((await ctx.run('job')).status, 'interrupted')
      await using handle = await open({ db: ctx.database.url, signals: false })
      await assert.rejects(
        handle.clean(id),
        /is not dead: no worker has it, but it has progress: kept/,
      )
      const { resumable } = await handle.summary()
      assert.deepEqual(
        resumable.map((run) => [run.id, run.checkpoint?.page]),
        [[id, 1]],
      )
    })

    test('(e) a cleaned run cannot be reverted while a newer run is live, and the error gives this reason', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const id = await createDeadJob(ctx, 0)
      await cli(ctx, 'clean', '--yes')
      const program = ctx.start([ctx.module('next.ts', job(1))])
      await ctx.waitForMarks('held', 2)

      const refused = await cli(ctx, 'revert', id)

      assert.equal(refused.code, 5)
      const next = (await ctx.run('job')).id
      assert.ok(refused.said.includes(`run ${next.slice(-8)} of job is running`), refused.said)
      ctx.openGate('gate')
      assert.equal(await program.waitForExit(), 0)
    })

    test('(f) P2 many processes recover at once: one recovery, one audit row', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.start([ctx.module('job.ts', job(2))])
      await ctx.waitForMarks('held')
      program.signal('SIGKILL')
      await program.waitForExit()

      const said = (
        await Promise.all(
          Array.from({ length: RECOVERIES }, () =>
            unstuckProcess(['recover', '--yes', '--json'], cliOptions(ctx)),
          ),
        )
      ).map(readResult)

      assert.deepEqual(
        said.filter(({ code }) => code !== 0).map(({ said }) => said),
        [],
      )
      assert.equal(
        said.reduce((sum, { data }) => sum + data.applied, 0),
        1,
      )
      const [entry, ...more] = await ctx.verdicts()
      assert.deepEqual([entry?.action, more], ['resume', []])
      assert.equal((await ctx.run('job')).status, 'interrupted')
    })

    test('recoverOnStart logs each active run and each verdict, and returns them', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.start([ctx.module('job.ts', job(2))])
      await ctx.waitForMarks('held')
      program.signal('SIGKILL')
      await program.waitForExit()
      const lines: string[] = []
      const options = { db: ctx.database.url, log: (line: string) => lines.push(line) }

      const looked = await recoverOnStart({ ...options, dryRun: true })
      assert.deepEqual(
        looked.verdicts.map(({ action, outcome }) => [action, outcome]),
        [['resume', 'planned']],
      )
      assert.deepEqual(await ctx.verdicts(), [])
      const report = await recoverOnStart(options)

      assert.equal(report.error, null)
      assert.deepEqual(
        report.active.map(({ source }) => source),
        ['job'],
      )
      assert.deepEqual(
        report.verdicts.map(({ action, outcome }) => [action, outcome]),
        [['resume', 'applied']],
      )
      assert.match(lines.join('\n'), /run \w{8} of job is running: 0\/1 done/)
      assert.match(lines.join('\n'), /recovery: resume target \w{8} of job .*: process \d+/)
      assert.equal((await ctx.verdicts()).length, 1)
    })

    test('cancel reaches a running worker within seconds: it saves the page in hand and stops', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.unstuck(
        'work',
        ctx.crawl(`
          *targets() { yield { key: 'a' } },
          async page({ target, page }) {
            mark('page', target.key, page)
            await sleep(300)
            return { next: 'next', inTransaction: ledger(target.key, page) }
          },
        `),
        '--drain',
      )
      await ctx.waitForMarks('page', 2)
      const { id } = await ctx.run()

      const { code, data } = await cli(ctx, 'cancel', id, '--because', 'wrong list')
      assert.deepEqual([code, data.run.status, data.run.error], [0, 'cancelled', 'wrong list'])

      assert.equal(await program.waitForExit(), 0, program.output)
      assert.match(program.output, /has ended: finishing its pages in progress/)
      const a = await ctx.target('a')
      assert.deepEqual(
        [a.status, a.crashes, a.attempts],
        ['planned', 0, 0],
        'a stop costs it nothing',
      )
      assert.equal((await ctx.ledger()).length, a.page, 'the page in hand was saved')
      assert.equal((await ctx.run()).status, 'cancelled')
    })

    test('a run that overran is failed for a timeout, and a page that hangs does not keep its worker from the next run', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(`
        *targets() { yield { key: 'a' } },
        async page({ target }) {
          mark('page', target.key)
          if (marked('page') === 1) await opened('never')
          return { next: null }
        },
        policy: { heartbeat: '400ms', lease: '2s', startupGrace: '0s', maxDuration: '6s', onStalled: 'fail' },
      `)
      const program = ctx.unstuck('work', crawl)
      await ctx.waitForMarks('page')
      const first = await ctx.run()
      await waitFor('the timeout', async () => (await ctx.run()).status === 'failed')
      assert.match(
        (await ctx.run()).error!,
        /^timeout: running for \d+ s, longer than maxDuration 6 s/,
      )

      assert.equal((await cli(ctx, 'retry', first.id)).code, 0)
      await waitFor('the next run', async () => (await ctx.run()).status === 'succeeded')

      await program.waitForOutput(/a dropped: .*timeout/)
      assert.deepEqual(
        (await ctx.verdicts()).map(({ action }) => action),
        ['fail', 'retry'],
      )
    })

    test('work marks a dead run as abandoned and begins a new one, as check announced', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(
        `*targets() { yield { key: 'a' } }, async page() { return { next: null } }`,
      )
      assert.equal((await cli(ctx, 'enqueue', crawl)).code, 0)
      const store = await ctx.store()
      const worker = await registerWorker(store, { source: 'stage' })
      assertAllOk(await store.release([await claimOne(store, worker, { source: 'stage' })]))
      await store.retireWorker(worker)
      await store.settle()
      await ctx.database.advanceClock(25 * HOUR)
      const dead = await ctx.run()
      assert.equal((await cli(ctx, 'check', 'stage')).data.action, 'clean')

      const program = ctx.unstuck('work', crawl, '--drain')

      assert.equal(await program.waitForExit(), 0, program.output)
      assert.equal((await store.run(dead.id))!.status, 'abandoned')
      const next = await ctx.run()
      assert.notEqual(next.id, dead.id)
      assert.equal(next.status, 'succeeded')
      assert.match(program.output, /recovery: abandon run \w{8} of stage/)
    })

    test('a page that hangs is taken from its live worker after a timeout: retried, then failed, the rest is done', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.unstuck(
        'work',
        ctx.crawl(`
          *targets() { yield { key: 'hangs', group: 'CA' }; yield { key: 'fine', group: 'TX' } },
          async page({ target }) {
            mark('page', target.key)
            if (target.key === 'hangs') await opened('never')
            return { next: null }
          },
          concurrency: 2,
          policy: { heartbeat: '400ms', lease: '2s', startupGrace: '0s', groups: { CA: { maxSilence: '2s', onStalled: 'resume', retries: 1 } } },
        `),
        '--drain',
      )
      assert.equal(await program.waitForExit(), 3, program.output)

      const hangs = await ctx.target('hangs')
      assert.deepEqual([hangs.status, hangs.crashes, hangs.errors], ['failed', 0, 2])
      assert.match(
        hangs.lastError!,
        /^timeout: process \d+ .* is alive.*no progress for \d+ s, again after 1/,
      )
      assert.equal((await ctx.target('fine')).status, 'done')
      assert.match((await ctx.run()).error!, /^timeout/)
      await program.waitForOutput(/hangs dropped: .*revoked: timeout/)
      assert.equal(ctx.marks('page').filter(({ key }) => key === 'hangs').length, 2)
      const trail = (await ctx.verdicts()).map(({ action }) => action)
      assert.deepEqual(trail, ['resume', 'fail'])
    })

    test('the monitor cleans dead runs by age only if the policy allows it, and otherwise logs them once', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const store = await ctx.store()
      const leave = async (source: string, policy: string): Promise<void> => {
        const text = `const unstuck = await open({ policy: ${policy} }); await unstuck.begin('${source}'); await unstuck.close()`
        assert.equal(await ctx.start([ctx.module(`${source}.ts`, text)]).waitForExit(), 0)
        await ageRuns(ctx, source, 25 * HOUR)
      }
      await leave('kept', `{}`)
      await leave('swept', `{ autoClean: true }`)
      const neighbour = ctx.unstuck('work', ctx.module('neighbour.ts', OTHER_CRAWL))

      await neighbour.waitForOutput(/recovery: abandon run \w{8} of swept/)
      await neighbour.waitForOutput(/ALERT: run \w{8} of kept: .*25 h old.* See: unstuck clean/)
      await new Promise((resolve) => setTimeout(resolve, 2_500))

      assert.equal((await ctx.run('swept')).status, 'abandoned')
      assert.equal((await ctx.run('kept')).status, 'interrupted')
      assert.equal(
        neighbour.output.match(/ALERT: run \w{8} of kept/g)!.length,
        1,
        'said once, not with every look',
      )
      assert.equal((await store.audit({ limit: 10 })).length, 1)
    })
  })
}

describe('(g) recovery meets an unreachable database at server start', () => {
  const SERVER = `
    import { createServer } from 'node:http'
    import { recoverOnStart } from '${new URL('../../src/index.ts', import.meta.url).href}'
    const recovered = recoverOnStart({ db: process.env.DB, timeout: '2s' })
    createServer((_, response) => response.end('up')).listen(0, function () {
      console.log('listening on ' + this.address().port)
    })
    const { error, active, verdicts } = await recovered
    console.log('recovered: ' + JSON.stringify({ error, active, verdicts }))
  `
  const startOn = (ctx: ProcessTestContext, db: string) =>
    ctx.start([ctx.module('server.ts', SERVER)], { env: { DB: db } })

  test('a log function that throws, at once or later, stops nothing', async () => {
    await using ctx = ProcessTestContext.createWithoutDatabase(sqliteEngine)
    const text = `
      import { recoverOnStart } from '${new URL('../../src/index.ts', import.meta.url).href}'
      const db = 'postgres://nobody@127.0.0.1:1/none'
      await recoverOnStart({ db, log: async () => { throw new Error('later') } })
      await recoverOnStart({ db, log: () => { throw new Error('now') } })
      await recoverOnStart({ db: 'sqlite:none/there.db', log: console.log })
      setTimeout(() => console.log('still here'), 50)
    `
    const program = ctx.start([ctx.module('server.ts', text)])
    assert.equal(await program.waitForExit(), 0, program.output)
    assert.match(program.output, /nothing has run yet: there is nothing to recover\nstill here/)
  })

  for (const [what, answers] of [
    ['refuses', false],
    ['never answers', true],
  ] as const) {
    test(`one that ${what}: the server starts, and a warning is logged`, async () => {
      await using ctx = ProcessTestContext.createWithoutDatabase(sqliteEngine)
      const silent: Server = createServer(() => {})
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
      const { port } = silent.address() as { port: number }
      if (!answers) silent.close()

      const server = startOn(ctx, `postgres://nobody:secret@127.0.0.1:${port}/none`)
      await server.waitForOutput(/listening on \d+/)
      const [, at] = /listening on (\d+)/.exec(server.output)!
      assert.equal(await (await fetch(`http://127.0.0.1:${at}/`)).text(), 'up')
      await server.waitForOutput(
        /recovered: \{"error":\{"code":"E_\w+",.+\},"active":\[\],"verdicts":\[\]\}/,
      )

      assert.match(server.output, /\[unstuck\] recovery at the start did not finish/)
      assert.doesNotMatch(server.output, /secret/)
      assert.equal(server.isAlive, true)
      server.signal('SIGKILL')
      await server.waitForExit()
      if (answers) silent.close()
    })
  }
})
