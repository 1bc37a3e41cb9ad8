import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { newId } from '../../src/core/model/id.ts'
import { openJournal } from '../../src/lib/files/journal.ts'
import { COMMAND_STORE, type Execution } from '../../src/features/commands/store/store.ts'
import type { Run } from '../../src/core/model/run.ts'
import { CLI, ENGINES, SOME_ENGINES, ProcessTestContext, waitFor, type Program } from './harness.ts'
import { killWithWatchdog } from './wrapped.ts'

const [sqlite] = ENGINES
const bash = (script: string): string[] => ['--', 'bash', '-c', script]
/** A call of the command's own API. */
const CALL = `call() { curl -sf -H "Authorization: Bearer $UNSTUCK_TOKEN" -H 'content-type: application/json' "$UNSTUCK_URL/$1" \${2:+-d "$2"}; }`
const PAGE = `{"page":1,"items":[{"key":"a","data":1}]}`

/** A run and the last life of its command. */
async function outcome(
  ctx: ProcessTestContext,
  source = 'portal',
): Promise<{ run: Run; last: Execution }> {
  const run = await ctx.run(source)
  const [last] = await (await (await ctx.store()).extend(COMMAND_STORE)).executions([run.id], 1)
  return { run, last: last! }
}

async function runToEnd(
  ctx: ProcessTestContext,
  ...args: string[]
): Promise<Program & { code: unknown }> {
  const program = ctx.unstuck('run', 'portal', ...args)
  return Object.assign(program, { code: await program.waitForExit() })
}

test('the exit code is passed on, and kept with duration, files and output', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const script = 'echo to stdout; echo to stderr >&2; echo x > $UNSTUCK_OUTPUT_DIR/a; exit 7'
  const program = await runToEnd(ctx, ...bash(script))
  assert.equal(program.code, 7)
  const { run, last } = await outcome(ctx)
  assert.equal(run.status, 'interrupted', 'a file is progress: the next start goes on')
  assert.equal(run.artifacts, 1)
  assert.deepEqual([last.end!.exitCode, last.end!.signal, last.end!.artifacts], [7, null, 1])
  assert.ok(last.end!.at >= last.startedAt)
  assert.deepEqual(readdirSync(last.outputDir), ['a'])
  const log = readFileSync(last.log, 'utf8')
  assert.match(log, /Z out to stdout\n/)
  assert.match(log, /Z err to stderr\n/)
  const short = run.id.slice(-8)
  assert.ok(program.output.includes(`[${short}] to stdout`))
  const logs = ctx.unstuck('logs', short)
  assert.equal(await logs.waitForExit(), 0)
  assert.match(logs.output, /to stdout[^]*to stderr/)
})

test('a command that died with nothing done has failed; one with a checkpoint continues from it', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  assert.equal((await runToEnd(ctx, ...bash('exit 1'))).code, 1)
  assert.equal((await outcome(ctx)).run.status, 'failed')
  const killed = await runToEnd(ctx, ...bash(`${CALL}; call checkpoint '${PAGE}'; kill -9 $$`))
  assert.equal(killed.code, 137)
  const { run, last } = await outcome(ctx)
  assert.equal(run.status, 'interrupted')
  assert.match(last.end!.because, /killed \(SIGKILL\) by another process/)
  const script = `${CALL}; echo "resume $UNSTUCK_RESUME"; call; call finish {}`
  const again = await runToEnd(ctx, ...bash(script))
  assert.equal(again.code, 0)
  assert.match(again.output, /resume 1/)
  assert.match(again.output, /"resumed":true,"page":1/)
  assert.equal((await ctx.run('portal')).id, run.id)
  assert.equal((await ctx.run('portal')).status, 'succeeded')
  assert.equal((await ctx.run('portal')).counts.refused, 0)
})

