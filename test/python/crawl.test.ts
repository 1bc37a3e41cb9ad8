import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { kill, ProcessTestContext, SOME_ENGINES, waitFor } from '../processes/harness.ts'
import { noPython, workOn } from './python.ts'

/** Crawls in Python under the real command, in threads and in an event loop. */

const TARGETS = 12
const PAGES = 5
const MODES = { threads: {}, 'an event loop': { IS_ASYNC: '1' } }

/** Marks of the programs have more fields than those of crawls in TypeScript. */
function marksOf<T>(ctx: ProcessTestContext, what: string): (T & { readonly pid: number })[] {
  return ctx.marks(what) as unknown as (T & { readonly pid: number })[]
}

const pagesRead = (ctx: ProcessTestContext): string[] =>
  marksOf<{ key: string; page: number }>(ctx, 'page').map(({ key, page }) => `${key}/${page}`)

for (const engine of SOME_ENGINES) {
  for (const [mode, env] of Object.entries(MODES)) {
    describe(
      `a crawl in Python, in ${mode}, ${engine.name}`,
      {
        skip: noPython,
        concurrency: 2,
      },
      () => {
        test('two copies plan the run once and save each page once', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = workOn(ctx, { program: 'directory.py', env })
          assert.equal(await program.waitForExit(), 0, program.output)
          assert.doesNotMatch(program.output, /failed, attempt/)
          const counts = ['targets', 'setup', 'teardown'].map((what) => ctx.marks(what).length)
          assert.deepEqual(counts, [1, 2, 2])
          assert.equal(pagesRead(ctx).length, TARGETS * PAGES)
          await assertComplete(ctx)
          const target = await ctx.target('city-4')
          assert.deepEqual(
            [target.group, target.page, target.pageTarget, target.lastItemId],
            ['state-1', PAGES, PAGES, `item-${PAGES}`],
          )
          await ctx.assertNoProcessesLeft()
        })

        test('one page at a time, over a Unix socket', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const flags = ['--drain', '--socket']
          const single = { ...env, CONCURRENCY: '1' }
          const program = workOn(ctx, { program: 'directory.py', env: single, flags })
          assert.equal(await program.waitForExit(), 0, program.output)
          await assertComplete(ctx)
        })

        test('kill -9 of its processes loses no saved page', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          ctx.writeConfig({ stage: { heartbeat: '400ms', lease: '2s', maxCrashes: 50 } })
          const program = workOn(ctx, { program: 'directory.py', env: { ...env, PAUSE: '0.05' } })
          const killed = new Set<number>()
          for (const pages of [8, 24, 40]) {
            await ctx.waitForMarks('page', pages)
            const { pid } = marksOf(ctx, 'page').findLast(({ pid }) => !killed.has(pid))!
            killed.add(pid)
            kill(pid, 'SIGKILL')
          }
          assert.equal(await program.waitForExit(), 0, program.output)
          await assertComplete(ctx)
          // At most the pages that were in flight are fetched again.
          const again = pagesRead(ctx).length - TARGETS * PAGES
          assert.ok(again >= 0 && again <= killed.size * 4, `${again} pages were read again`)
        })

        test('SIGTERM: pages in progress are saved, targets released, teardown is called', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = workOn(ctx, { program: 'directory.py', env: { ...env, GATE: 'go' } })
          await ctx.waitForMarks('page', 8)
          program.signal('SIGTERM')
          await ctx.waitForMarks('stopping', 8)
          ctx.openGate('go')
          // Work is left.
          assert.equal(await program.waitForExit(), 75, program.output)
          assert.equal(ctx.marks('teardown').length, 2)
          const targets = [...(await ctx.targets()).values()]
          const started = targets.filter(({ page }) => page === 1)
          assert.equal(started.length, 8)
          assert.ok(targets.every(({ status, crashes }) => status === 'planned' && crashes === 0))
          const after = workOn(ctx, { program: 'directory.py', env })
          assert.equal(await after.waitForExit(), 0, after.output)
          assert.equal(pagesRead(ctx).length, TARGETS * PAGES)
          await assertComplete(ctx)
        })

        test('SIGTERM to one process releases its targets to the others', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = workOn(ctx, { program: 'directory.py', env: { ...env, GATE: 'go' } })
          await ctx.waitForMarks('page', 8)
          const [{ pid }] = marksOf(ctx, 'page') as [{ pid: number }]
          kill(pid, 'SIGTERM')
          await ctx.waitForMarks('stopping', 4)
          ctx.openGate('go')
          assert.equal(await program.waitForExit(), 0, program.output)
          assert.equal(pagesRead(ctx).length, TARGETS * PAGES)
          await assertComplete(ctx)
        })

        test('a cancelled run ends the program after the pages in progress', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = workOn(ctx, { program: 'directory.py', env: { ...env, GATE: 'go' } })
          await ctx.waitForMarks('page', 8)
          const cancel = ctx.unstuck('cancel', (await ctx.run()).id, '--yes')
          assert.equal(await cancel.waitForExit(), 0, cancel.output)
          await ctx.waitForMarks('stopping', 8)
          ctx.openGate('go')
          assert.equal(await program.waitForExit(), 0, program.output)
          assert.equal(ctx.marks('teardown').length, 2)
          assert.equal((await ctx.run()).status, 'cancelled')
          assert.equal(pagesRead(ctx).length, 8)
        })

        test('pages fail, wait, park and go on as they say', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          ctx.writeConfig({ stage: { retries: 1, backoff: '10ms' } })
          const program = workOn(ctx, { program: 'failing.py', env, workers: 1 })
          await program.waitForExit()
          const [planned] = marksOf<{ run: string; input: unknown; source: string }>(ctx, 'targets')
          const { id } = await ctx.run()
          assert.deepEqual([planned?.run, planned?.input, planned?.source], [id, null, 'stage'])
          const targets = await ctx.targets()
          const result = (key: string): unknown[] => {
            const { status, page, lastError } = targets.get(key)!
            return [status, page, lastError?.split('\n')[0] ?? null]
          }
          assert.deepEqual(result('gone'), ['failed', 0, '404: it is gone'])
          assert.deepEqual(result('captcha'), ['parked', 0, 'a captcha'])
          assert.deepEqual(result('later').slice(0, 2), ['done', 1])
          assert.deepEqual(result('broken'), ['failed', 0, "KeyError: 'price'"])
          assert.deepEqual(result('unsaveable').slice(0, 2), ['failed', 0])
          assert.match(String(result('unsaveable')[2]), /items\[0\]\.data is a set/)
          assert.deepEqual(result('no address').slice(0, 2), ['failed', 0])
          assert.match(String(result('no page')[2]), /page\(\) returned NoneType for page 1/)
          assert.deepEqual(result('large').slice(0, 2), ['failed', 0])
          assert.match(String(result('large')[2]), /8 MB/)
          assert.deepEqual(result('cursor').slice(0, 2), ['done', 4])
          for (const n of [1, 2, 3]) assert.deepEqual(result(`fine-${n}`).slice(0, 2), ['done', 1])
          const attempts = marksOf<{ key: string; attempt: number }>(ctx, 'ok')
          assert.equal(attempts.find(({ key }) => key === 'later')?.attempt, 2)
          // Tracebacks are in the output of the command. A failing teardown is no failure.
          assert.match(program.output, /teardown failed[^]*OSError: the browser is gone/)
          assert.match(program.output, /failing\.py", line \d+, in read/)
          assert.match(program.output, /page 1 of broken failed, attempt 2/)
        })

        test('an error of targets() ends the program with its message', async () => {
          await using ctx = await ProcessTestContext.create(engine)
          const program = workOn(ctx, { program: 'broken_plan.py', env })
          await program.waitForOutput(
            'targets() of stage raised RuntimeError: the list of cities is empty. Nothing is lost',
          )
          program.signal('SIGKILL')
        })
      },
    )
  }
}

async function assertComplete(ctx: ProcessTestContext): Promise<void> {
  const run = await waitFor('the end of the run', async () => {
    const run = await ctx.run()
    return run.status === 'succeeded' ? run : null
  })
  const { targets, pages, itemsNew, itemsUpdated, itemsUnchanged } = run.counts
  assert.deepEqual([targets.done, pages, itemsNew], [TARGETS, TARGETS * PAGES, TARGETS * PAGES * 2])
  assert.deepEqual([itemsUpdated, itemsUnchanged], [0, 0])
}
