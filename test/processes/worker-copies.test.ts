import assert from 'node:assert/strict'
import { execPath } from 'node:process'
import { describe, test } from 'node:test'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { COMMAND_STORE } from '../../src/features/commands/store/store.ts'
import { kill, ProcessTestContext, SOME_ENGINES, waitFor, type Program } from './harness.ts'
import { findWatchdog } from './wrapped.ts'

/**
 * A worker without a client library. Each target has two pages. `slow…` waits for its gate before page 2; `poison` kills its
 * process; `TARGETS` names them.
 */
const WORKER = `
const { UNSTUCK_URL, UNSTUCK_TOKEN, TARGETS = '' } = process.env
let isStopping = false
process.on('SIGTERM', () => { isStopping = true; mark('sigterm') })
async function call(path: string, body?: unknown): Promise<any> {
  const response = await fetch(UNSTUCK_URL + path, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: 'Bearer ' + UNSTUCK_TOKEN, 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = await response.json()
  if (response.status === 409) mark(answer.error.code)
  return answer
}
async function workOn({ id, key, page }: any): Promise<void> {
  for (let n = page + 1; n <= 2; n++) {
    if (isStopping) return void (await call('/targets/' + id + '/release', {}))
    mark('page', key, n)
    if (key === 'poison') process.kill(process.pid, 'SIGKILL')
    if (key.startsWith('slow') && n === 2) await opened(key)
    const items = [{ key: key + '-' + n, data: { n } }]
    const { error } = await call('/targets/' + id + '/checkpoint', { page: n, items, done: n === 2 })
    if (error) return
    mark('saved', key, n)
  }
}
mark('start')
const { planned } = await call('')
if (!planned && (await call('/planning', {})).planner) {
  await call('/targets', { targets: TARGETS.split(' ').map((key) => ({ key, group: key[0] })) })
  await call('/targets/planned', {})
}
while (!isStopping) {
  const { targets, ended, stop } = await call('/claim', { waitMs: 5_000, single: true })
  if (ended || stop) break
  for (const target of targets) await workOn(target)
}
mark('end')
`

const ARGS = ['work', '--exec', '--targets', '--source', 'stage']

function start(ctx: ProcessTestContext, targets: string, ...options: string[]): Program {
  const worker = ctx.module('worker.ts', WORKER)
  const { url } = ctx.database
  const env = { TARGETS: targets, UNSTUCK_DB: url }
  const cli = new URL('../../bin/unstuck.js', import.meta.url).pathname
  return ctx.start([cli, ...ARGS, ...options, '--', execPath, worker], { env })
}

async function cli(ctx: ProcessTestContext, ...args: string[]) {
  const env = { UNSTUCK_DB: ctx.database.url }
  return unstuck(args, { cwd: ctx.folder, env })
}

const pageMark = (key: string, page: number) => (ctx: ProcessTestContext) =>
  waitFor(`page ${page} of ${key}`, () =>
    ctx.marks('page').find((mark) => mark.key === key && mark.page === page),
  )

async function statuses(ctx: ProcessTestContext): Promise<Record<string, string>> {
  return Object.fromEntries([...(await ctx.targets())].map(([key, { status }]) => [key, status]))
}

