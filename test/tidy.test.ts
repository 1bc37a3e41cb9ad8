import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'

/** What of the house style a machine can check. */

const ROOT = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const sources = globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).sort()
const isTest = (file: string): boolean =>
  /\.test\.ts$|^src\/testing\/|^src\/store\/conformance\//.test(file)
const product = sources.filter((file) => !isTest(file))

/** Which folder may know which. Whoever is not named here (the public door, the version) may be known by all. */
const KNOWS: Readonly<Record<string, readonly string[]>> = {
  model: [],
  decide: ['model'],
  store: ['model'],
  observe: ['model'],
  adopted: ['model', 'decide', 'store', 'observe'],
  runtime: ['model', 'decide', 'store', 'observe', 'adopted'],
  surfaces: ['model', 'decide', 'store', 'observe', 'adopted', 'runtime', 'demo', 'chaos'],
  crawlee: ['model', 'decide', 'store', 'observe', 'runtime'],
  chaos: ['model', 'store', 'observe', 'runtime', 'surfaces', 'demo'],
  demo: ['model', 'store', 'observe', 'runtime', 'surfaces'],
}

test('imports point one way', () => {
  for (const file of product) {
    const folder = file.split('/')[1]!
    const allowed = KNOWS[folder]
    if (!allowed) continue
    for (const imported of importsOf(file)) {
      const other = imported.split('/')[1]!
      if (other === folder || !(other in KNOWS || other === 'testing')) continue
      assert.ok(allowed.includes(other), `${file} imports ${imported}: ${folder} does not know it`)
    }
  }
})

test('every folder of src has its place among the others', () => {
  const folders = new Set(product.map((file) => file.split('/')[1]!))
  for (const folder of folders) {
    assert.ok(folder.endsWith('.ts') || folder in KNOWS, `src/${folder} is not in the list above`)
  }
})

test('the two engines do not know each other', () => {
  for (const file of product) {
    const engine = /^src\/store\/(sqlite|postgres)\//.exec(file)?.[1]
    if (!engine) continue
    const other = engine === 'sqlite' ? 'postgres' : 'sqlite'
    for (const imported of importsOf(file)) {
      assert.ok(!imported.startsWith(`src/store/${other}/`), `${file} imports ${imported}`)
    }
  }
})

test('what is published does not know the helpers of the tests', () => {
  for (const file of product) {
    for (const imported of importsOf(file)) {
      assert.ok(!isTest(imported), `${file} imports ${imported}`)
    }
  }
})

