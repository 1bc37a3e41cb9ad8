import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kill, ProcessTestContext, SOME_ENGINES } from '../processes/harness.ts'
import { noPython, runProgram } from './python.ts'

/** One run in a loop of one's own, in Python, under `unstuck run`. */

type Begun = { page: number; cursor: unknown; resumed: boolean; last: string | null; pid: number }

const begun = (ctx: ProcessTestContext): (readonly unknown[])[] =>
  (ctx.marks('begun') as unknown as Begun[]).map(({ page, cursor, resumed, last }) => [
    page,
    cursor,
    resumed,
    last,
  ])

const FIRST = [0, { after: 0 }, false, null]

const MODES = { plain: {}, asyncio: { IS_ASYNC: '1' } }

for (const engine of SOME_ENGINES) {
  for (const [mode, env] of Object.entries(MODES)) {
    describe(
      `an own loop in Python, ${mode}, ${engine.name}`,
      {
        skip: noPython,
        concurrency: 2,
      },
      () => {
        test('it saves its pages, reports progress and succeeds', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = runProgram(ctx, 'own_loop.py', ['succeed'], env)
          assert.equal(await program.waitForExit(), 0, program.output)
          assert.deepEqual(begun(ctx), [FIRST])
          const run = await ctx.run()
          assert.deepEqual(
            [run.status, run.counts.pages, run.counts.itemsNew, run.progress],
            ['succeeded', 5, 5, { done: 5, total: 5 }],
          )
        })

        test('left without succeed() it is released, and the next start continues', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const left = runProgram(ctx, 'own_loop.py', ['leave'], env)
          assert.equal(await left.waitForExit(), 75, left.output)
          const next = runProgram(ctx, 'own_loop.py', ['succeed'], env)
          assert.equal(await next.waitForExit(), 0, next.output)
          assert.deepEqual(begun(ctx), [FIRST, [2, { after: 2 }, true, 'item-2']])
          assert.deepEqual(await counts(ctx), ['succeeded', 5])
        })

        test('an exception releases it as well, with its message', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const broken = runProgram(ctx, 'own_loop.py', ['raise'], env)
          assert.equal(await broken.waitForExit(), 1, broken.output)
          assert.match(broken.output, /^.*ValueError: page 3 is broken$/m)
          const [target] = (await ctx.targets()).values()
          assert.equal(target?.lastError, 'ValueError: page 3 is broken')
          const next = runProgram(ctx, 'own_loop.py', ['succeed'], env)
          assert.equal(await next.waitForExit(), 0, next.output)
          assert.deepEqual(begun(ctx)[1], [3, { after: 3 }, true, 'item-3'])
          assert.deepEqual(await counts(ctx), ['succeeded', 5])
        })

        test('fail() ends it as failed', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = runProgram(ctx, 'own_loop.py', ['fail'], env)
          assert.equal(await program.waitForExit(), 1, program.output)
          const run = await ctx.run()
          assert.deepEqual([run.status, run.error], ['failed', 'the portal is closed'])
        })

        for (const to of ['Unstuck', 'the program']) {
          test(`SIGTERM to ${to} ends it after the page in progress with exit code 75`, async () => {
            await using ctx = await ProcessTestContext.create(engine)
            const program = runProgram(ctx, 'own_loop.py', ['wait'], env)
            const [{ pid }] = (await ctx.waitForMarks('begun')) as unknown as [Begun]
            await ctx.waitForMarks('saved', 2)
            if (to === 'Unstuck') program.signal('SIGTERM')
            else kill(pid, 'SIGTERM')
            await ctx.waitForMarks('stopping')
            ctx.openGate('go')
            assert.equal(await program.waitForExit(), 75, program.output)
            assert.doesNotMatch(program.output, /Traceback/)
            assert.equal(ctx.marks('after').length, 0)
            const next = runProgram(ctx, 'own_loop.py', ['succeed'], env)
            assert.equal(await next.waitForExit(), 0, next.output)
            assert.equal(begun(ctx).length, 2)
            assert.deepEqual(await counts(ctx), ['succeeded', 5])
          })
        }

        test('a program about another source says so', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = runProgram(ctx, 'own_loop.py', ['succeed', 'other'], env)
          assert.equal(await program.waitForExit(), 1, program.output)
          assert.match(program.output, /for the source stage, but it is about other/)
        })
      },
    )
  }
}

async function counts(ctx: ProcessTestContext): Promise<readonly unknown[]> {
  const run = await ctx.run()
  return [run.status, run.counts.pages]
}
