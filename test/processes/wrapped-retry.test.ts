import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../src/core/model/run.ts'
import { ENGINES, ProcessTestContext } from './harness.ts'

const [sqlite] = ENGINES
const bash = (script: string): string[] => ['--', 'bash', '-c', script]

/** The runs of the source, oldest first. */
async function runs(ctx: ProcessTestContext): Promise<Run[]> {
  const { items } = await (await ctx.store()).runs({ source: 'report', limit: 50 })
  return items.toReversed()
}

/** Queues a run and works on the queue until it is empty. */
async function drain(
  ctx: ProcessTestContext,
  script: string,
): Promise<{ code: number | string; output: string }> {
  assert.equal(await ctx.unstuck('enqueue', 'report', '--input', '{"n":1}').waitForExit(), 0)
  const worker = ctx.unstuck('work', '--source', 'report', '--exec', '--drain', ...bash(script))
  return { code: await worker.waitForExit(), output: worker.output }
}

async function shown(ctx: ProcessTestContext, ...args: string[]): Promise<string> {
  const program = ctx.unstuck(...args)
  await program.waitForExit()
  return program.output
}

for (const engine of ENGINES) {
  test(`${engine.name}: a queued command that was killed with nothing done is retried once, as the run of a dead worker is`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const once = '[ -e killed ] && echo "second $UNSTUCK_INPUT" && exit; > killed; kill -9 $$'
    const { output } = await drain(ctx, once)
    assert.match(output, /\] second \{"n":1\}/)
    const [first, second, ...more] = await runs(ctx)
    assert.deepEqual(
      [first!.status, first!.retries, second!.status, second!.retries, second!.retryOf],
      ['failed', 0, 'succeeded', 1, first!.id],
    )
    assert.deepEqual(more, [])
    const [verdict, ...others] = await ctx.verdicts()
    assert.deepEqual(others, [])
    assert.deepEqual([verdict!.action, verdict!.run], ['retry', first!.id])
    const because = /its command ended: killed \(SIGKILL\).*; nothing was done yet/
    for (const text of [verdict!.because, first!.error!]) assert.match(text, because)
    for (const args of [['show', first!.id], ['explain', first!.id], ['history']])
      assert.match((await shown(ctx, ...args)).replaceAll(/\s+/g, ' '), because, args[0])
  })

  test(`${engine.name}: one that is killed each time fails after its retries, and the policy counts them`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const { code } = await drain(ctx, 'kill $$; sleep 60')
    assert.equal(code, 3)
    const [first, second, ...more] = await runs(ctx)
    assert.deepEqual([first!.status, second!.status, more], ['failed', 'failed', []])
    const verdicts = await ctx.verdicts()
    assert.deepEqual(
      verdicts.map(({ action, run }) => [action, run]),
      [
        ['retry', first!.id],
        ['fail', second!.id],
      ],
    )
    assert.match(second!.error!, /with nothing done, 2 times: its command ended: ended by SIGTERM/)

    ctx.writeConfig({ report: { runRetries: 0 } })
    await drain(ctx, 'kill $$; sleep 60')
    assert.equal((await runs(ctx)).length, 3)
    assert.equal((await ctx.verdicts()).at(-1)!.action, 'fail')
  })
}

test('one that failed by itself is not retried: by an exit code, or a fault of its own', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  await drain(ctx, 'echo "no quota" >&2; exit 1')
  await drain(ctx, 'kill -ABRT $$; sleep 60')
  assert.deepEqual(
    (await runs(ctx)).map(({ status, error }) => [status, error]),
    [
      ['failed', 'exit code 1: no quota'],
      ['failed', 'ended by SIGABRT'],
    ],
  )
  assert.deepEqual(await ctx.verdicts(), [])
})

test('in `unstuck run` the restart policy decides alone', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const once = ctx.unstuck('run', 'report', ...bash('kill -9 $$'))
  assert.equal(await once.waitForExit(), 137)
  assert.deepEqual(
    (await runs(ctx)).map(({ status }) => status),
    ['failed'],
  )
  const restarts = '--restart on-failure --restart-delay 10ms --max-restarts 1'.split(' ')
  await ctx.unstuck('run', 'report', ...restarts, ...bash('kill -9 $$')).waitForExit()
  assert.deepEqual(
    (await runs(ctx)).map(({ status, retries }) => [status, retries]),
    Array(3).fill(['failed', 0]),
  )
  assert.deepEqual(await ctx.verdicts(), [])
})