for (const engine of SOME_ENGINES) {
  describe(`copies of a command that claim targets, ${engine.name}`, { concurrency: 2 }, () => {
    test('a crawl is planned once, worked on by every copy, and ends; the summary counts it', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = start(ctx, 'a b slow1 slow2', '--workers', '2', '--drain')
      await pageMark('slow1', 2)(ctx)
      await pageMark('slow2', 2)(ctx)
      assert.equal(
        (await cli(ctx, 'show', 'stage')).stdout.match(/worker\.ts: running$/gm)?.length,
        2,
      )
      assert.equal(new Set(ctx.marks('page').map(({ pid }) => pid)).size, 2)
      ctx.openGate('slow1')
      ctx.openGate('slow2')
      assert.equal(await program.waitForExit(), 0, program.output)
      assert.match(program.output, /stage, succeeded: 8 pages by all its workers; items: 8 new/)
      assert.equal(ctx.marks('page').length, 8)
      const progress = await cli(ctx, 'progress', 'stage', '--json')
      assert.deepEqual(
        JSON.parse(progress.stdout).items[0].rows.map((row: any) => [row.group, row.done]),
        [
          ['a', 1],
          ['b', 1],
          ['s', 2],
        ],
      )
      await ctx.assertNoProcessesLeft()
    })

    test('P11 a command that is killed: another copy continues after the last saved page, with the same account', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = start(ctx, 'slow', '--drain')
      const { pid } = await pageMark('slow', 2)(ctx)
      kill(pid, 'SIGKILL')
      await waitFor('page 2 by another process', () =>
        ctx.marks('page').find((mark) => mark.page === 2 && mark.pid !== pid),
      )
      const target = await ctx.target('slow')
      assert.deepEqual([target.page, target.crashes, target.attempts], [1, 0, 2])
      ctx.openGate('slow')
      assert.equal(await program.waitForExit(), 0, program.output)
      assert.deepEqual(
        ctx.marks('page').map(({ page }) => page),
        [1, 2, 2],
      )
      const [verdict] = await ctx.verdicts()
      assert.equal(verdict?.action, 'resume')
      assert.match(
        verdict.because,
        /^its command ended: killed \(SIGKILL\) .*; continues after page 1/,
      )
    })

    test('P8 the watchdog or Unstuck itself is killed: the command ends with it, and its targets are free', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const one = start(ctx, 'slow')
      const first = await pageMark('slow', 2)(ctx)
      const watchdog = await waitFor('the watchdog', () => findWatchdog(one))
      kill(watchdog, 'SIGKILL')
      const second = await waitFor('page 2 by another process', () =>
        ctx.marks('page').find((mark) => mark.page === 2 && mark.pid !== first.pid),
      )
      assert.ok(!ctx.processes().includes(first.pid))

      const other = start(ctx, 'slow', '--drain')
      await other.waitForOutput(/working on stage/)
      one.signal('SIGKILL')
      await waitFor('page 2 by a third process', () =>
        ctx
          .marks('page')
          .find(({ page, pid }) => page === 2 && ![first.pid, second.pid].includes(pid)),
      )
      ctx.openGate('slow')
      assert.equal(await other.waitForExit(), 0, other.output)
      assert.equal((await ctx.target('slow')).page, 2)
      assert.equal(ctx.marks('saved').length, 2)
      await ctx.assertNoProcessesLeft()
    })

    test('P1 a worker that was suspended until its lease ran out saves nothing afterwards', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      ctx.writeConfig({ stage: { heartbeat: '400ms', lease: '2s' } })
      const one = start(ctx, 'slow')
      const late = await pageMark('slow', 2)(ctx)
      const watchdog = await waitFor('the watchdog', () => findWatchdog(one))
      const other = start(ctx, 'slow', '--drain')
      await other.waitForOutput(/working on stage/)
      await ctx.freeze({ pid: watchdog })
      const owner = await waitFor('page 2 by another process', () =>
        ctx.marks('page').find((mark) => mark.page === 2 && mark.pid !== late.pid),
      )
      ctx.openGate('slow')
      await waitFor('the refusal', () =>
        ctx.marks('LEASE_LOST').find(({ pid }) => pid === late.pid),
      )
      kill(watchdog, 'SIGCONT')
      assert.equal(await other.waitForExit(), 0, other.output)
      assert.deepEqual(
        ctx.marks('saved').map(({ page, pid }) => [page, pid]),
        [
          [1, late.pid],
          [2, owner.pid],
        ],
      )
      one.signal('SIGTERM')
      assert.equal(await one.waitForExit(), 0, one.output)
    })

    test('P13 SIGTERM: pages are finished and saved, targets released, nothing is counted', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = start(ctx, 'slow1 slow2 b', '--workers', '2', '--drain')
      await pageMark('slow1', 2)(ctx)
      await pageMark('slow2', 2)(ctx)
      program.signal('SIGTERM')
      await ctx.waitForMarks('sigterm', 2)
      ctx.openGate('slow1')
      ctx.openGate('slow2')
      assert.equal(await program.waitForExit(), 75, program.output)
      assert.deepEqual(await statuses(ctx), { slow1: 'done', slow2: 'done', b: 'planned' })
      assert.match(
        program.output,
        /Continue it with: unstuck work --exec --targets --source=stage --workers=2 --drain -- \S*node \S+worker\.ts/,
      )
      await ctx.assertNoProcessesLeft()
    })

    test('P11 a target that kills its worker each time is parked, and the others finish', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = start(ctx, 'a poison b', '--drain')
      assert.equal(await program.waitForExit(), 3, program.output)
      assert.deepEqual(await statuses(ctx), { a: 'done', poison: 'parked', b: 'done' })
      assert.equal(ctx.marks('page').filter(({ key }) => key === 'poison').length, 3)
    })

    test('a paused source: the copies end, and are started again when it is unpaused', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = start(ctx, 'slow b')
      await pageMark('slow', 2)(ctx)
      await cli(ctx, 'pause', 'stage')
      await ctx.waitForMarks('sigterm')
      ctx.openGate('slow')
      await ctx.waitForMarks('end')
      assert.deepEqual(await statuses(ctx), { slow: 'done', b: 'planned' })
      await cli(ctx, 'unpause', 'stage')
      await waitFor('the end of the run', async () => (await ctx.run()).status === 'succeeded')

      // Without --drain the next run is waited for.
      const before = ctx.marks('start').length
      assert.equal((await cli(ctx, 'enqueue', 'stage')).code, 0)
      await waitFor('a copy for the next run', () => ctx.marks('start').length > before)
      program.signal('SIGTERM')
      await program.waitForExit()
    })

    test('a cancelled run: the copies finish their pages and end', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const program = start(ctx, 'slow b', '--drain')
      await pageMark('slow', 2)(ctx)
      await cli(ctx, 'cancel', 'stage', '--yes')
      await ctx.waitForMarks('sigterm')
      ctx.openGate('slow')
      await program.waitForExit()
      assert.equal((await ctx.run()).status, 'cancelled')
      await ctx.assertNoProcessesLeft()
    })
  })
}

