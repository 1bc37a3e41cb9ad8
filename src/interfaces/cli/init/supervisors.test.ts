import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import process from 'node:process'
import { after, before, test } from 'node:test'
import { EXIT } from '../../../core/model/exit-codes.ts'
import { STOP_DEADLINE_MS } from '../../../core/model/policy.ts'
import { emptyProject } from '../../../testing/empty-project.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'
import { commandOptions } from '../../../features/commands/cli/options.ts'
import type { Facts } from './project.ts'
import { supervisor, SUPERVISOR_NAMES } from './supervisors.ts'

/** Each file is read as its supervisor reads it, and what it says is really run, in a folder with a hostile name. */

const HOSTILE = `it's 100% "a & b" <c> $HOME %USER%`
const project = emptyProject(HOSTILE)
const cwd = project.path
const WORK = ['work', 'crawl.ts', '--workers', '3']
/** Of a crawl, and of a command in `unstuck run`. */
const LONGEST_STOP_MS = Math.max(STOP_DEADLINE_MS, commandOptions.killTimeout.defaultValue)
const IN_IMAGE = ['node', 'node_modules/unstuck/bin/unstuck.js', ...WORK]

before(async () => {
  const args = ['init', '--for', ...SUPERVISOR_NAMES, '--workers', '3']
  const { code, stderr } = await unstuck(args, { cwd })
  assert.equal(code, 0, stderr)
})
after(() => project[Symbol.dispose]())

const read = (name: string): string => readFileSync(join(cwd, name), 'utf8')

/** To its end, so that it can be waited for, and with a database of its own. */
function assertDrains(program: string, args: readonly string[], where = cwd): void {
  rmSync(join(cwd, '.unstuck'), { recursive: true, force: true })
  const ended = spawnSync(program, [...args, '--drain'], { cwd: where, encoding: 'utf8' })
  assert.equal(ended.status, EXIT.done, ended.stderr)
  assert.match(ended.stderr, /of example/)
}

test('PM2: the program itself, in fork mode, with time to stop', () => {
  const { apps } = createRequire(import.meta.url)(join(cwd, 'ecosystem.config.cjs')) as {
    apps: { [key: string]: unknown; args: string[]; script: string; kill_timeout: number }[]
  }
  assert.equal(apps.length, 1)
  const [app] = apps
  const { name, exec_mode, instances, treekill, pmx, interpreter } = app!
  assert.deepEqual(
    { name, exec_mode, instances, treekill, pmx, interpreter },
    {
      name: 'unstuck-example',
      exec_mode: 'fork',
      instances: 1,
      treekill: false,
      pmx: false,
      interpreter: 'node',
    },
  )
  assert.ok(app!.kill_timeout >= LONGEST_STOP_MS + 5_000)
  assert.ok((app!['exp_backoff_restart_delay'] as number) >= 1_000)
  // Not 0: it is also what PM2 makes of a process that was killed.
  assert.deepEqual(app!['stop_exit_codes'], [
    EXIT.usage,
    EXIT.needsAttention,
    EXIT.schema,
    EXIT.resumable,
  ])
  assert.equal(app!['cwd'], cwd)
  assertDrains(process.execPath, [join(cwd, app!.script), ...app!.args])
})

test('systemd: the main process gets SIGTERM first, and has time', () => {
  const unit = settingsOf(read('unstuck-example.service'))
  assert.equal(unit['KillMode'], 'mixed')
  assert.equal(unit['Delegate'], 'yes', 'wrapped commands get cgroups of their own')
  assert.equal(unit['KillSignal'], 'SIGTERM')
  assert.ok(Number(unit['TimeoutStopSec']) * 1_000 >= LONGEST_STOP_MS + 5_000)
  assert.equal(unit['Type'], 'notify')
  assert.equal(unit['NotifyAccess'], 'all', 'systemd-notify is not the main process')
  // Far above the outages that a worker waits out by itself.
  assert.ok(Number(unit['WatchdogSec']) >= 120)
  assert.equal(unit['Restart'], 'on-failure')
  assert.ok(Number(unit['RestartSec']) >= 1)
  assert.equal(unit['StartLimitIntervalSec'], '0')
  assert.equal(
    unit['RestartPreventExitStatus'],
    `${EXIT.usage} ${EXIT.needsAttention} ${EXIT.schema}`,
  )
  assert.equal(unit['SuccessExitStatus'], String(EXIT.resumable))
  const folder = unescapeDoubled(unit['WorkingDirectory']!, '%')
  assert.equal(folder, cwd)
  const [program, ...args] = splitArguments(unit['ExecStart']!)
  assert.equal(program, process.execPath)
  assertDrains(program, args, folder)
})

