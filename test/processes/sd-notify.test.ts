import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { signEveryMs } from '../../src/interfaces/cli/sd-notify.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { Program, SHORT_LEASE, Stage, until } from './harness.ts'

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
const WAITS = ['bash', '-c', 'until [ -e go.gate ]; do sleep 0.02; done']

/** Everything that was said, in order, each variable a line. */
class Socket {
  readonly env: { NOTIFY_SOCKET: string }
  readonly #listener: Program

  private constructor(path: string, listener: Program) {
    this.env = { NOTIFY_SOCKET: path }
    this.#listener = listener
  }

  static async listen(stage: Stage): Promise<Socket> {
    const path = join(stage.folder, 'notify')
    const env = { ...process.env, STAGE: stage.folder }
    const listener = new Program(spawn('python3', ['-c', LISTENER, path], { env }))
    await listener.says('listening')
    return new Socket(path, listener)
  }

  get said(): string[] {
    const lines = this.#listener.output.split('\n').slice(1, -1)
    return lines.filter((line) => line !== 'BARRIER=1')
  }

  count(line: string): number {
    return this.said.filter((said) => said === line).length
  }

  async hears(line: string | RegExp, times = 1): Promise<void> {
    const isIt = (said: string): boolean =>
      typeof line === 'string' ? said === line : line.test(said)
    await until(`${times} × ${line} in ${this.said.join(', ')}`, () => {
      return this.said.filter(isIt).length >= times
    })
  }

  /** The test is over: nobody need listen any more. */
  async close(): Promise<void> {
    this.#listener.signal('SIGKILL')
    await this.#listener.ended
  }
}

const cli = (stage: Stage, args: string[], env: NodeJS.ProcessEnv): Program =>
  stage.start([join(import.meta.dirname, '../../bin/unstuck.js'), ...args], { env })

test(
  'run: ready with the first command, alive while its beats are accepted and only then, stopping at SIGTERM',
  { skip },
  async () => {
    await using stage = await Stage.set(sqliteEngine)
    const socket = await Socket.listen(stage)
    stage.config({ portal: { heartbeat: '100ms', lease: '1s' } })
    const command = [
      'bash',
      '-c',
      'echo "for us: $NOTIFY_SOCKET$WATCHDOG_USEC."; trap "sleep 0.3; exit 0" TERM; while :; do sleep 0.05; done',
    ]
    const program = cli(stage, ['run', 'portal', '--', ...command], { ...WATCHDOG, ...socket.env })
    await socket.hears('READY=1')
    await socket.hears('WATCHDOG=1', 4)
    await socket.hears(/^STATUS=run [0-9a-f]{8} of portal: at work$/)
    await program.says('for us: .')

    // Whoever holds the write lock keeps all others from writing: the database is as good as gone.
    using other = new DatabaseSync(stage.database.url.slice('sqlite:'.length), { timeout: 5_000 })
    other.exec('BEGIN IMMEDIATE')
    await sleep(1_500)
    const starved = socket.count('WATCHDOG=1')
    await sleep(1_000)
    assert.equal(
      socket.count('WATCHDOG=1'),
      starved,
      'no beat is accepted, and the watchdog heard of life',
    )
    other.exec('ROLLBACK')
    await socket.hears('WATCHDOG=1', starved + 2)

    program.signal('SIGTERM')
    await socket.hears('STOPPING=1')
    assert.ok(program.isAlive, 'it said so before it had stopped')
    assert.equal(await program.end(), 75)
    assert.equal(socket.count('READY=1'), 1)
    assert.equal(socket.count('STOPPING=1'), 1)
    await socket.close()
    await stage.assertNobodyLeft()
  },
)

test('run: a command that ends at once has been ready all the same', { skip }, async () => {
  await using stage = await Stage.set(sqliteEngine)
  const socket = await Socket.listen(stage)
  assert.equal(await cli(stage, ['run', 'portal', '--', 'true'], socket.env).end(), 0)
  assert.deepEqual(
    socket.said.filter((line) => line.includes('=1')),
    ['READY=1'],
  )
  await socket.close()
})

test(
  'run --wait-ready: ready when the command is, and not by being started again',
  { skip },
  async () => {
    await using stage = await Stage.set(sqliteEngine)
    const socket = await Socket.listen(stage)
    const command = stage.module(
      'slow.ts',
      `mark('try'); if (marked('try') < 2) process.exit(1)
    await opened('go'); process.send('ready'); await opened('end')`,
    )
    const args = ['--wait-ready', '--restart', 'on-failure', '--restart-delay', '100ms']
    const program = cli(stage, ['run', 'portal', ...args, '--', process.execPath, command], {
      ...WATCHDOG,
      ...socket.env,
    })
    await socket.hears(/^STATUS=.*starts again in/)
    await stage.marked('try', 2)
    await sleep(300)
    assert.equal(socket.count('READY=1'), 0)
    stage.open('go')
    await socket.hears('READY=1')
    await socket.hears('WATCHDOG=1', 2)
    stage.open('end')
    assert.equal(await program.end(), 0)
    await socket.close()
  },
)

