import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { PassThrough, Writable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { noTerminal } from '../../testing/cli-test-context.ts'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { LogFile, parseLogLines } from './log-file.ts'
import { CommandOutput, type CommandOutputOptions } from './output.ts'

type OutputFixture = Disposable & {
  readonly log: string
  readonly child: ChildProcess
  readonly output: CommandOutput
  /** What is in the log, as `out text`. */
  lines(): string[]
}

/** A real command, and its output in our hands. */
function startCommand(
  command: string[],
  options: Partial<CommandOutputOptions> = {},
): OutputFixture {
  const folder = temporaryFolder()
  const log = join(folder.path, 'output.log')
  const child = spawn(command[0]!, command.slice(1), { stdio: ['ignore', 'pipe', 'pipe'] })
  const { stdout, stderr } = child
  const logFile = new LogFile(log, { maxBytes: 100_000_000 })
  const output = new CommandOutput({ label: '1a2b3c4d', stdout, stderr, log: logFile, ...options })
  return {
    log,
    child,
    output,
    lines: () =>
      readFileSync(log, 'utf8')
        .split('\n')
        .slice(0, -1)
        .map((line) => `${parseLogLines([line])[0]!.stream} ${parseLogLines([line])[0]!.text}`),
    [Symbol.dispose]: () => {
      child.kill('SIGKILL')
      folder[Symbol.dispose]()
    },
  }
}

function node(code: string): string[] {
  return [process.execPath, '--input-type=module', '-e', code]
}

function screens(): { stdout: PassThrough; stderr: PassThrough } {
  return { stdout: new PassThrough(), stderr: new PassThrough() }
}

test('output is stored, and shown with the short id of its run, each stream separately', async () => {
  const live = screens()
  let signs = 0
  using fixture = startCommand(
    ['sh', '-c', 'echo one; echo two >&2; echo; printf "last, without an end"'],
    {
      live,
      onActivity: () => void signs++,
    },
  )
  await fixture.output.finished
  assert.deepEqual(
    fixture.lines().filter((line) => line.startsWith('out')),
    ['out one', 'out ', 'out last, without an end'],
  )
  assert.deepEqual(
    fixture.lines().filter((line) => line.startsWith('err')),
    ['err two'],
  )
  assert.equal(
    await text(live.stdout.end()),
    '[1a2b3c4d] one\n[1a2b3c4d] \n[1a2b3c4d] last, without an end\n',
  )
  assert.equal(await text(live.stderr.end()), '[1a2b3c4d] two\n')
  assert.ok(signs >= 2)
})

test('quiet shows nothing, and keeps everything', async () => {
  const live = screens()
  using fixture = startCommand(['echo', 'hello'], { live, quiet: true })
  await fixture.output.finished
  assert.deepEqual(fixture.lines(), ['out hello'])
  assert.equal(await text(live.stdout.end()), '')
})

test('no secret and no order to a terminal gets into the log or onto the screen; colours go', async () => {
  const live = screens()
  const printed = [
    'token-0123456789 and to%2Fken%20x',
    'postgres://me:p%40ss-hunter2@db/x, and alone p@ss-hunter2',
    '\x1b[1;32mgreen\x1b[0m \x1b[Kwiped \x1b]52;c;aGk=\x07 \u009b2J \u202Egpj.exe',
    'half \x1b[31',
  ]
  using fixture = startCommand(node(`console.log(${JSON.stringify(printed.join('\n'))})`), {
    live,
    secrets: ['token-0123456789', 'to/ken x', 'postgres://me:p%40ss-hunter2@db/x'],
  })
  await fixture.output.finished
  const expected = [
    '*** and ***',
    '***, and alone ***',
    'green wiped \\x1b]52;c;aGk=\\x07 \\x9b2J \\u202egpj.exe',
    'half \\x1b[31',
  ]
  assert.deepEqual(
    fixture.lines(),
    expected.map((line) => `out ${line}`),
  )
  assert.equal(
    await text(live.stdout.end()),
    expected.map((line) => `[1a2b3c4d] ${line}\n`).join(''),
  )
})

const COUNT = 100_000
const PRINT_NUMBERS = node(`
  let text = ''
  for (let n = 0; n < ${COUNT}; n++) text += 'page ' + n + ' of the catalogue was saved\\n'
  process.stdout.write(text)`)

function assertAllCounted(lines: readonly string[]): void {
  const pages = lines.filter((line) => line.startsWith('out '))
  assert.equal(pages.length, COUNT)
  pages.forEach((line, n) => assert.equal(line, `out page ${n} of the catalogue was saved`))
}

test('of a hundred thousand lines none is missing', async () => {
  using fixture = startCommand(PRINT_NUMBERS)
  await fixture.output.finished
  assertAllCounted(fixture.lines())
})

test('a slow reader slows the command, and costs no memory and no line', async () => {
  const live = screens()
  using fixture = startCommand(PRINT_NUMBERS, { live })
  while (!existsSync(fixture.log)) await sleep(20)
  await sleep(500)
  const held = live.stdout.writableLength + live.stdout.readableLength
  assert.ok(held < 500_000, `${held} bytes are held`)
  assert.ok(statSync(fixture.log).size < 1_000_000)
  assert.equal(fixture.child.exitCode, null)
  const shown = text(live.stdout)
  await fixture.output.finished
  live.stdout.end()
  assert.equal((await shown).split('\n').length, COUNT + 1)
  assertAllCounted(fixture.lines())
})

/** Shows a command on its own stdout, ends at once when that has finished, and notes how long it was ever held up. */
const SHOW_OUTPUT = node(`
  import { spawn } from 'node:child_process'
  import { writeFileSync } from 'node:fs'
  import { CommandOutput } from ${JSON.stringify(new URL('./output.ts', import.meta.url).href)}
  import { LogFile } from ${JSON.stringify(new URL('./log-file.ts', import.meta.url).href)}
  const [, path, command, ...args] = process.argv
  let [before, longest] = [performance.now(), 0]
  const look = () => {
    longest = Math.max(longest, performance.now() - before)
    before = performance.now()
  }
  setInterval(look, 20)
  const { stdout, stderr } = spawn(command, args)
  const log = new LogFile(path, { maxBytes: 100_000_000 })
  await new CommandOutput({ label: '1a2b3c4d', stdout, stderr, log, live: process }).finished
  look()
  writeFileSync(path + '.longest', String(longest))
  process.exit()`)

function linesIn(log: string): string[] {
  const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => `out ${parseLogLines([line])[0]!.text}`)
}