for (const engine of ENGINES) {
  test(`${engine.name}: the line of stderr that names the error is part of it wherever the end is shown, without secrets`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    const script = `import os, sys; print('\\x1b[31mconnecting\\x1b[0m', file=sys.stderr); raise ValueError('refused ' + os.environ['UNSTUCK_TOKEN'])`
    const program = await runToEnd(ctx, '--', 'python3', '-c', script)
    assert.equal(program.code, 1)
    const { run, last } = await outcome(ctx)
    const because = 'exit code 1: ValueError: refused ***'
    assert.deepEqual([run.status, run.error], ['failed', because])
    assert.equal(last.end!.because, because)
    assert.ok(program.output.includes(`of portal: ${because}.`), program.output)
    for (const args of [
      ['show', run.id],
      ['logs', run.id],
      ['explain', run.id],
      ['runs', '--json'],
    ]) {
      const shown = ctx.unstuck(...args)
      await shown.waitForExit()
      assert.ok(shown.output.includes(because), `${args[0]}: ${shown.output}`)
    }
    // With progress the run is resumed, and the verdict has the line.
    const withFile = `open(__import__('os').environ['UNSTUCK_OUTPUT_DIR'] + '/a', 'w'); import no_such_module`
    await runToEnd(ctx, '--', 'python3', '-c', withFile)
    const history = ctx.unstuck('history')
    await history.waitForExit()
    assert.match(history.output, /its command ended: exit code 1: ModuleNotFoundError: No module/)
  })
}

test('its own report counts: /fail is a failure even with exit code 0, and with retry it is restarted', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const fail = (body: string): string[] => bash(`${CALL}; call fail '${body}'`)
  assert.equal((await runToEnd(ctx, ...fail('{"error":"blocked"}'))).code, 1)
  assert.deepEqual(
    [(await ctx.run('portal')).status, (await ctx.run('portal')).error],
    ['failed', 'blocked'],
  )
  assert.equal((await runToEnd(ctx, ...fail('{"error":"later","retry":true}'))).code, 75)
  assert.equal((await ctx.run('portal')).status, 'interrupted')
})

test('a command that brings a file each time is never parked, however often it dies (P11)', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const script = 'echo $$ > $UNSTUCK_OUTPUT_DIR/$$; exit 1'
  const restarts = '--restart on-failure --restart-delay 10ms --max-restarts 1'.split(' ')
  const program = ctx.unstuck('run', 'portal', ...restarts, ...bash(script))
  await waitFor('six lives', () => program.output.split('it made progress').length > 6)
  program.signal('SIGTERM')
  await program.waitForExit()
  assert.equal((await ctx.run('portal')).counts.targets.parked, 0)
})

test('the first file is progress, kept long before the next look: all killed -9 right after it, the run is resumed', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const script = 'sleep 0.1; echo x > $UNSTUCK_OUTPUT_DIR/a; echo written; sleep 60'
  // On a busy machine a moment can be missed; the look of every second would miss them all.
  for (let tries = 1; ; tries++) {
    const source = `portal-${tries}`
    const program = ctx.unstuck('run', source, ...bash(script))
    await program.waitForOutput('] written')
    const isKept = async (): Promise<boolean> => (await ctx.run(source)).artifacts === 1
    const kept = await waitFor('it is kept', isKept, 500).catch(() => false)
    await killWithWatchdog(program)
    if (!kept && tries < 5) continue
    const { id } = await ctx.run(source)
    const look = bash('ls $UNSTUCK_OUTPUT_DIR; echo "resume $UNSTUCK_RESUME"')
    const again = ctx.unstuck('run', source, ...look)
    assert.equal(await again.waitForExit(), 0)
    assert.match(again.output, /\] a\n[^]*resume 1/)
    assert.equal((await ctx.run(source)).id, id)
    return
  }
})

