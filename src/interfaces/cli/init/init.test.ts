import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { makePolicy } from '../../../lib/validate/policy-options.ts'
import { shellWord } from '../../../core/model/shell-command.ts'
import { emptyProject } from '../../../testing/empty-project.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'
import { shellQuote } from '../commands/init.ts'
import { slugify } from './project.ts'
import { renderTemplate, withUnstuckIgnored } from './write.ts'

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url))
const STARTER = ['unstuck.config.ts', 'crawl.ts', '.gitignore']
/** All that a shell, a crontab, a unit and XML would trip over. */
const HOSTILE = `it's 100% "a & b" <c> $HOME`

type InitResult = {
  folder: string
  dryRun: boolean
  files: { path: string; action: string }[]
  notes: string[]
  next: string[]
}

async function init(cwd: string, ...args: string[]): Promise<InitResult> {
  const { code, stdout, stderr } = await unstuck(['init', ...args, '--json'], { cwd })
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as InitResult
}

function actions({ files }: InitResult): Record<string, string> {
  return Object.fromEntries(files.map(({ path, action }) => [path, action]))
}

const all = (action: string, paths = STARTER): Record<string, string> =>
  Object.fromEntries(paths.map((path) => [path, action]))

for (const name of ['project', HOSTILE]) {
  test(`the example runs as it is, in a folder named ${name}`, async () => {
    using project = emptyProject(name)
    const cwd = project.path
    const answer = await init(cwd)
    assert.deepEqual(actions(answer), all('written'))
    assert.deepEqual(answer.notes, [])
    const crawl = join(cwd, 'crawl.ts')
    const slow = read(cwd, 'crawl.ts')
    writeFileSync(crawl, slow.replace(/(ANSWERS_AFTER_MS =) \d+/, '$1 5'))
    assert.deepEqual(answer.next, [
      'npx unstuck work crawl.ts --drain',
      'npx unstuck status',
      'npx unstuck items example',
    ])
    for (const command of answer.next) {
      const { code, stderr } = await unstuck(command.split(' ').slice(2), { cwd })
      assert.equal(code, 0, stderr)
    }
    const { stdout } = await unstuck(['items', 'example'], { cwd })
    const items = stdout.trim().split('\n')
    assert.equal(new Set(items.map((line) => (JSON.parse(line) as { url: string }).url)).size, 288)
    assert.ok(existsSync(join(cwd, '.unstuck', 'unstuck.db')))
  })
}

test('the types of config and example are right', () => {
  using project = emptyProject('project')
  const cwd = project.path
  spawnSync(process.execPath, [join(ROOT, 'bin/unstuck.js'), 'init'], { cwd })
  const compilerOptions = {
    strict: true,
    noEmit: true,
    skipLibCheck: true,
    allowImportingTsExtensions: true,
    erasableSyntaxOnly: true,
    noUnusedLocals: true,
    noUncheckedIndexedAccess: true,
    target: 'es2025',
    lib: ['es2025', 'esnext.disposable'],
    module: 'nodenext',
    types: ['node'],
    typeRoots: [join(ROOT, 'node_modules/@types')],
    paths: { unstuck: [join(ROOT, 'src/index.ts')] },
  }
  const files = ['crawl.ts', 'unstuck.config.ts']
  writeFileSync(join(cwd, 'tsconfig.json'), JSON.stringify({ compilerOptions, files }))
  const tsc = (): string[] =>
    spawnSync(join(ROOT, 'node_modules/.bin/tsc'), ['--pretty', 'false'], { cwd, encoding: 'utf8' })
      .stdout.split('\n')
      .filter((line) => /^(crawl|unstuck\.config)\.ts\(/.test(line))
  assert.deepEqual(tsc(), [])
  writeFileSync(
    join(cwd, 'crawl.ts'),
    `${read(cwd, 'crawl.ts')}\nexport const n: number = PAGES + ''\n`,
  )
  assert.equal(tsc().length, 1)
})

test('files that are there are kept, and named', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  await init(cwd)
  writeFileSync(join(cwd, 'crawl.ts'), '// mine')
  const { code, stdout } = await unstuck(['init'], { cwd })
  assert.equal(code, 0)
  assert.match(stdout, /^ {2}kept +crawl\.ts +it was there already$/m)
  assert.deepEqual(actions(await init(cwd)), all('kept'))
  assert.equal(read(cwd, 'crawl.ts'), '// mine')
})