test('a closed reader blocks nothing, and the log is complete', { timeout: 150_000 }, async () => {
  using folder = temporaryFolder()
  const log = join(folder.path, 'output.log')
  const [file, ...args] = [...SHOW_OUTPUT, log, ...PRINT_NUMBERS]
  const child = spawn(file!, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.stdout.destroy()
  const [exitCode] = (await once(child, 'exit')) as [number | null]
  assert.equal(exitCode, 0)
  assertAllCounted(linesIn(log))
})

test(
  'a terminal that was halted holds up the command, and not the process that shows it',
  { skip: noTerminal, timeout: 150_000 },
  async () => {
    using folder = temporaryFolder()
    const log = join(folder.path, 'output.log')
    const words = [...SHOW_OUTPUT, log, ...PRINT_NUMBERS].map(
      (word) => `'${word.replaceAll("'", `'\\''`)}'`,
    )
    const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: undefined }
    const child = spawn('script', ['-qec', `exec ${words.join(' ')}`, '/dev/null'], { env })
    using _ended = { [Symbol.dispose]: () => void child.kill('SIGKILL') }
    while (!existsSync(log)) await sleep(20)
    await sleep(4_000)
    assert.ok(statSync(log).size < 1_000_000)
    const shown = (await text(child.stdout)).split('\r\n')
    assert.equal(shown[COUNT - 1], `[1a2b3c4d] page ${COUNT - 1} of the catalogue was saved`)
    assertAllCounted(linesIn(log))
    const longest = Number(readFileSync(`${log}.longest`, 'utf8'))
    // Of the four seconds: a busy machine may take its part.
    assert.ok(longest < 3_000, `held up for ${longest} ms`)
  },
)

test('it has finished when all is shown, and not while some is only buffered', async () => {
  let shown = ''
  const stdout = new Writable({
    highWaterMark: 1_000_000,
    write(chunk, _, done) {
      setTimeout(() => {
        shown += String(chunk)
        done()
      }, 100)
    },
  })
  using fixture = startCommand(['echo', 'hello'], { live: { ...screens(), stdout } })
  await fixture.output.finished
  assert.equal(shown, '[1a2b3c4d] hello\n')
})

test('a process left behind with the pipe in its hand is not waited for', async () => {
  using fixture = startCommand(['sh', '-c', 'sleep 600 & echo $!; printf unfinished'])
  await once(fixture.child, 'exit')
  await fixture.output.finish(100)
  const [pid, ...rest] = fixture.lines()
  assert.ok(process.kill(Number(pid!.split(' ')[1]), 'SIGKILL'), 'it still holds the pipe')
  assert.deepEqual(rest, [
    'out unfinished',
    'run the output is no longer read: a process that the command left behind holds it open',
  ])
})

test('when the command has ended, a reader that does not read is not waited for, and nothing is missing', async () => {
  const live = screens()
  using fixture = startCommand(node(`process.stdout.write('y\\n'.repeat(20_000))`), {
    live,
  })
  await once(fixture.child, 'exit')
  await fixture.output.finish(100)
  assert.equal(fixture.lines().length, 20_000)
})

test('to finish what has finished takes no time', async () => {
  using fixture = startCommand(['echo', 'hello'])
  await once(fixture.child, 'exit')
  // Longer than any test may take.
  await fixture.output.finish(600_000)
  await fixture.output.finish(600_000)
  assert.deepEqual(fixture.lines(), ['out hello'])
})

test('a screen that closes while it is waited for frees the command', async () => {
  const live = screens()
  using fixture = startCommand(PRINT_NUMBERS, { live })
  await sleep(200)
  live.stdout.destroy()
  await fixture.output.finished
  assertAllCounted(fixture.lines())
})
