import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { unstuckProcess as unstuck } from '../../testing/unstuck-cli.ts'

const folder = temporaryFolder()
const cwd = folder.path
after(() => folder[Symbol.dispose]())

test('help starts with an example and lists every command', async () => {
  const { code, stdout } = await unstuck(['--help'], { cwd })
  assert.equal(code, 0)
  assert.match(stdout, /^Examples:\n {2}unstuck demo\n/)
  for (const name of [
    'work',
    'enqueue',
    'status',
    'runs',
    'show',
    'progress',
    'workers',
    'items',
    'journal',
  ]) {
    assert.match(stdout, new RegExp(`^ {2}${name} `, 'm'))
  }
})

test('unstuck alone, and unstuck help COMMAND, ask for help', async () => {
  assert.deepEqual(await unstuck([], { cwd }), await unstuck(['--help'], { cwd }))
  assert.deepEqual(
    await unstuck(['help', 'show'], { cwd }),
    await unstuck(['show', '--help'], { cwd }),
  )
})

test('the version is a number and nothing else', async () => {
  for (const flag of ['--version', '-v'])
    assert.match((await unstuck([flag], { cwd })).stdout, /^\d+\.\d+\.\d+\n$/)
})

const USAGE: [string[], RegExp][] = [
  [['statsu'], /Unknown command 'statsu'\. Did you mean status\?/],
  [
    ['status', '--jsno'],
    /Unknown option '--jsno'\. Did you mean --json\? See `unstuck status --help`/,
  ],
  [['journal', 'raed', 'x'], /Did you mean read\? See `unstuck journal --help`/],
  [['show'], /Missing required argument 'RUN'/],
  [['runs', 'x'], /Too many arguments/],
  [
    ['runs', '--limit', 'many', '--status', 'odd'],
    /--status must be one of [^]*--limit must be a whole number/,
  ],
  [['workers', '--older', 'old'], /--older must be a duration like 30s/],
  [['status', '--color', 'red'], /Allowed choices are auto, always, never/],
  [['status', '--db', 'mysql://me:hunter2@h/x'], /--db must be sqlite:PATH/],
  [['journal'], /Usage: unstuck journal/],
]

for (const [args, message] of USAGE) {
  test(`wrong usage ends with 2 and advice: ${args.join(' ').replace(/\S*hunter2\S*/, '…')}`, async () => {
    const { code, stdout, stderr } = await unstuck(args, { cwd })
    assert.equal(code, 2)
    assert.equal(stdout, '')
    assert.match(stderr, message)
    assert.doesNotMatch(stderr, /hunter2/)
  })
}

test('with --json an error is one JSON document on stderr', async () => {
  const { code, stdout, stderr } = await unstuck(['show', '12345678', '--json'], { cwd })
  assert.equal(code, 2)
  assert.equal(stdout, '')
  const { error } = JSON.parse(stderr) as { error: { code: string; message: string } }
  assert.equal(error.code, 'E_NOT_FOUND')
  assert.match(error.message, /There is no database at .*unstuck\.db yet\./)
  assert.equal(
    JSON.parse((await unstuck(['--json', 'oops'], { cwd })).stderr).error.code,
    'E_USAGE',
  )
})

test('--debug shows where an error happened', async () => {
  const { stderr } = await unstuck(['show', '12345678', '--debug'], { cwd })
  assert.match(stderr, /at .*database\.ts/)
})

test('where nothing ever ran, looking is no error and makes nothing', async () => {
  for (const command of ['status', 'runs', 'workers']) {
    assert.equal((await unstuck([command], { cwd })).code, 0)
  }
  const { stdout } = await unstuck(['status'], { cwd })
  assert.match(stdout, /^Nothing has run yet\.[^]*unstuck demo/)
  assert.equal(existsSync(join(cwd, '.unstuck')), false)
})

test('a database that does not answer ends with 7, its password unsaid', async () => {
  const { code, stdout, stderr } = await unstuck(['status', '--debug'], {
    cwd,
    env: { UNSTUCK_DB: 'postgres://me:hunter2@127.0.0.1:1/x' },
  })
  assert.equal(code, 7)
  assert.match(stderr, /E_DB_UNREACHABLE/)
  assert.doesNotMatch(stdout + stderr, /hunter2/)
})

test('a config with mistakes ends with 2', async () => {
  using other = temporaryFolder()
  writeFileSync(join(other.path, 'unstuck.config.ts'), 'export default { presett: 1 }')
  const { code, stderr } = await unstuck(['status'], { cwd: other.path })
  assert.equal(code, 2)
  assert.match(stderr, /did you mean preset\?/)
})

async function usesColour(args: string[], env: NodeJS.ProcessEnv = {}): Promise<boolean> {
  return (await unstuck(['status', ...args], { cwd, env })).stdout.includes('\x1b[')
}

test('colour is for terminals, unless it is asked for', async () => {
  assert.equal(await usesColour([]), false)
  assert.equal(await usesColour(['--color', 'always']), true)
  assert.equal(await usesColour([], { FORCE_COLOR: '1' }), true)
  assert.equal(await usesColour(['--color', 'never'], { FORCE_COLOR: '1' }), false)
  assert.equal(await usesColour([], { NO_COLOR: '1' }), false)
})