test('the model and the judgement do no input or output', () => {
  for (const file of product.filter((file) => /^src\/(model|decide)\//.test(file))) {
    for (const [, name] of read(file).matchAll(/from 'node:([\w/]+)'/g)) {
      assert.equal(name, 'crypto', `${file} imports node:${name}`)
    }
    assert.doesNotMatch(read(file), /Date\.now\(|Math\.random\(|process\./, file)
  }
})

test("only the store speaks SQL, and what reads and writes users' own tables", () => {
  for (const file of product.filter((file) => !/^src\/(store|adopted|demo)\//.test(file))) {
    assert.doesNotMatch(read(file), /\/\* sql \*\/|from '(pg|node:sqlite)'/, file)
  }
})

test('the SQLite store takes the time from its own clock, except for times of files', () => {
  const mayAsk = /\/(clock|database|inspect)\.ts$/
  const store = product.filter((file) => file.startsWith('src/store/sqlite/') && !mayAsk.test(file))
  for (const file of store) assert.doesNotMatch(read(file), /Date\.now\(/, file)
})

test('no file is longer than 350 lines', () => {
  for (const file of sources.filter((file) => !file.endsWith('.test.ts'))) {
    const lines = read(file).split('\n').length
    assert.ok(lines <= 350, `${file} has ${lines} lines: which two ideas are in it?`)
  }
})

test('every error code has its entry in docs/errors.md, and every entry its code', () => {
  const codes = new Set<string>()
  for (const file of product) {
    for (const [, code] of read(file).matchAll(/'(E_[A-Z_]+)'/g)) codes.add(code!)
  }
  const entries = [...read('docs/errors.md').matchAll(/^## (E_[A-Z_]+)$/gm)].map(
    ([, code]) => code!,
  )

  assert.ok(codes.size > 10)
  assert.deepEqual(entries, [...codes].sort())
  for (const entry of read('docs/errors.md').split(/^## /m).slice(1)) {
    for (const part of ['What happened.', 'Why.', 'What to do.']) {
      assert.ok(entry.includes(`**${part}**`), `${entry.split('\n')[0]} does not say: ${part}`)
    }
  }
})

test('nothing is put into a page as markup', () => {
  for (const file of globSync('src/**/*.{ts,tsx,js,html}', { cwd: ROOT })) {
    assert.doesNotMatch(
      read(file),
      /\b(innerHTML|outerHTML|insertAdjacentHTML|dangerouslySetInnerHTML)\b/,
      file,
    )
  }
})

/** Words, names and characters are the same everywhere; none of these files knows of anything but JavaScript. */
const SHARED_WITH_BROWSERS = [
  'src/model/crawlee.ts',
  'src/model/shell-command.ts',
  'src/model/time.ts',
  'src/observe/safe-text.ts',
]

test('the dashboard calls the HTTP API and knows nothing else but its types', () => {
  for (const file of globSync('src/surfaces/dashboard/**/*.{ts,tsx}', { cwd: ROOT })) {
    if (isTest(file) || file.endsWith('vite.config.ts')) continue
    for (const [, imported] of read(file).matchAll(/^import (?!type\b)[^']*'(\.[^']+)'/gm)) {
      const path = join(dirname(file), imported!)
      const isOwn = path.startsWith('src/surfaces/dashboard/')
      assert.ok(isOwn || SHARED_WITH_BROWSERS.includes(path), `${file} imports ${path}`)
    }
  }
  for (const file of SHARED_WITH_BROWSERS) assert.doesNotMatch(read(file), /^import (?!type\b)/m)
})

test('a command that is shown with more than an id in it is made by unstuckCommand', () => {
  const names = globSync('src/surfaces/cli/commands/*.ts', { cwd: ROOT })
    .map((file) => basename(file, '.ts').split('-')[0]!)
    .join('|')
  const shown = new RegExp(
    `\\bunstuck (?:${names})(?:[- ][a-z]+)*(?: --[a-z-]+)?[ =]\\$\\{(.+?)\\}`,
    'g',
  )
  for (const file of product) {
    for (const [, value] of read(file).matchAll(shown)) {
      assert.match(
        value!,
        /^(shortId\(.*|typedWord\(.*|withoutSpecifiers\(.*|short|id|[A-Z_]+)$/,
        file,
      )
    }
  }
})

test('nothing is left to be done later in a comment', () => {
  for (const file of sources) assert.doesNotMatch(read(file), /\b(TODO|FIXME|XXX|HACK)\b/, file)
})

test('no test is skipped without a reason, and none runs alone', () => {
  for (const file of [...sources, ...globSync('test/**/*.ts', { cwd: ROOT })]) {
    if (file.endsWith('tidy.test.ts')) continue
    assert.doesNotMatch(read(file), /\b(test|it|describe)\.(only|skip|todo)\(|only: true/, file)
  }
})

test('the lock file says what was installed, not from where', () => {
  assert.doesNotMatch(read('package-lock.json'), /"resolved"/)
})

function importsOf(file: string): string[] {
  const specifiers = [
    ...read(file).matchAll(/\bfrom '(\.[^']+)'/g),
    ...read(file).matchAll(/\bimport\('(\.[^']+)'\)/g),
  ]
  return specifiers.map(([, specifier]) => join(dirname(file), specifier!))
}
