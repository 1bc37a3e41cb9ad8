import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { SOME_ENGINES, ProcessTestContext, waitFor } from './harness.ts'

async function cli(
  ctx: ProcessTestContext,
  ...args: string[]
): Promise<{ code: number | null; stderr: string; data: any }> {
  const env = { UNSTUCK_DB: ctx.database.url }
  const { code, stdout, stderr } = await unstuck([...args, '--json'], { cwd: ctx.folder, env })
  return { code, stderr, data: stdout === '' ? null : JSON.parse(stdout) }
}

/** Two targets of four pages each; the third page of `a` waits for the gate. */
const CRAWL = `
  *targets() { yield { key: 'a' }; yield { key: 'b' } },
  async page({ target, page }) {
    mark('page', target.key, page)
    if (target.key === 'a' && page === 3) await opened('page')
    return { next: page < 4 ? 'next' : null, inTransaction: ledger(target.key, page) }
  },
`

for (const engine of SOME_ENGINES) {
  describe(`a paused source, ${engine.name}`, { concurrency: false }, () => {
    test('a crawl finishes the page in hand, releases its targets, and goes on when it is unpaused', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.unstuck('work', ctx.crawl(CRAWL))
      await waitFor('page 3 of a', () =>
        ctx.marks('page').some((m) => m.key === 'a' && m.page === 3),
      )

      const { code, data } = await cli(ctx, 'pause', 'stage', '--because', 'their site is down')
      assert.deepEqual([code, data.undo.command], [0, 'unstuck unpause stage'])
      await program.waitForOutput(
        /stage is paused \(their site is down\) until `unstuck unpause stage`: finishing its pages/,
      )
      ctx.openGate('page')
      const a = await waitFor('the release of a', async () => {
        const found = await ctx.target('a')
        return found.status === 'planned' ? found : null
      })
      assert.deepEqual([a.page, a.crashes, a.attempts], [3, 0, 0], 'a pause costs it nothing')

      const status = await cli(ctx, 'status')
      assert.deepEqual(
        [status.code, status.data.runs[0].health, status.data.attention],
        [0, 'paused', []],
      )
      const check = await cli(ctx, 'check', 'stage')
      assert.deepEqual([check.code, check.data.action], [5, 'wait'])
      assert.equal(ctx.marks('page').filter(({ key, page }) => key === 'a' && page > 3).length, 0)

      assert.equal((await cli(ctx, 'unpause', 'stage')).code, 0)
      await waitFor('its end', async () => (await ctx.run()).status === 'succeeded')
      program.signal('SIGTERM')
      assert.equal(await program.waitForExit(), 0, program.output)
      assert.match(program.output, /stopped: SIG/)
      assert.equal((await ctx.ledger()).length, 8, 'each page once')
    })

    test('work --drain that ends at a pause names the command that ends it', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.unstuck('work', ctx.crawl(CRAWL), '--drain')
      await waitFor('page 3 of a', () =>
        ctx.marks('page').some((m) => m.key === 'a' && m.page === 3),
      )
      await cli(ctx, 'pause', 'stage')
      await program.waitForOutput(/stage is paused/)
      ctx.openGate('page')

      assert.equal(await program.waitForExit(), 75, program.output)
      assert.match(program.output, /has work left\. It waits until `unstuck unpause stage`/)
      assert.doesNotMatch(program.output, /Continue it with/)
    })

    test('work --drain does not start a paused source, and work waits for the end of the pause', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const crawl = ctx.crawl(CRAWL)
      ctx.openGate('page')
      assert.equal(await ctx.unstuck('work', crawl, '--drain').waitForExit(), 0)
      assert.equal((await cli(ctx, 'pause', 'stage')).code, 0)
      for (const workers of ['1', '2']) {
        const drain = ctx.unstuck('work', crawl, '--drain', '--workers', workers)
        assert.equal(await drain.waitForExit(), 5, drain.output)
        assert.match(drain.output, /E_SOURCE_PAUSED/)
      }
      const waiting = ctx.unstuck('work', crawl, '--workers', '2')
      await waiting.waitForOutput(/stage is paused/)
      const runs = async (): Promise<number> => (await cli(ctx, 'runs')).data.items.length
      assert.equal(await runs(), 1, 'no new run')
      assert.equal((await cli(ctx, 'unpause', 'stage')).code, 0)
      await waitFor('the next run', async () => (await runs()) === 2)
      await waitFor('its end', async () => (await ctx.run()).status === 'succeeded')
      waiting.signal('SIGTERM')
      assert.equal(await waiting.waitForExit(), 0, waiting.output)
    })

    test('a supervisor that waits is asked to start now, and skips its times while the source is paused', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.unstuck(
        'run',
        'nightly',
        '--interval',
        '10h',
        '--',
        'sh',
        '-c',
        'echo done',
      )
      const runs = async (): Promise<number> => (await cli(ctx, 'runs')).data.items.length
      const nextStart = async (): Promise<string | null> =>
        (await cli(ctx, 'status')).data.sources[0]?.nextStartAt ?? null
      await program.waitForOutput(/starts again in 10 h/)
      const first = await waitFor('the next start', nextStart)
      assert.ok(Date.parse(first) > Date.now() + 9 * 3_600_000)
      assert.equal((await cli(ctx, 'show', 'nightly')).data.source.nextStartAt, first)
      assert.equal((await cli(ctx, 'check', 'nightly')).data.nextStartAt, first)

      const planned = await cli(ctx, 'run-now', 'nightly', '--dry-run')
      assert.match(planned.data.summary, /would start it now, instead of in 10 h/)
      assert.equal((await cli(ctx, 'run-now', 'nightly')).code, 0)
      await program.waitForOutput(/starting now, as requested/)
      await waitFor('the second run', async () => (await runs()) === 2)
      await waitFor('the next start', nextStart)

      assert.equal((await cli(ctx, 'pause', 'nightly')).code, 0)
      const refused = await cli(ctx, 'run-now', 'nightly')
      assert.match(refused.stderr, /nightly is paused/)
      assert.equal((await cli(ctx, 'unpause', 'nightly')).code, 0)
      assert.equal((await cli(ctx, 'run-now', 'nightly')).code, 0)
      await waitFor('the third run', async () => (await runs()) === 3)

      program.signal('SIGTERM')
      await program.waitForExit()
      assert.equal(await nextStart(), null, 'no supervisor waits any more')
      const none = await cli(ctx, 'run-now', 'nightly')
      assert.equal(none.code, 2)
      assert.match(none.stderr, /unstuck run nightly -- sh -c/)
    })

    test('a schedule skips its times while the source is paused, and a single run is refused', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const command = ['--', 'sh', '-c', 'echo done']
      assert.equal(await ctx.unstuck('run', 'portal', ...command).waitForExit(), 0)
      assert.equal((await cli(ctx, 'pause', 'portal', '--because', 'their site is down')).code, 0)

      const once = ctx.unstuck('run', 'portal', ...command)
      assert.equal(await once.waitForExit(), 5, once.output)
      assert.match(once.output, /portal has been paused since/)
      const skipping = ctx.unstuck('run', 'portal', '--if-running', 'skip', ...command)
      assert.equal(await skipping.waitForExit(), 0, skipping.output)

      const scheduled = ctx.unstuck('run', 'portal', '--cron', '* * * * * *', ...command)
      await scheduled.waitForOutput(/skipped: portal is paused \(their site is down\)/)
      assert.equal((await cli(ctx, 'runs')).data.items.length, 1)
      assert.equal((await cli(ctx, 'unpause', 'portal')).code, 0)
      await waitFor('the next run', async () => (await cli(ctx, 'runs')).data.items.length > 1)
      scheduled.signal('SIGTERM')
      await scheduled.waitForExit()

      assert.equal((await cli(ctx, 'pause', 'portal')).code, 0)
      const repeated = ctx.unstuck('run', 'portal', '--interval', '10h', ...command)
      await repeated.waitForOutput(/waiting: portal is paused/)
      assert.equal((await cli(ctx, 'unpause', 'portal')).code, 0)
      await repeated.waitForOutput(/run \w+ of portal (starts|resumes)/)
      repeated.signal('SIGTERM')
      await repeated.waitForExit()
    })

    test('a command goes on to its end when its source is paused, and exec workers take no other run of it', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const gate = `while [ ! -e gate ]; do sleep 0.05; done`
      const worker = ctx.unstuck('work', '--exec', '--source', 'report-*', '--', 'sh', '-c', gate)
      await cli(ctx, 'enqueue', 'report-1')
      await waitFor('its start', async () => (await ctx.run('report-1')).status === 'running')
      assert.match((await cli(ctx, 'pause', 'report-1')).data.summary, /goes on to its end/)
      await cli(ctx, 'enqueue', 'report-2')
      await cli(ctx, 'pause', 'report-2')
      const { data } = await cli(ctx, 'status')
      assert.deepEqual(
        data.runs.map((run: any) => run.health),
        ['paused', 'paused'],
      )
      writeFileSync(join(ctx.folder, 'gate'), '')
      await waitFor('its end', async () => (await ctx.run('report-1')).status === 'succeeded')
      assert.equal((await ctx.run('report-2')).status, 'queued')
      await cli(ctx, 'unpause', 'report-2')
      await waitFor('the other', async () => (await ctx.run('report-2')).status === 'succeeded')
      worker.signal('SIGTERM')
      await worker.waitForExit()
    })
  })
}
