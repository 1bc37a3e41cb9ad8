import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { watchdogIntervalMs } from '../../src/lib/process/sd-notify.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { Program, SHORT_LEASE, ProcessTestContext, waitFor } from './harness.ts'

/** The real `systemd-notify`, and at the other end of the socket a listener in the place of systemd. */

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0
const skip = has('systemd-notify') && has('python3') ? false : 'no systemd-notify or no python3'

const LISTENER = `
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(sys.argv[1])
print("listening", flush=True)
while True:
    print(s.recv(65536).decode(), flush=True)
`
/** Told every 200 ms. */
const WATCHDOG = { WATCHDOG_USEC: '400000' }
const WAIT_FOR_GATE = ['bash', '-c', 'until [ -e go.gate ]; do sleep 0.02; done']

/** Everything that was said, in order, each variable a line. */
class NotifySocket {
  readonly env: { NOTIFY_SOCKET: string }
  readonly #listener: Program

  private constructor(path: string, listener: Program) {
    this.env = { NOTIFY_SOCKET: path }
    this.#listener = listener
  }

  static async listen(ctx: ProcessTestContext): Promise<NotifySocket> {
    const path = join(ctx.folder, 'notify')
    const env = { ...process.env, STAGE: ctx.folder }
    const listener = new Program(spawn('python3', ['-c', LISTENER, path], { env }))
    await listener.waitForOutput('listening')
    return new NotifySocket(path, listener)
  }

  get messages(): string[] {
    const lines = this.#listener.output.split('\n').slice(1, -1)
    return lines.filter((line) => line !== 'BARRIER=1')
  }

  count(line: string): number {
    return this.messages.filter((said) => said === line).length
  }

  async waitForMessage(line: string | RegExp, times = 1): Promise<void> {
    const isIt = (said: string): boolean =>
      typeof line === 'string' ? said === line : line.test(said)
    await waitFor(`${times} × ${line} in ${this.messages.join(', ')}`, () => {
      return this.messages.filter(isIt).length >= times
    })
  }

  /** Stops listening at the end of the test. */
  async close(): Promise<void> {
    this.#listener.signal('SIGKILL')
    await this.#listener.exited
  }
}

const cli = (ctx: ProcessTestContext, args: string[], env: NodeJS.ProcessEnv): Program =>
  ctx.start([join(import.meta.dirname, '../../bin/unstuck.js'), ...args], { env })

test(
  'run: ready with the first command, alive only while its heartbeats are accepted, stopping at SIGTERM',
  { skip },
  async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const socket = await NotifySocket.listen(ctx)
    ctx.writeConfig({ portal: { heartbeat: '100ms', lease: '1s' } })
    const command = [
      'bash',
      '-c',
      'echo "for us: $NOTIFY_SOCKET$WATCHDOG_USEC."; trap "sleep 0.3; exit 0" TERM; while :; do sleep 0.05; done',
    ]
    const program = cli(ctx, ['run', 'portal', '--', ...command], { ...WATCHDOG, ...socket.env })
    await socket.waitForMessage('READY=1')
    await socket.waitForMessage('WATCHDOG=1', 4)
    await socket.waitForMessage(/^STATUS=run [0-9a-f]{8} of portal: at work$/)
    await program.waitForOutput('for us: .')

    // While another process holds the write lock no write succeeds: the database is unavailable.
    using other = new DatabaseSync(ctx.database.url.slice('sqlite:'.length), { timeout: 5_000 })
    other.exec('BEGIN IMMEDIATE')
    // Those that are on their way arrive; then none comes for several intervals.
    const starved = await waitFor('no heartbeat is accepted, so none is reported', async () => {
      const count = socket.count('WATCHDOG=1')
      await sleep(1_500)
      return socket.count('WATCHDOG=1') === count ? count : null
    })
    other.exec('ROLLBACK')
    await socket.waitForMessage('WATCHDOG=1', starved + 2)

    program.signal('SIGTERM')
    await socket.waitForMessage('STOPPING=1')
    assert.ok(program.isAlive, 'it said so before it had stopped')
    assert.equal(await program.waitForExit(), 75)
    assert.equal(socket.count('READY=1'), 1)
    assert.equal(socket.count('STOPPING=1'), 1)
    await socket.close()
    await ctx.assertNoProcessesLeft()
  },
)

test('run: a command that ends at once has been ready all the same', { skip }, async () => {
  await using ctx = await ProcessTestContext.create(sqliteEngine)
  const socket = await NotifySocket.listen(ctx)
  assert.equal(await cli(ctx, ['run', 'portal', '--', 'true'], socket.env).waitForExit(), 0)
  assert.deepEqual(
    socket.messages.filter((line) => line.includes('=1')),
    ['READY=1'],
  )
  await socket.close()
})

test('work --exec --targets: ready while it waits for a run', { skip }, async () => {
  await using ctx = await ProcessTestContext.create(sqliteEngine)
  const socket = await NotifySocket.listen(ctx)
  const args = ['work', '--exec', '--targets', '--source', 'stage', '--no-start', '--', 'true']
  const program = cli(ctx, args, socket.env)
  await socket.waitForMessage('READY=1')
  program.signal('SIGTERM')
  assert.equal(await program.waitForExit(), 0, program.output)
  await socket.close()
})