test('--force replaces them, but a .gitignore keeps its lines', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  writeFileSync(join(cwd, 'crawl.ts'), '// mine')
  writeFileSync(join(cwd, '.gitignore'), 'dist')
  const expected = {
    'unstuck.config.ts': 'written',
    'crawl.ts': 'replaced',
    '.gitignore': 'written',
  }
  assert.deepEqual(actions(await init(cwd, '--force')), expected)
  assert.match(read(cwd, 'crawl.ts'), /defineCrawl/)
  assert.equal(read(cwd, '.gitignore'), 'dist\n.unstuck/\n')
})

test('--dry-run prints the same and writes nothing', async () => {
  using project = emptyProject('project')
  const before = readdirSync(project.path)
  const dry = await init(project.path, 'there', '--for', 'docker', '--dry-run')
  assert.equal(dry.dryRun, true)
  assert.deepEqual(readdirSync(project.path), before)
  const { dryRun: _, ...real } = await init(project.path, 'there', '--for', 'docker')
  const { dryRun: __, ...planned } = dry
  assert.deepEqual(real, planned)
})

test('a folder that is not there is made, and the way there is the first command', async () => {
  using project = emptyProject('project')
  const { folder, next } = await init(project.path, HOSTILE)
  assert.equal(folder, join(project.path, HOSTILE))
  const shell = spawnSync('sh', ['-c', `${next[0]} && pwd`], { encoding: 'utf8' })
  assert.equal(shell.stdout, `${folder}\n`)
})

test('with a crawl of one’s own, --for writes what it is for and nothing else', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  mkdirSync(join(cwd, 'src'))
  writeFileSync(join(cwd, 'src', 'shop.ts'), `export default defineCrawl({ source: 'My Shop!' })`)
  const answer = await init(
    cwd,
    '--for',
    'systemd',
    'pm2',
    '--for',
    'pm2',
    '--module',
    'src/shop.ts',
  )
  const files = ['unstuck-my-shop.service', 'ecosystem.config.cjs']
  assert.deepEqual(actions(answer), all('written', files))
  assert.ok(!answer.next.some((command) => command.startsWith('npx')))
})

test('without one, the example comes with it', async () => {
  using project = emptyProject('project')
  const answer = await init(project.path, '--for', 'cron', '--module', 'shop.ts')
  const files = ['unstuck.config.ts', 'shop.ts', '.gitignore', 'unstuck.cron']
  assert.deepEqual(actions(answer), all('written', files))
})

test('a config above counts, so no second one is written', async () => {
  using project = emptyProject('project')
  writeFileSync(join(project.path, 'unstuck.config.mts'), 'export default {}')
  const expected = {
    '../unstuck.config.mts': 'kept',
    'crawl.ts': 'written',
    '.gitignore': 'written',
  }
  assert.deepEqual(actions(await init(project.path, 'sub')), expected)
  assert.deepEqual(
    Object.keys(actions(await init(project.path, '--force')))[0],
    'unstuck.config.mts',
  )
})