test('run: who waits for its time, or for another copy, is ready', { skip }, async () => {
  await using stage = await Stage.set(sqliteEngine)
  const socket = await Socket.listen(stage)
  const first = stage.unstuck('run', 'portal', '--', ...WAITS)
  await first.says('starts')
  for (const [source, how, status] of [
    ['portal', ['--if-running', 'wait'], /^STATUS=waiting: portal is running/],
    ['nightly', ['--cron', '0 3 1 1 *', '--wait-ready'], /^STATUS=first run in/],
  ] as const) {
    const before = socket.count('READY=1')
    const program = cli(stage, ['run', source, ...how, '--', 'true'], socket.env)
    await socket.hears('READY=1', before + 1)
    await socket.hears(status)
    program.signal('SIGTERM')
    await socket.hears('STOPPING=1', before + 1)
    await program.end()
  }
  stage.open('go')
  assert.equal(await first.end(), 0)
  await socket.close()
})

for (const workers of ['1', '2']) {
  test(
    `work, ${workers} processes: ready when a worker is registered, alive, stopping`,
    { skip },
    async () => {
      await using stage = await Stage.set(sqliteEngine)
      const socket = await Socket.listen(stage)
      const crawl = stage.crawl(`
      policy: ${SHORT_LEASE},
      async *targets() { yield { key: 'a', url: 'https://a/1' } },
      async page() { mark('page'); await opened('page'); return { items: [], next: null } },
    `)
      const program = cli(stage, ['work', crawl, '--workers', workers], {
        ...WATCHDOG,
        ...socket.env,
      })
      await socket.hears('READY=1')
      await socket.hears('WATCHDOG=1', 3)
      await socket.hears('STATUS=working on stage')
      await stage.marked('page')
      program.signal('SIGTERM')
      await socket.hears('STOPPING=1')
      stage.open('page')
      assert.equal(await program.end(), 0)
      assert.equal(socket.count('READY=1'), 1, 'one service, however many processes')
      await socket.close()
    },
  )
}

test(
  'work --exec: ready before there is a run; a watchdog for another process is not fed',
  { skip },
  async () => {
    await using stage = await Stage.set(sqliteEngine)
    const socket = await Socket.listen(stage)
    const env = { ...WATCHDOG, ...socket.env, WATCHDOG_PID: '1' }
    const args = ['work', '--source', 'report-*', '--exec', '--', ...WAITS]
    const program = cli(stage, args, env)
    await socket.hears('READY=1')
    await socket.hears('STATUS=waiting for runs of report-*')
    assert.equal(await stage.unstuck('enqueue', 'report-may').end(), 0)
    await socket.hears('STATUS=at work on report-may')
    stage.open('go')
    await socket.hears('STATUS=waiting for runs of report-*', 2)
    program.signal('SIGTERM')
    await socket.hears('STOPPING=1')
    assert.equal(await program.end(), 0)
    assert.equal(socket.count('WATCHDOG=1'), 0)
    await socket.close()
  },
)

test('without systemd-notify, and with nobody at the socket: said once, and the command runs', async () => {
  await using stage = await Stage.set(sqliteEngine)
  const nobody = { ...WATCHDOG, NOTIFY_SOCKET: join(stage.folder, 'nobody') }
  const command = [process.execPath, '-e', 'setTimeout(() => console.log("ran"), 700)']
  const run = (env: NodeJS.ProcessEnv): Program =>
    cli(stage, ['run', 'portal', '--', ...command], { ...nobody, ...env })
  const cases: [Program, RegExp][] = [
    [run({ PATH: stage.folder }), /no program systemd-notify\. Install it, or use Type=exec/g],
  ]
  await cases[0]![0].ended
  if (!skip)
    cases.push([run({}), /systemd could not be told how this service is: systemd-notify: .+/g])
  for (const [program, complaint] of cases) {
    assert.equal(await program.end(), 0)
    assert.match(program.output, /\] ran/)
    assert.equal([...program.output.matchAll(complaint)].length, 1, program.output)
  }
})

test('a sign every half of the watchdog’s time, if it watches us', () => {
  assert.equal(signEveryMs({ WATCHDOG_USEC: '30000000' }, 7), 15_000)
  assert.equal(signEveryMs({ WATCHDOG_USEC: '30000000', WATCHDOG_PID: '7' }, 7), 15_000)
  for (const env of [
    {},
    { WATCHDOG_USEC: '0' },
    { WATCHDOG_USEC: 'soon' },
    { WATCHDOG_USEC: '1000', WATCHDOG_PID: '8' },
  ])
    assert.equal(signEveryMs(env, 7), null)
})