test('a run whose command dies again and again without progress is parked', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const first = bash(`${CALL}; [ $UNSTUCK_RESUME = 1 ] || call checkpoint '${PAGE}'; kill -9 $$`)
  const restarts = '--restart on-failure --restart-delay 10ms --min-uptime 0ms'.split(' ')
  const program = await runToEnd(ctx, ...restarts, '--max-restarts', '4', ...first)
  assert.equal(program.code, 137)
  assert.match(program.output, /gave up on portal: its run was parked/)
  const runs = (await (await ctx.store()).runs({ source: 'portal', limit: 10 })).items
  assert.deepEqual(
    runs.map((run) => run.counts.targets.parked),
    [1],
  )
})

test('SIGTERM: the command finishes its page, the run is released, exit 75; a second SIGTERM kills', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const polite = ctx.unstuck(
    'run',
    'portal',
    ...bash('trap "echo page done; exit 0" TERM; echo up; while :; do sleep 0.05; done'),
  )
  await polite.waitForOutput('] up')
  polite.signal('SIGTERM')
  assert.equal(await polite.waitForExit(), 75)
  assert.match(polite.output, /\] page done/)
  assert.equal((await outcome(ctx)).run.status, 'interrupted')
  assert.match((await outcome(ctx)).last.end!.because, /stopped by SIGTERM; exit code 0/)
  const deaf = ctx.unstuck(
    'run',
    'portal',
    ...bash('trap "" TERM; echo up; while :; do sleep 0.05; done'),
  )
  await deaf.waitForOutput('] up')
  deaf.signal('SIGINT')
  await deaf.waitForOutput('Send it again')
  deaf.signal('SIGINT')
  assert.equal(await deaf.waitForExit(), 75)
  await ctx.assertNoProcessesLeft()
})

test('stopped before a restart: exit 75 while something is left', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const script = 'echo x > $UNSTUCK_OUTPUT_DIR/a; exit 3'
  const program = ctx.unstuck('run', 'portal', '--restart', 'on-failure', ...bash(script))
  await program.waitForOutput('starts again in 10 s')
  program.signal('SIGTERM')
  assert.equal(await program.waitForExit(), 75)
  assert.equal((await ctx.run('portal')).status, 'interrupted')
})

test('exit code 0 is a success, also when stopped while leftover processes are being ended', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const script = '(trap "" TERM; echo up; sleep 60) & sleep 0.3; echo bye $$'
  const program = ctx.unstuck('run', 'portal', '--kill-timeout', '2s', ...bash(script))
  await program.waitForOutput(/\] bye \d+/)
  const pid = /\] bye (\d+)/.exec(program.output)![1]
  await waitFor('the command has ended', () => !existsSync(`/proc/${pid}`))
  await sleep(300)
  program.signal('SIGTERM')
  assert.equal(await program.waitForExit(), 0)
  assert.equal((await ctx.run('portal')).status, 'succeeded')
  await ctx.assertNoProcessesLeft()
})

test('a run that could not be started for another reason is released, not left running', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const folder = dirname(ctx.database.url.slice('sqlite:'.length))
  writeFileSync(join(folder, 'runs'), 'a file where a folder belongs')
  assert.equal((await runToEnd(ctx, '--', 'true')).code, 1)
  const run = await ctx.run('portal')
  assert.deepEqual([run.status, run.counts.targets.in_progress], ['interrupted', 0])
})

test('a process manager that held a channel and is gone is a stop as well', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const program = ctx.unstuckWithIpc('run', 'portal', ...bash('echo up; sleep 60'))
  await program.waitForOutput('] up')
  program.child.disconnect()
  assert.equal(await program.waitForExit(), 75)
  await ctx.assertNoProcessesLeft()
})

test('cancel ends the command, and the run stays cancelled', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const program = ctx.unstuck('run', 'portal', ...bash('echo up; sleep 60'))
  await program.waitForOutput('] up')
  const run = await ctx.run('portal')
  assert.equal(await ctx.unstuck('cancel', run.id).waitForExit(), 0)
  assert.equal(await program.waitForExit(), 143)
  assert.equal((await ctx.run('portal')).status, 'cancelled')
})

