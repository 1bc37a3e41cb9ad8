import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import {
  AlreadyRunningError,
  exitCodeOf,
  open,
  type InTransaction,
  type Unstuck,
} from '../../src/index.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ENGINES, SHORT_LEASE, ProcessTestContext, waitFor } from './harness.ts'

const PAGES = `
  const unstuck = await open({ policy: ${SHORT_LEASE} })
  const run = await unstuck.begin('job')
  mark('begun', '', run.page)
  for (let page = run.page + 1; page <= 3; page++) {
    await run.checkpoint({ page }, ledger('job', page))
  }
`

for (const engine of ENGINES) {
  describe(`a run in one's own code, ${engine.name}`, { concurrency: 3 }, () => {
    test('check, begin, checkpoint, succeed: the contract', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      await using unstuck = await open({ db: ctx.database.url, signals: false })
      await using other = await open({ db: ctx.database.url, signals: false })

      assert.deepEqual(await unstuck.check('job'), {
        source: 'job',
        action: 'start',
        because: 'no run of it is live',
        blockedBy: null,
        run: null,
        checkpoint: null,
        owner: null,
        paused: null,
        nextStartAt: null,
        processes: [],
        severity: 'ok',
        summary: 'job: start. It can start.',
        sections: [
          { heading: null, sentences: ['start: It can start.', 'job: no run of it is live.'] },
        ],
        actions: [],
        undo: null,
      })
      const run = await unstuck.begin('job')
      assert.deepEqual([run.page, run.cursor, run.resumed, run.done], [0, null, false, null])

      const check = await other.check('job')
      assert.deepEqual([check.action, check.run?.id], ['wait', run.id])
      assert.match(
        check.because,
        new RegExp(`process ${process.pid} on .* is alive: last heartbeat`),
      )
      await assert.rejects(other.begin('job'), (error: unknown) => {
        assert.ok(error instanceof AlreadyRunningError)
        assert.deepEqual([exitCodeOf(error), error.data.source, error.data.run], [5, 'job', run.id])
        return /since \d{4}-.*process \d+/.test(error.message)
      })

      const items = [{ url: 'https://portal.example/1', data: { n: 1 } }]
      await run.checkpoint({
        page: 1,
        items,
        next: '/2',
        lastItemId: '1',
        cursor: { at: 1 },
        pageTarget: 3,
      })
      await run.progress({ done: 1, total: 3 })
      await run.release()

      assert.equal((await other.check('job')).action, 'resume')
      const resumed = await other.begin('job')
      assert.deepEqual(
        [
          resumed.id,
          resumed.resumed,
          resumed.page,
          resumed.next,
          resumed.lastItemId,
          resumed.cursor,
          resumed.done,
          resumed.total,
        ],
        [run.id, true, 1, '/2', '1', { at: 1 }, 1, 3],
      )
      await assert.rejects(run.checkpoint({ page: 2 }), /already ended here/)
      await resumed.succeed()
      const { status, counts, progress } = await ctx.run('job')
      assert.deepEqual(
        [status, counts.pages, counts.itemsNew, progress?.done],
        ['succeeded', 1, 1, 1],
      )
      assert.equal((await unstuck.check('job')).action, 'start')
    })

    test("the user's own SQL goes with the page: both or neither", async () => {
      await using ctx = await ProcessTestContext.create(engine)
      await using unstuck = await open({ db: ctx.database.url, signals: false })
      const run = await unstuck.begin('job')
      const insert = ledgerFor(engine.name)
      await run.checkpoint({ page: 1, items: [{ key: 'one', data: 1 }] }, insert(1))

      const failing = run.checkpoint({ page: 2, items: [{ key: 'two', data: 2 }] }, async (tx) => {
        await insert(2)(tx)
        throw new Error('the invoice does not add up')
      })
      await assert.rejects(failing, /the invoice does not add up/)
      assert.equal(run.page, 1)
      assert.deepEqual(await ctx.ledger(), ['job/1'])
      assert.equal((await ctx.run('job')).counts.itemsNew, 1)

      await run.checkpoint({ page: 2, items: [{ key: 'two', data: 2 }] }, insert(2))
      await run.succeed()
      assert.deepEqual(await ctx.ledger(), ['job/1', 'job/2'])
      assert.equal((await ctx.run('job')).counts.itemsNew, 2)
    })

    test('a program that does not call close() exits, and its open runs are released', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.start([ctx.module('job.ts', PAGES)])
      assert.equal(await program.waitForExit(), 0, program.output)
      const run = await ctx.run('job')
      assert.deepEqual([run.status, run.counts.pages], ['interrupted', 3])
      await ctx.assertNoProcessesLeft()
    })

    test('recover({ dryRun }) returns the verdicts with reasons, and applies nothing; recover() applies them', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = ctx.start([
        ctx.module('job.ts', `${PAGES} mark('held'); await opened('never')\n`),
      ])
      await ctx.waitForMarks('held')
      await using unstuck = await open({ db: ctx.database.url, signals: false })
      assert.deepEqual((await unstuck.recover({ dryRun: true })).verdicts, [])
      program.signal('SIGKILL')
      await program.waitForExit()

      const advice = await unstuck.check('job')
      assert.equal(advice.action, 'resume')
      const preview = await unstuck.recover({ dryRun: true })
      const [would, ...more] = preview.verdicts
      assert.deepEqual(more, [])
      assert.deepEqual(
        [would?.action, would?.liveness, would?.from, would?.to, would?.outcome],
        ['resume', 'gone', 'in_progress', 'planned', 'planned'],
      )
      assert.equal(would!.facts['pid'], program.pid)
      assert.match(would!.because, /process \d+ on .*; continues after page 3/)
      assert.equal((await ctx.run('job')).status, 'running')

      const [did] = (await unstuck.recover({ plan: preview.plan })).verdicts
      assert.equal(did?.outcome, 'applied')
      assert.equal((await ctx.run('job')).status, 'interrupted')
      await assert.rejects(unstuck.recover({ plan: preview.plan }), { code: 'E_PLAN_CHANGED' })
      assert.deepEqual((await unstuck.recover()).verdicts, [])
    })
  })
}