test(
  'run --wait-ready: ready when the command is, and not by being started again',
  { skip },
  async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const socket = await NotifySocket.listen(ctx)
    const command = ctx.module(
      'slow.ts',
      `mark('try'); if (marked('try') < 2) process.exit(1)
    await opened('go'); process.send('ready'); await opened('end')`,
    )
    const args = ['--wait-ready', '--restart', 'on-failure', '--restart-delay', '100ms']
    const program = cli(ctx, ['run', 'portal', ...args, '--', process.execPath, command], {
      ...WATCHDOG,
      ...socket.env,
    })
    await socket.waitForMessage(/^STATUS=.*starts again in/)
    await ctx.waitForMarks('try', 2)
    await sleep(300)
    assert.equal(socket.count('READY=1'), 0)
    ctx.openGate('go')
    await socket.waitForMessage('READY=1')
    await socket.waitForMessage('WATCHDOG=1', 2)
    ctx.openGate('end')
    assert.equal(await program.waitForExit(), 0)
    await socket.close()
  },
)

test(
  'run: a command waiting for its schedule, or for another copy, is ready',
  { skip },
  async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const socket = await NotifySocket.listen(ctx)
    const first = ctx.unstuck('run', 'portal', '--', ...WAIT_FOR_GATE)
    await first.waitForOutput('starts')
    for (const [source, how, status] of [
      ['portal', ['--if-running', 'wait'], /^STATUS=waiting: portal is running/],
      ['nightly', ['--cron', '0 3 1 1 *', '--wait-ready'], /^STATUS=first run in/],
    ] as const) {
      const before = socket.count('READY=1')
      const program = cli(ctx, ['run', source, ...how, '--', 'true'], socket.env)
      await socket.waitForMessage('READY=1', before + 1)
      await socket.waitForMessage(status)
      program.signal('SIGTERM')
      await socket.waitForMessage('STOPPING=1', before + 1)
      await program.waitForExit()
    }
    ctx.openGate('go')
    assert.equal(await first.waitForExit(), 0)
    await socket.close()
  },
)

for (const workers of ['1', '2']) {
  test(
    `work, ${workers} processes: ready when a worker is registered, alive, stopping`,
    { skip },
    async () => {
      await using ctx = await ProcessTestContext.create(sqliteEngine)
      const socket = await NotifySocket.listen(ctx)
      const crawl = ctx.crawl(`
      policy: ${SHORT_LEASE},
      async *targets() { yield { key: 'a', url: 'https://a/1' } },
      async page() { mark('page'); await opened('page'); return { items: [], next: null } },
    `)
      const program = cli(ctx, ['work', crawl, '--workers', workers], {
        ...WATCHDOG,
        ...socket.env,
      })
      await socket.waitForMessage('READY=1')
      await socket.waitForMessage('WATCHDOG=1', 3)
      await socket.waitForMessage('STATUS=working on stage')
      await ctx.waitForMarks('page')
      program.signal('SIGTERM')
      await socket.waitForMessage('STOPPING=1')
      ctx.openGate('page')
      assert.equal(await program.waitForExit(), 0)
      assert.equal(socket.count('READY=1'), 1, 'one service, however many processes')
      await socket.close()
    },
  )
}

test(
  'work --exec: ready before there is a run; a watchdog for another process is not fed',
  { skip },
  async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const socket = await NotifySocket.listen(ctx)
    const env = { ...WATCHDOG, ...socket.env, WATCHDOG_PID: '1' }
    const args = ['work', '--source', 'report-*', '--exec', '--', ...WAIT_FOR_GATE]
    const program = cli(ctx, args, env)
    await socket.waitForMessage('READY=1')
    await socket.waitForMessage('STATUS=waiting for runs of report-*')
    assert.equal(await ctx.unstuck('enqueue', 'report-may').waitForExit(), 0)
    await socket.waitForMessage('STATUS=at work on report-may')
    ctx.openGate('go')
    await socket.waitForMessage('STATUS=waiting for runs of report-*', 2)
    program.signal('SIGTERM')
    await socket.waitForMessage('STOPPING=1')
    assert.equal(await program.waitForExit(), 0)
    assert.equal(socket.count('WATCHDOG=1'), 0)
    await socket.close()
  },
)

test('without systemd-notify, and without a listener at the socket: logged once, and the command runs', async () => {
  await using ctx = await ProcessTestContext.create(sqliteEngine)
  const unheard = { ...WATCHDOG, NOTIFY_SOCKET: join(ctx.folder, 'nobody') }
  const command = [process.execPath, '-e', 'setTimeout(() => console.log("ran"), 700)']
  const run = (env: NodeJS.ProcessEnv): Program =>
    cli(ctx, ['run', 'portal', '--', ...command], { ...unheard, ...env })
  const cases: [Program, RegExp][] = [
    [run({ PATH: ctx.folder }), /no program systemd-notify\. Install it, or use Type=exec/g],
  ]
  await cases[0]![0].exited
  if (!skip) cases.push([run({}), /systemd could not be notified: systemd-notify: .+/g])
  for (const [program, warning] of cases) {
    assert.equal(await program.waitForExit(), 0)
    assert.match(program.output, /\] ran/)
    assert.equal([...program.output.matchAll(warning)].length, 1, program.output)
  }
})

test('a notification every half of the watchdog interval, if it watches this process', () => {
  assert.equal(watchdogIntervalMs({ WATCHDOG_USEC: '30000000' }, 7), 15_000)
  assert.equal(watchdogIntervalMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7' }, 7), 15_000)
  for (const env of [
    {},
    { WATCHDOG_USEC: '0' },
    { WATCHDOG_USEC: 'soon' },
    { WATCHDOG_USEC: '1000', WATCHDOG_PID: '8' },
  ])
    assert.equal(watchdogIntervalMs(env, 7), null)
})