test('too long, too much memory, not ready: ended, with the reason', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const long = await runToEnd(ctx, '--max-duration', '300ms', ...bash('sleep 60'))
  assert.equal(long.code, 143)
  assert.match((await outcome(ctx)).last.end!.because, /timeout: longer than 300 ms/)
  const eater = `const held = []; setInterval(() => held.push(Buffer.alloc(8e6, 1)), 20)`
  const limits = ['--max-memory', '150M', '--kill-timeout', '1s']
  // In a child of the command: the whole tree counts.
  const large = await runToEnd(ctx, ...limits, ...bash(`"${process.execPath}" -e '${eater}'; true`))
  assert.match((await outcome(ctx)).last.end!.because, /MB of memory, more than 150 MB/)
  assert.ok((await outcome(ctx)).last.end!.peakMemory! > 150 * 1_048_576)
  assert.notEqual(large.code, 0)
  const unready = await runToEnd(
    ctx,
    '--wait-ready',
    '--ready-timeout',
    '300ms',
    ...bash('sleep 60'),
  )
  assert.equal(unready.code, 143)
  assert.match((await outcome(ctx)).last.end!.because, /not ready within 300 ms/)
})

test("ready is a call of the API, or Node's own word", async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const wait = ['--wait-ready', '--ready-timeout', '20s']
  assert.equal(
    (await runToEnd(ctx, ...wait, ...bash(`${CALL}; call heartbeat {}; sleep 0.2`))).code,
    0,
  )
  const own = ctx.module(
    'ready.ts',
    `process.send('ready'); setTimeout(() => process.exit(0), 200)`,
  )
  assert.equal((await runToEnd(ctx, ...wait, '--', process.execPath, own)).code, 0)
  assert.equal((await ctx.run('portal')).status, 'succeeded')
})

test('a crash loop is given up, and shown until the next start', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const restarts = '--restart on-failure --restart-delay 20ms --max-restarts 2'.split(' ')
  const program = await runToEnd(ctx, ...restarts, ...bash('exit 9'))
  assert.equal(program.code, 9)
  assert.match(program.output, /gave up on portal: started again 2 times/)
  const runs = (await (await ctx.store()).runs({ source: 'portal', limit: 10 })).items
  assert.equal(runs.length, 3)
  const status = ctx.unstuck('status')
  assert.equal(await status.waitForExit(), 3)
  assert.match(status.output, /portal: gave up; started again 2 times/)
  assert.equal((await runToEnd(ctx, '--', 'true')).code, 0)
  assert.equal(await ctx.unstuck('status').waitForExit(), 0)
})

test('cycles: an interval after each end, and a timetable', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const cycles = ctx.unstuck('run', 'portal', '--interval', '50ms', ...bash('echo tick'))
  await waitFor('three cycles', () => cycles.output.split('] tick').length > 3)
  cycles.signal('SIGTERM')
  await cycles.waitForExit()
  const timed = ctx.unstuck('run', 'timed', '--cron', '* * * * * *', ...bash('echo tock'))
  await waitFor('two ticks', () => timed.output.split('] tock').length > 2)
  timed.signal('SIGTERM')
  await timed.waitForExit()
  const runs = (await (await ctx.store()).runs({ source: 'timed', limit: 10 })).items
  const starts = runs.map((run) => Math.floor(run.createdAt / 1_000))
  assert.equal(new Set(starts).size, starts.length, 'one a second at most')
})