const ANALYZE = 'systemd-analyze'
const hasSystemd = spawnSync(ANALYZE, ['--version']).status === 0

test(
  'systemd finds nothing wrong with it',
  { skip: hasSystemd ? false : 'no systemd here' },
  () => {
    const file = join(cwd, 'unstuck-example.service')
    const { status, stderr } = spawnSync(ANALYZE, ['verify', '--man=no', file], {
      encoding: 'utf8',
    })
    // On a machine that was not booted by systemd other units of it may be incomplete.
    const about = stderr.split('\n').filter((line) => line.includes('unstuck-example'))
    assert.deepEqual([status, about], [0, []], stderr)
  },
)

test('Docker: Node is started without a shell, and the database is on a volume', () => {
  const text = read('Dockerfile')
  const command = /^CMD (\[.+\])$/m.exec(text)?.[1]
  assert.deepEqual(JSON.parse(command!), IN_IMAGE)
  assert.match(text, /^STOPSIGNAL SIGTERM$/m)
  assert.match(text, /^VOLUME \/app\/\.unstuck$/m)
  assert.match(text, /^USER node$/m)
  assert.match(text, /^#.* --init .*-v unstuck-example:\/app\/\.unstuck /m)
  const waits = [...text.matchAll(/(?:--stop-timeout|stop -t|stop_grace_period:) (\d+)/g)]
  assert.equal(waits.length, 3)
  for (const [, seconds] of waits) assert.ok(Number(seconds) * 1_000 >= LONGEST_STOP_MS + 5_000)
  assert.ok(read('.dockerignore').split('\n').includes('.unstuck'))
})

test('Docker: without a lock file npm installs, with one it goes by it', () => {
  const [loose, locked] = [false, true].map((hasLockFile) => {
    return supervisor('docker').files({ ...FACTS, hasLockFile })[0]!.text
  })
  assert.match(loose!, /^RUN npm install --omit=dev$/m)
  assert.match(locked!, /^RUN npm ci --omit=dev$/m)
})

test('Kubernetes: one pod at a time, time to stop, no shell, the database on a disk', () => {
  const [claim, deployment, ...more] = read('kubernetes.yaml').split('\n---\n')
  assert.deepEqual(more, [])
  assert.match(claim!, /^kind: PersistentVolumeClaim$/m)
  for (const line of [
    /^kind: Deployment$/,
    /^ {2}replicas: 1$/,
    /^ {4}type: Recreate$/,
    /^ {10}image: unstuck-example:latest$/,
    /^ {14}mountPath: \/app\/\.unstuck$/,
    /^ {12}claimName: unstuck-example$/,
  ]) {
    assert.ok(
      deployment!.split('\n').some((text) => line.test(text)),
      `${line}`,
    )
  }
  const seconds = /^ {6}terminationGracePeriodSeconds: (\d+)$/m.exec(deployment!)?.[1]
  assert.ok(Number(seconds) * 1_000 >= LONGEST_STOP_MS + 5_000)
  assert.deepEqual(JSON.parse(/^ {10}command: (.+)$/m.exec(deployment!)![1]!), IN_IMAGE)
  assert.doesNotMatch(read('kubernetes.yaml'), /\t| $/m)
})

test('cron: daily at 03:00, with all paths, whether or not its cron takes the backslash before % away', () => {
  const lines = read('unstuck.cron')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'))
  assert.equal(lines.length, 1)
  const [, fields, command] = /^((?:\S+ ){5})(.+)$/.exec(lines[0]!)!
  assert.equal(fields, '0 3 * * * ')
  assert.doesNotMatch(command!, /(?<!\\)%/)
  assert.match(command!, / clean --yes >> \.unstuck\/clean\.log 2>&1$/)
  for (const heard of [command!, command!.replaceAll('\\%', '%')]) {
    rmSync(join(cwd, '.unstuck'), { recursive: true, force: true })
    const asked = heard.replace('clean --yes', '--version')
    const { status } = spawnSync('/bin/sh', ['-c', asked], { env: {}, cwd: '/' })
    assert.equal(status, 0)
    assert.match(read('.unstuck/clean.log'), /^\d+\.\d+\.\d+\n$/)
  }
})

test("Windows: a task that schtasks can read, and the folder's name is not read by cmd", () => {
  const bytes = readFileSync(join(cwd, 'unstuck-clean.xml'))
  assert.deepEqual([...bytes.subarray(0, 2)], [0xff, 0xfe])
  const text = bytes.toString('utf16le').slice(1)
  assert.match(text, /^<\?xml version="1\.0" encoding="UTF-16"\?>\r\n<Task /)
  const task = elementsOf(text)
  assert.equal(task['WorkingDirectory'], cwd)
  assert.equal(task['StartBoundary'], '2026-01-01T03:00:00')
  assert.equal(task['DaysInterval'], '1')
  assert.equal(task['Command'], 'cmd.exe')
  assert.match(task['Arguments']!, /^\/d \/s \/c ".* clean --yes >> \.unstuck\\clean\.log 2>&1"$/)
  assert.ok(task['Arguments']!.includes(`"${process.execPath}"`))
  assert.ok(!task['Arguments']!.includes('%'))
})

test('no file holds a line break of a path, a tab or an end of line with spaces', () => {
  for (const name of SUPERVISOR_NAMES) {
    for (const { text } of supervisor(name).files(FACTS)) {
      assert.ok(text.endsWith('\n'))
      assert.doesNotMatch(text, /\t|[ ]$/m)
    }
  }
})

const FACTS: Facts = {
  folder: '/srv/shop',
  module: 'crawl.ts',
  name: 'unstuck-shop',
  workers: 2,
  node: '/usr/bin/node',
  bin: '/srv/shop/node_modules/unstuck/bin/unstuck.js',
  binFromFolder: 'node_modules/unstuck/bin/unstuck.js',
  user: 'crawler',
  hasLockFile: true,
}

/** The settings of a unit by name; a name that comes twice would be a mistake. */
function settingsOf(unit: string): Record<string, string> {
  const settings: Record<string, string> = {}
  for (const line of unit.split('\n')) {
    if (line === '' || /^[#[]/.test(line)) continue
    const [, name, value] = /^(\w+)=(.*)$/.exec(line)!
    assert.ok(!Object.hasOwn(settings, name!), name)
    settings[name!] = value!
  }
  return settings
}

/** A command line as systemd takes it apart. In the program's own path it looks for no variables. */
function splitArguments(line: string): string[] {
  const words = [...line.matchAll(/"((?:[^"\\]|\\.)*)"|(\S+)/g)].map(([, quoted, plain]) =>
    unescapeDoubled(quoted?.replaceAll(/\\(.)/g, '$1') ?? plain!, '%'),
  )
  return words.map((word, n) => (n === 0 ? word : unescapeDoubled(word, '$')))
}

/** Alone, this letter would stand for something else. */
function unescapeDoubled(text: string, letter: '%' | '$'): string {
  const parts = text.split(letter + letter)
  for (const part of parts) assert.ok(!part.includes(letter), `a lone ${letter} in ${text}`)
  return parts.join(letter)
}

/** The text of each element, of a document that must be well-formed. */
function elementsOf(xml: string): Record<string, string> {
  const open: string[] = []
  const texts: Record<string, string> = {}
  const [, body] = xml.split('?>\r\n')
  for (const [, end, name, text] of body!.matchAll(/<(\/?)(\w+)[^<>]*>([^<>]*)/g)) {
    if (end) assert.equal(open.pop(), name)
    else open.push(name!)
    assert.doesNotMatch(text!, /&(?!(amp|lt|gt|quot|apos);)/)
    if (!end) texts[name!] = plain(text!)
  }
  assert.deepEqual(open, [])
  return texts
}

function plain(text: string): string {
  const letters: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
  return text.replaceAll(/&(\w+);/g, (_, name: string) => letters[name]!)
}
