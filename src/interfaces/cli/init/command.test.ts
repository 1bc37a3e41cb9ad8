import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { commandOptions } from '../../../features/commands/cli/options.ts'
import { emptyProject } from '../../../testing/empty-project.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'
import { splitCommand } from './command-words.ts'
import { cronSchedule } from './command-supervisors.ts'
import { deriveSource } from './command.ts'
import { execStart, windowsArguments } from './escape.ts'

/** Each file is read as its supervisor reads it, and what it says is really run, in a folder with a hostile name. */

const project = emptyProject(`it's 100% "a & b" <c> $HOME`)
const cwd = project.path
/** All that a shell, a crontab, a unit, YAML and XML would trip over. */
const HOSTILE = [
  `it's`,
  '"quoted"',
  '100%',
  '%n',
  '$HOME',
  '$(HOME)',
  '$$',
  '<a> & b;',
  ';',
  '&#10; &amp; ]]>',
  'back\\slash\\',
  '',
  ' - a: b # c',
  '{{x}}',
  '`id`',
  '__NAME__',
  'Grüße 😀',
]
/** What only a task of Windows cannot hold. */
const CONTROLS = ['two\nlines', '\ttab', '\u0001\u007f\u0085\u2028']
const LONGEST_STOP_MS = commandOptions.killTimeout.defaultValue
const ECHO = `require('fs').writeFileSync('words.json', JSON.stringify(process.argv.slice(2)))`
const IN_IMAGE = ['node', 'node_modules/unstuck/bin/unstuck.js']

const lineOf = (words: readonly string[]): string =>
  words.map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
const read = (name: string): string => readFileSync(join(cwd, name), 'utf8')
const kept = (words: readonly string[]): string[] => [
  'run',
  'echo',
  '--interval',
  '1h',
  '--',
  ...words,
]

async function init(...args: string[]): Promise<{ code: number | null; stderr: string }> {
  return unstuck(['init', ...args, '--interval', '1h'], { cwd })
}

before(async () => {
  writeFileSync(join(cwd, 'echo.cjs'), ECHO)
  const command = lineOf(['node', 'echo.cjs', ...HOSTILE, ...CONTROLS])
  const names = ['pm2', 'systemd', 'docker', 'kubernetes', 'cron']
  const { code, stderr } = await init('--for', ...names, '--command', command)
  assert.equal(code, 0, stderr)
  const windows = ['node', 'echo.cjs', ...HOSTILE.filter((word) => word !== '$(HOME)')]
  const { code: code2, stderr: stderr2 } = await init(
    '--for',
    'windows',
    '--command',
    lineOf(windows),
  )
  assert.equal(code2, 0, stderr2)
})
after(() => project[Symbol.dispose]())

/** Runs what a file says, once, and checks that the command got its words. */
function assertRuns(program: string, args: readonly string[], where = cwd): void {
  rmSync(join(cwd, 'words.json'), { force: true })
  // Its interval would keep it running.
  const once = args.flatMap((arg, n) =>
    arg === '--interval' || args[n - 1] === '--interval' ? [] : [arg],
  )
  const env = { ...process.env, PATH: `${dirname(process.execPath)}:${process.env['PATH']}` }
  const { status, stderr } = spawnSync(program, once, { cwd: where, encoding: 'utf8', env })
  assert.equal(status, EXIT.done, stderr)
  assert.deepEqual(JSON.parse(read('words.json')), [...HOSTILE, ...CONTROLS])
}