test('missing packages are listed with the commands that install them; package.json is unchanged', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  for (const [content, note, commands] of [
    [null, /^There is no package\.json/, ['npm init -y', 'npm pkg set type=module']],
    ['{ "type": "commonjs" }', /has no "type": "module".*crawl\.mts/, ['npm pkg set type=module']],
    ['{ broken', /has no "type": "module"/, ['npm pkg set type=module']],
  ] as const) {
    rmSync(join(cwd, 'package.json'), { force: true })
    if (content !== null) writeFileSync(join(cwd, 'package.json'), content)
    const { notes, next } = await init(cwd, '--dry-run')
    assert.match(notes[0]!, note)
    assert.deepEqual(next.slice(0, commands.length), commands)
    assert.equal(existsSync(join(cwd, 'package.json')), content !== null)
  }
  const inCommonJs = await init(cwd, '--module', 'crawl.mts', '--dry-run')
  assert.deepEqual(inCommonJs.notes, [])
  assert.ok('unstuck.config.mts' in actions(inCommonJs), 'one that Node reads as a module there')
})

test('a package that is not installed is reported', async () => {
  using folder = temporaryFolder()
  const { notes } = await init(folder.path)
  assert.match(notes.join('\n'), /unstuck is not installed in this folder/)
})

const USAGE: [string[], RegExp][] = [
  [['--for', 'pm3'], /not "pm3"\. Did you mean pm2\?/],
  [['--for', 'pm2', 'shop'], /not "shop"\. A folder is written before it/],
  [['package.json'], /is not a folder/],
  [['--module', '../crawl.ts'], /--module must be a file like crawl\.ts inside/],
  [['--module', 'crawl.py'], /--module must be a file like crawl\.ts inside/],
  [['--module', 'crawl.js'], /The example is TypeScript/],
  [['line\nbreak'], /a line break or another control character/],
  [['back\\slash'], /contains a backslash/],
  [['package.json/sub'], /could not be written/],
]
for (const [args, message] of USAGE) {
  test(`wrong usage ends with 2 and advice: init ${JSON.stringify(args.join(' '))}`, async () => {
    using project = emptyProject('project')
    const before = readdirSync(project.path)
    const { code, stdout, stderr } = await unstuck(['init', ...args], { cwd: project.path })
    assert.deepEqual([code, stdout], [2, ''])
    assert.match(stderr, message)
    assert.deepEqual(readdirSync(project.path), before)
  })
}

test('on a narrow terminal commands are neither cut nor broken', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  const { stdout } = await unstuck(['init', '--for', 'docker'], { cwd, env: { COLUMNS: '40' } })
  assert.match(stdout, /^`docker run .* unstuck-example`$/m)
})

test('the defaults that the config shows are the defaults', () => {
  const shown = [
    ...renderTemplate('unstuck.config.ts').matchAll(/^ +\/\/ (\w+): (?:'(.+?)'|(\d+)),/gm),
  ]
  const options = Object.fromEntries(
    shown.map(([, name, text, count]) => [name!, text ?? Number(count)]),
  )
  assert.ok(shown.length > 5)
  assert.deepEqual(makePolicy(options), { policy: DEFAULT_POLICY, mistakes: [] })
})

test('.unstuck/ is added to a .gitignore once, in its own way of ending lines', () => {
  assert.equal(withUnstuckIgnored(''), '.unstuck/\n')
  assert.equal(withUnstuckIgnored('a\r\nb'), 'a\r\nb\r\n.unstuck/\r\n')
  for (const said of ['.unstuck', 'a\n/.unstuck/\nb', 'a\r\n .unstuck/ \r\n']) {
    assert.equal(withUnstuckIgnored(said), null)
  }
})

test('words and names come through whole', () => {
  for (const text of ['plain/a-b.ts', HOSTILE, "'", '', 'a\\', '`x`', '!', 'Grüße']) {
    const echoed = spawnSync('sh', ['-c', `printf %s ${shellWord(text)}`], { encoding: 'utf8' })
    assert.equal(echoed.stdout, text)
  }
  assert.equal(shellQuote('C:\\My Files', 'win32'), '"C:\\My Files"')
  assert.deepEqual(['My Shop!', '---', 'Ünï', `${'a'.repeat(39)}--b`].map(slugify), [
    'my-shop',
    'crawl',
    'n',
    'a'.repeat(39),
  ])
})

function read(folder: string, name: string): string {
  return readFileSync(join(folder, name), 'utf8')
}