describe("a run in one's own code: the rest of the contract", { concurrency: 3 }, () => {
  const opened = (ctx: ProcessTestContext): Promise<Unstuck> =>
    open({ db: ctx.database.url, signals: false })

  test('fail() ends the run with the error; the next begin starts a new one', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using unstuck = await opened(ctx)
    const run = await unstuck.begin('job')
    await run.checkpoint({ page: 1 })
    await run.fail(new Error('the portal is closed for good'))
    const failed = await ctx.run('job')
    assert.deepEqual([failed.status, failed.error], ['failed', 'the portal is closed for good'])
    const next = await unstuck.begin('job')
    assert.notEqual(next.id, run.id)
    assert.deepEqual([next.page, next.resumed], [0, false])
  })

  test('`await using` releases a run that was not ended', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using unstuck = await opened(ctx)
    {
      await using run = await unstuck.begin('job')
      await run.checkpoint({ page: 7 })
    }
    assert.equal((await ctx.run('job')).status, 'interrupted')
    assert.equal((await unstuck.begin('job')).page, 7)
  })

  test('several runs at once in one process, begun at the same moment', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using unstuck = await opened(ctx)
    const runs = await Promise.all(['a', 'b', 'c'].map((source) => unstuck.begin(source)))
    for (const run of runs) await run.checkpoint({ page: 1 })
    for (const run of runs) await run.succeed()
    for (const run of runs) assert.equal((await ctx.run(run.source)).status, 'succeeded')
  })

  test('a begin that failed can be tried again', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using unstuck = await opened(ctx)
    await ctx.database.raw('ALTER TABLE worker RENAME TO worker_away')
    await assert.rejects(unstuck.begin('job'))
    await ctx.database.raw('ALTER TABLE worker_away RENAME TO worker')
    const run = await unstuck.begin('job')
    const workers = await (await ctx.store()).observations()
    assert.deepEqual(
      workers.map(({ worker }) => worker.process.pid),
      [process.pid],
    )
    await run.succeed()
    assert.equal((await ctx.run('job')).status, 'succeeded')
  })

  test('SIGTERM between two runs is not swallowed, and after one in a run no other begins', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const idle = ctx.start([
      ctx.module('idle.ts', `${PAGES} await run.succeed(); mark('idle'); await opened('never')\n`),
    ])
    await ctx.waitForMarks('idle')
    idle.signal('SIGTERM')
    assert.equal(await idle.waitForExit(), 'SIGTERM')

    const next = ctx.start([
      ctx.module(
        'next.ts',
        `
        ${PAGES}
        mark('waiting')
        while (!run.signal.aborted) await sleep(10)
        await run.succeed()
        await unstuck.begin('another').catch((error) => (process.exitCode = exitCodeOf(error)))
        await unstuck.close()
        `,
      ),
    ])
    await ctx.waitForMarks('waiting')
    next.signal('SIGTERM')
    assert.equal(await next.waitForExit(), 75, next.output)
    assert.deepEqual((await (await ctx.store()).runs({ source: 'another', limit: 1 })).items, [])
  })

  test('summary() sorts live runs into active, resumable and dead', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const past = await opened(ctx)
    await past.begin('dead')
    await past.close()
    await ctx.database.advanceClock(25 * 3_600_000)
    await using unstuck = await opened(ctx)
    const resumable = await unstuck.begin('resumable')
    await resumable.checkpoint({ page: 1 })
    await resumable.release()
    await unstuck.begin('active')
    await (await unstuck.begin('over')).succeed()

    const { total, active, resumable: left, dead, ended } = await unstuck.summary()
    const sources = Object.entries({ active, resumable: left, dead }).map(([name, runs]) => [
      name,
      runs.map((run) => run.source),
    ])
    assert.equal(total, 3)
    assert.deepEqual(Object.fromEntries(sources), {
      active: ['active'],
      resumable: ['resumable'],
      dead: ['dead'],
    })
    assert.deepEqual(ended, { succeeded: 1, failed: 0, cancelled: 0, abandoned: 0 })
    assert.equal((await unstuck.check('dead')).action, 'clean')
  })

  test('an invalid page is rejected before anything is written', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    await using unstuck = await opened(ctx)
    const run = await unstuck.begin('job')
    await assert.rejects(
      run.checkpoint({ page: 0 }),
      /checkpoint\(\) saved nothing: page must be a whole number from 1/,
    )
    await assert.rejects(
      run.checkpoint({ page: 1, items: [{ data: 1 } as never] }),
      /Item 1 of page 1 has neither/,
    )
    const seq = await run.checkpoint({ page: 5 })
    assert.deepEqual(await run.checkpoint({ page: 5 }), seq)
    const behind = { code: 'E_PAGE_BEHIND' }
    await assert.rejects(run.checkpoint({ page: 5, skipped: 1 }), behind)
    await assert.rejects(run.checkpoint({ page: 4 }), behind)
    await assert.rejects(unstuck.begin(''), /A source is a name/)
    await assert.rejects(open({ policy: { lease: '1s', heartbeat: '1s' } }), /at least three beats/)
    assert.equal((await ctx.run('job')).counts.pages, 1)
  })

  test('SIGTERM fires the run’s signal; the write in hand is saved, the rest is resumable', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const program = ctx.start([
      ctx.module(
        'job.ts',
        `
        ${PAGES}
        mark('waiting')
        run.signal.addEventListener('abort', () => mark('told'))
        while (!run.signal.aborted) await sleep(10)
        await run.checkpoint({ page: 4 })
        try { run.signal.throwIfAborted() } catch (error) {
          if (!(error instanceof StoppingError)) throw error
          process.exitCode = exitCodeOf(error)
        }
        await unstuck.close()
        `,
      ),
    ])
    await ctx.waitForMarks('waiting')
    program.signal('SIGTERM')
    assert.equal(await program.waitForExit(), 75, program.output)
    assert.equal(ctx.marks('told').length, 1)
    const run = await ctx.run('job')
    assert.deepEqual([run.status, run.counts.pages], ['interrupted', 4])
  })

  test('P1 a process suspended beyond its lease gets ClaimLostError', async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const job = ctx.module(
      'job.ts',
      `
      ${PAGES}
      mark('waiting')
      await opened('gate')
      try { await run.checkpoint({ page: 4 }, ledger('job', 4)) } catch (error) {
        if (error instanceof LeaseLostError) process.exitCode = exitCodeOf(error)
        mark(run.signal.reason instanceof LeaseLostError ? 'signal fired' : 'signal silent')
      }
      await unstuck.close()
      `,
    )
    const zombie = ctx.start([job])
    await ctx.waitForMarks('waiting')
    await ctx.freeze(zombie)
    await using unstuck = await opened(ctx)
    const run = await waitFor('the run is free', () =>
      unstuck.begin('job').catch((error: unknown) => {
        if (error instanceof AlreadyRunningError) return null
        throw error
      }),
    )
    assert.deepEqual([run.resumed, run.page], [true, 3])
    ctx.openGate('gate')
    zombie.signal('SIGCONT')
    assert.equal(await zombie.waitForExit(), 6, zombie.output)
    assert.equal(ctx.marks('signal fired').length, 1)
    await run.succeed()
    assert.deepEqual(await ctx.ledger(), ['job/1', 'job/2', 'job/3'])
    assert.ok((await ctx.run('job')).counts.refused >= 1)
  })
})

function ledgerFor(engine: string): (page: number) => InTransaction {
  const values = engine === 'postgres' ? '$1, $2' : '?, ?'
  const text = `INSERT INTO ledger (target_key, page) VALUES (${values})`
  return (page) => (tx) => tx.query(text, ['job', page])
}