test('PM2: it starts Unstuck after a kill and after temporary errors, and leaves it time to stop', () => {
  const { apps } = createRequire(import.meta.url)(join(cwd, 'ecosystem.config.cjs')) as {
    apps: { [key: string]: unknown; args: string[]; script: string; stop_exit_codes: number[] }[]
  }
  const [app, ...more] = apps
  assert.deepEqual(more, [])
  const { name, exec_mode, instances, treekill, pmx, interpreter } = app!
  assert.deepEqual(
    [name, exec_mode, instances, treekill, pmx, interpreter],
    ['unstuck-echo', 'fork', 1, false, false, 'node'],
  )
  assert.ok((app!['kill_timeout'] as number) >= LONGEST_STOP_MS + 5_000)
  const again = Array.from({ length: 256 }, (_, code) => code).filter(
    (code) => !app!.stop_exit_codes.includes(code),
  )
  assert.deepEqual(again, [0, EXIT.alreadyRunning, EXIT.leaseLost, EXIT.unreachable])
  assert.deepEqual(app!.args, kept(['node', 'echo.cjs', ...HOSTILE, ...CONTROLS]))
  assertRuns(process.execPath, [join(cwd, app!.script), ...app!.args])
})

test('systemd: it restarts Unstuck after a kill and after temporary errors, and leaves it time to stop', () => {
  const lines = read('unstuck-echo.service').split('\n')
  const unit = Object.fromEntries(
    lines.filter((line) => /^\w+=/.test(line)).map((line) => line.split(/=([^]*)/).slice(0, 2)),
  ) as Record<string, string>
  assert.deepEqual(
    [unit['KillMode'], unit['KillSignal'], unit['Delegate'], unit['OOMPolicy'], unit['Type']],
    ['mixed', 'SIGTERM', 'yes', 'continue', 'notify'],
  )
  assert.ok(Number(unit['TimeoutStopSec']) * 1_000 >= LONGEST_STOP_MS + 5_000)
  assert.deepEqual(
    [unit['Restart'], unit['RestartForceExitStatus'], unit['SuccessExitStatus']],
    [
      'on-abnormal',
      `${EXIT.alreadyRunning} ${EXIT.leaseLost} ${EXIT.unreachable}`,
      `${EXIT.resumable}`,
    ],
  )
  assert.equal(unit['RestartPreventExitStatus'], undefined)
  const [program, ...args] = unitWords(unit['ExecStart']!)
  assert.equal(program, process.execPath)
  assertRuns(program, args, unit['WorkingDirectory']!.replaceAll('%%', '%'))
})

const ANALYZE = 'systemd-analyze'
const hasSystemd = spawnSync(ANALYZE, ['--version']).status === 0

test(
  'systemd finds nothing wrong with it',
  { skip: hasSystemd ? false : 'no systemd here' },
  () => {
    const file = join(cwd, 'unstuck-echo.service')
    const { status, stderr } = spawnSync(ANALYZE, ['verify', '--man=no', file], {
      encoding: 'utf8',
    })
    // On a machine that was not booted by systemd other units of it may be incomplete.
    const about = stderr.split('\n').filter((line) => line.includes('unstuck-echo'))
    assert.deepEqual([status, about], [0, []], stderr)
  },
)