test('a command that never calls its API is given up, with its last error', async () => {
  await using ctx = await ProcessTestContext.create(SOME_ENGINES[0]!)
  const script = 'console.error("no such module"); process.exit(4)'
  const program = ctx.unstuck(...ARGS, '--workers', '2', '--', execPath, '-e', script)
  assert.equal(await program.waitForExit(), 1, program.output)
  assert.match(program.output, /ended 3 times without a call to its API \(last: exit code 4/)
  assert.match(program.output, /docs\/reference\/worker-api\.md\./)
  const { id } = await ctx.run()
  const executions = await (await (await ctx.store()).extend(COMMAND_STORE)).executions([id], 10)
  assert.ok(executions.length >= 3)
  assert.ok(executions.filter(({ end }) => end?.because.startsWith('exit code 4')).length >= 3)
  assert.match((await cli(ctx, 'logs', 'stage')).stdout, /err \[\w{8}\] no such module/)
})

test('what cannot be started, and what cannot be meant, is refused', async () => {
  await using ctx = await ProcessTestContext.create(SOME_ENGINES[0]!)
  const refused = async (code: number, ...args: string[]): Promise<string> => {
    const result = await cli(ctx, 'work', '--exec', '--targets', ...args)
    assert.equal(result.code, code, result.stderr)
    return result.stderr
  }
  assert.match(await refused(2, '--', 'x'), /needs one --source/)
  assert.match(await refused(2, '--source', 'a', 'b', '--', 'x'), /needs one --source/)
  assert.match(await refused(2, '--source', 'a'), /There is no command/)
  assert.match(
    await refused(2, '--source', 'a', '--concurrency', '2', '--', 'x'),
    /--workers is the number of its copies/,
  )
  assert.match(await refused(2, '--source', 'a*', '--', 'x'), /--source "a\*"/)
  const withoutExec = await cli(ctx, 'work', '--targets', 'crawl.ts')
  assert.equal(withoutExec.code, 2)
  assert.match(withoutExec.stderr, /--targets and a command go with --exec/)
  const missing = ctx.unstuck(...ARGS, '--', './there-is-no-such-program')
  assert.equal(await missing.waitForExit(), 127, missing.output)
})