test('a command that cannot be started: 127, 126 and 2, each with a message', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const missing = await runToEnd(ctx, '--restart', 'always', '--', 'no-such-program')
  assert.equal(missing.code, 127)
  assert.match(missing.output, /There is no program "no-such-program"/)
  const folder = await runToEnd(ctx, '--', ctx.folder)
  assert.equal(folder.code, 126)
  const nothing = await runToEnd(ctx)
  assert.equal(nothing.code, 2)
  assert.match(nothing.output, /unstuck run portal -- python scraper.py/)
  assert.equal((await runToEnd(ctx, '--cron', 'often', '--', 'true')).code, 2)
})

test("the environment is the user's, less Unstuck's own secrets; arguments are literal (S15, S16)", async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const args = [
    'run',
    'portal',
    '--',
    process.execPath,
    '-e',
    'console.log(JSON.stringify(process.env), process.argv[1])',
    '; touch hacked',
  ]
  const program = ctx.start([CLI, ...args], {
    env: { MINE: 'kept', UNSTUCK_SLACK_WEBHOOK: 'canary-1', UNSTUCK_ADMIN_TOKEN: 'canary-2' },
  })
  assert.equal(await program.waitForExit(), 0)
  assert.match(program.output, /"MINE":"kept"/)
  assert.doesNotMatch(program.output, /canary|UNSTUCK_DB/)
  assert.match(program.output, /; touch hacked/)
  assert.equal(existsSync(join(ctx.folder, 'hacked')), false)
  // Its own token is its own, and still it is not written down.
  assert.match(program.output, /"UNSTUCK_TOKEN":"\*\*\*"/)
})

for (const engine of SOME_ENGINES) {
  test(`${engine.name}: queued runs are worked on like runs by hand: input, prefix, limit, cancel, some at once`, async () => {
    await using ctx = await ProcessTestContext.create(engine)
    for (const n of [1, 2, 3]) {
      const queue = ['enqueue', `report-${n}`, '--input', `{"n":${n}}`]
      assert.equal(await ctx.unstuck(...queue).waitForExit(), 0)
    }
    const script =
      'echo "$UNSTUCK_SOURCE $UNSTUCK_INPUT"; until [ -e go.gate ]; do sleep 0.02; done'
    const limits = ['--concurrency', '2', '--drain', '--kill-timeout', '1s']
    const worker = ctx.unstuck('work', '--source', 'report-*', '--exec', ...limits, ...bash(script))
    await worker.waitForOutput('report-2 {"n":2}')
    await worker.waitForOutput('report-1 {"n":1}')
    assert.doesNotMatch(worker.output, /report-3 \{/)
    const first = await ctx.run('report-1')
    assert.ok(worker.output.includes(`[${first.id.slice(-8)}] report-1`))
    assert.equal(await ctx.unstuck('cancel', first.id).waitForExit(), 0)
    await worker.waitForOutput('report-3 {"n":3}')
    ctx.openGate('go')
    await worker.waitForExit()
    const statuses = await Promise.all(
      [1, 2, 3].map(async (n) => (await ctx.run(`report-${n}`)).status),
    )
    assert.deepEqual(statuses, ['cancelled', 'succeeded', 'succeeded'])
    await ctx.assertNoProcessesLeft()
  })
}

test('a journal not written to for a week is deleted when the next command starts', async () => {
  await using ctx = await ProcessTestContext.create(sqlite!)
  const folder = join(dirname(ctx.database.url.slice('sqlite:'.length)), 'journal')
  const [old, fresh] = [newId(), newId()].map((id) => ({ id, path: join(folder, `${id}.jsonl`) }))
  for (const { id, path } of [old!, fresh!]) {
    openJournal(path, id)({ type: 'heartbeat', claims: 0, loopLagMs: 0 })
  }
  const then = Date.now() / 1_000 - 8 * 24 * 3_600
  utimesSync(old!.path, then, then)
  const program = ctx.unstuck('run', 'portal', ...bash('sleep 60'))
  await waitFor('it is gone', () => !existsSync(old!.path))
  assert.equal(existsSync(fresh!.path), true)
  program.signal('SIGTERM')
  await program.waitForExit()
})