test('Docker: no shell, time to stop, and a place for what the command needs', async () => {
  const text = read('Dockerfile')
  const words = JSON.parse(/^CMD (\[.+\])$/m.exec(text)![1]!) as string[]
  assert.deepEqual(words.slice(0, 2), IN_IMAGE)
  assert.deepEqual(words.slice(2), kept(['node', 'echo.cjs', ...HOSTILE, ...CONTROLS]))
  const waits = [...text.matchAll(/(?:--stop-timeout|stop -t|stop_grace_period:) (\d+)/g)]
  assert.equal(waits.length, 3)
  for (const [, seconds] of waits) assert.ok(Number(seconds) * 1_000 >= LONGEST_STOP_MS + 5_000)
  assert.match(text, /^# RUN apt-get .* NAME /m)
  assert.ok(existsSync(join(cwd, '.dockerignore')))
  const { code } = await init('py', '--for', 'docker', '--command', 'python a.py')
  assert.equal(code, 0)
  assert.match(read('py/Dockerfile'), /^RUN apt-get .* python3 python-is-python3 /m)
})

const python = (code: string, file: string): ReturnType<typeof spawnSync> =>
  spawnSync('python3', ['-c', code, file], { cwd, encoding: 'utf8' })
const hasYaml = python('import yaml', '').status === 0

test(
  'Kubernetes: one pod at a time, time to stop, and no variables in the command',
  { skip: hasYaml ? false : 'no PyYAML here' },
  () => {
    const { stdout, stderr } = python(
      'import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))',
      'kubernetes.yaml',
    )
    assert.equal(stderr, '')
    const [claim, deployment, ...more] = JSON.parse(String(stdout)) as Record<string, unknown>[]
    assert.deepEqual(more, [])
    assert.deepEqual([claim!['kind'], deployment!['kind']], ['PersistentVolumeClaim', 'Deployment'])
    type Pod = { terminationGracePeriodSeconds: number; containers: { command: string[] }[] }
    const spec = deployment!['spec'] as {
      replicas: number
      strategy: { type: string }
      template: { spec: Pod }
    }
    assert.deepEqual([spec.replicas, spec.strategy], [1, { type: 'Recreate' }])
    const { terminationGracePeriodSeconds, containers } = spec.template.spec
    assert.ok(terminationGracePeriodSeconds * 1_000 >= LONGEST_STOP_MS + 5_000)
    // Every $ is doubled: Kubernetes reads $(NAME) as a variable, and $$ as $.
    const words = containers[0]!.command.map((word) => {
      assert.doesNotMatch(word.replaceAll('$$', ''), /\$/)
      return word.replaceAll('$$', '$')
    })
    assert.deepEqual(words, [...IN_IMAGE, ...kept(['node', 'echo.cjs', ...HOSTILE, ...CONTROLS])])
  },
)

test('cron: every hour, a copy at work is left alone, whether or not its cron takes the backslash before % away', () => {
  const [line, ...more] = read('unstuck-echo.cron')
    .split('\n')
    .filter((text) => text !== '' && !text.startsWith('#'))
  assert.deepEqual(more, [])
  const [, fields, command] = /^((?:\S+ ){5})(.+)$/.exec(line!)!
  assert.equal(fields, '0 * * * * ')
  assert.doesNotMatch(command!, /(?<!\\)%/)
  assert.match(command!, / run echo --if-running skip --quiet -- \S+node echo\.cjs /)
  for (const heard of [command!, command!.replaceAll('\\%', '%')]) {
    rmSync(join(cwd, 'words.json'), { force: true })
    assert.equal(spawnSync('/bin/sh', ['-n', '-c', heard]).status, 0)
    const env = { PATH: '/usr/bin:/bin' }
    const { status } = spawnSync('/bin/sh', ['-c', heard], { env, cwd: '/' })
    assert.equal(status, 0)
    assert.deepEqual(JSON.parse(read('words.json')), [...HOSTILE, ...CONTROLS])
  }
})

test('Windows: a task every hour without a time limit, and without a shell', () => {
  const bytes = readFileSync(join(cwd, 'unstuck-echo.xml'))
  assert.deepEqual([...bytes.subarray(0, 2)], [0xff, 0xfe])
  const { stdout, stderr } = python(
    `import json, sys, xml.etree.ElementTree as e; print(json.dumps({x.tag.split('}')[1]: x.text for x in e.parse(sys.argv[1]).iter()}))`,
    'unstuck-echo.xml',
  )
  assert.equal(stderr, '')
  const task = JSON.parse(String(stdout)) as Record<string, string>
  assert.deepEqual(
    [task['Interval'], task['ExecutionTimeLimit'], task['MultipleInstancesPolicy']],
    ['PT60M', 'PT0S', 'IgnoreNew'],
  )
  assert.deepEqual([task['Command'], task['WorkingDirectory']], [process.execPath, cwd])
  const words = windowsWords(task['Arguments']!)
  const expected = [IN_IMAGE[1], 'run', 'echo', '--if-running', 'skip', '--quiet', '--']
  assert.deepEqual(words.slice(0, 7), expected)
  assert.deepEqual(words.slice(8), ['echo.cjs', ...HOSTILE.filter((word) => word !== '$(HOME)')])
})

test('files that are there are kept, no crawl is written, and a refused command writes nothing', async () => {
  using other = emptyProject('project')
  const names = readdirSync(other.path)
  const args = ['init', '--for', 'pm2', 'windows', '--command']
  const at = { cwd: other.path }
  const refused = await unstuck([...args, 'echo %PATH%'], at)
  assert.deepEqual([refused.code, readdirSync(other.path)], [2, names])
  assert.match(refused.stderr, /A task of Windows cannot hold this command/)
  writeFileSync(join(other.path, 'ecosystem.config.cjs'), '// mine')
  const made = await unstuck([...args, 'no-such-program', '--source', 'My Shop', '--json'], at)
  assert.equal(made.code, 0, made.stderr)
  const { files, notes } = JSON.parse(made.stdout) as { files: unknown; notes: string[] }
  assert.deepEqual(files, [
    { path: 'ecosystem.config.cjs', action: 'kept' },
    { path: 'unstuck-my-shop.xml', action: 'written' },
  ])
  assert.match(notes[0]!, /There is no program "no-such-program"/)
  assert.equal(readFileSync(join(other.path, 'ecosystem.config.cjs'), 'utf8'), '// mine')
})

const USAGE: readonly [args: string[], message: RegExp][] = [
  [['--command', 'x'], /--command goes with --for/],
  [['--for', 'pm2', '--source', 'x'], /--source and --interval go with --command/],
  [['--for', 'pm2', '--command', 'x', '--module', 'a.ts'], /either --module or --command/],
  [['--for', 'pm2', '--command', ' '], /--command is empty/],
  [['--for', 'pm2', '--command', `python 'a`], /has a quote or a backslash without its end/],
  [['--for', 'pm2', '--command', 'cd x && y'], /without a shell, which "&&" needs/],
  [['--for', 'pm2', '--command', 'A=1 y'], /without a shell, which "A=1" needs/],
  [['--for', 'pm2', '--command', 'y', '--source', 'a\nb'], /A source is a name/],
  [['--for', 'cron', '--command', 'y', '--interval', '7m'], /7m cannot be a line of a crontab/],
  [['--for', 'cron', '--command', 'y', '--interval', '30s'], /must be whole minutes/],
  [['--for', 'cron', '--command', `y 'a\n'`], /which ends with a line break/],
]
for (const [args, message] of USAGE) {
  test(`wrong usage ends with 2 and advice: init ${JSON.stringify(args.join(' '))}`, async () => {
    using other = emptyProject('project')
    const { code, stderr } = await unstuck(['init', ...args], { cwd: other.path })
    assert.equal(code, 2)
    assert.match(stderr, message)
  })
}

test('a command is split as a shell splits it', () => {
  const lines = [
    `a  b\tc   d`,
    `'a b'"c d"e\\ f`,
    `"a\\"b" "\\$x" "\\n" "\\\\" '\\'`,
    `x '' "" x''`,
    `a\\\nb "c\\\nd" \\\n e`,
    `http://x/?a=1\\&b=2 --x=y`,
    lineOf(HOSTILE),
  ]
  for (const line of lines) {
    const script = `process.stdout.write(JSON.stringify(process.argv.slice(1)))`
    const { stdout } = spawnSync('sh', ['-c', `"$NODE" -e '${script}' -- ${line}`], {
      encoding: 'utf8',
      env: { NODE: process.execPath },
    })
    assert.deepEqual(splitCommand(line, 'linux'), JSON.parse(stdout), line)
  }
  assert.deepEqual(splitCommand('a\n b', 'linux'), ['a', 'b'])
  assert.deepEqual(splitCommand('C:\\py\\p.exe "C:\\My Files\\a.py"', 'win32'), [
    'C:\\py\\p.exe',
    'C:\\My Files\\a.py',
  ])
  for (const line of ['a | b', 'a > b', 'a 2>&1', 'a; b', 'a &', 'a >b'])
    assert.throws(() => splitCommand(line, 'linux'), /without a shell/, line)
  assert.deepEqual(splitCommand(`a ';' "|" \\>`, 'linux'), ['a', ';', '|', '>'])
})

test('a source is named after the script, the module or the program', () => {
  const names = [
    'python3 src/My_Scraper.py --fast https://x.example/a.php',
    './nightly.sh',
    'python -m shop.crawl',
    'npm run crawl:all',
    'uv run scraper.py',
    '/usr/local/bin/fetch -v',
  ].map((line) => deriveSource(line.split(' ')))
  assert.deepEqual(names, ['my-scraper', 'nightly', 'shop-crawl', 'crawl-all', 'scraper', 'fetch'])
})

test('an interval is a schedule of cron if it divides an hour or a day', () => {
  const minutes = [1, 10, 60, 6 * 60, 24 * 60]
  assert.deepEqual(
    minutes.map((count) => cronSchedule(count * 60_000)),
    ['* * * * *', '*/10 * * * *', '0 * * * *', '0 */6 * * *', '0 3 * * *'],
  )
  for (const count of [7, 45, 90, 5 * 60, 48 * 60, 0.5])
    assert.throws(() => cronSchedule(count * 60_000), /--interval/)
})

test('words for Windows come through whole', () => {
  const words = ['', 'a b', 'a"b', 'a\\"b', 'a b\\', 'C:\\x\\', '\\\\host\\x y', '100%', "'"]
  assert.deepEqual(windowsWords(windowsArguments(words)), words)
  for (const word of ['%PATH%', '$(Arg0)', 'a\nb']) assert.throws(() => windowsArguments([word]))
})

test('words for a unit come through whole', () => {
  const words = ['/bin/node', ...HOSTILE, ...CONTROLS] as [string, ...string[]]
  assert.deepEqual(unitWords(execStart(words)), words)
})

/** A command line as systemd takes it apart. In the program's own path it looks for no variables. */
function unitWords(line: string): string[] {
  const words = [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain]) => {
    const text =
      plain ??
      quoted!.replaceAll(/\\(?:x(..)|(.))/g, (_, hex?: string, char?: string) =>
        hex === undefined ? char! : String.fromCharCode(parseInt(hex, 16)),
      )
    return single(text, '%')
  })
  return words.map((word, n) => (n === 0 ? word : single(word, '$')))
}

function single(text: string, letter: '%' | '$'): string {
  const parts = text.split(letter + letter)
  for (const part of parts) assert.ok(!part.includes(letter), `a lone ${letter} in ${text}`)
  return parts.join(letter)
}

/** A command line as the C library of Windows takes it apart. */
function windowsWords(line: string): string[] {
  const words: string[] = []
  let word: string | null = null
  let isQuoted = false
  for (let at = 0; at < line.length;) {
    const [, slashes = ''] = /^(\\*)/.exec(line.slice(at))!
    at += slashes.length
    const char = line[at]
    if (slashes && char !== '"') word = (word ?? '') + slashes
    else if (slashes) word = (word ?? '') + '\\'.repeat(Math.floor(slashes.length / 2))
    if (char === undefined) break
    at++
    if (char === '"' && slashes.length % 2 === 1) word = `${word}"`
    else if (char === '"') {
      isQuoted = !isQuoted
      word ??= ''
    } else if (char === ' ' && !isQuoted) {
      if (word !== null) words.push(word)
      word = null
    } else word = (word ?? '') + char
  }
  return word === null ? words : [...words, word]
}
