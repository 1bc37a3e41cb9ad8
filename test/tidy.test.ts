import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { COMMANDS } from '../src/interfaces/cli/commands.ts'

/** What of the house style a machine can check. */

const ROOT = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
const sources = globSync('src/**/*.{ts,tsx}', { cwd: ROOT }).sort()
const isTest = (file: string): boolean => /\.test\.ts$|^src\/testing\/|\/conformance\//.test(file)
const productFiles = sources.filter((file) => !isTest(file))

/** Which folder may import which others; the longest matching prefix applies, and a folder may import itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  // Errors and log lines name the command that resolves them, quoted.
  'core/model': [],
  'core/decide': ['core/model'],
  'core/host': ['core/model'],
  'core/store': ['core/model', 'core/host'],
  'core/recovery': ['core/model', 'core/decide', 'core/host', 'core/store'],
  'core/heartbeat': ['core/model', 'core/decide', 'core/host', 'core/store', 'core/recovery'],
  'core/worker': ['core'],
  // Ends the processes that an earlier copy of a command left, and records it with the run.
  operator: ['core', 'lib', 'features/commands/store'],
  lib: ['core/model', 'core/host', 'lib'],
  // What a feature has stored, other parts may present; the folder holds types and statements, nothing else.
  presenters: [
    'core',
    'operator',
    'lib',
    'features/alerts/store',
    'features/commands/store',
    'features/items/store',
    'features/metrics/store',
    'features/acknowledge/store',
    'features/sources/store',
  ],
  contracts: ['core', 'lib', 'presenters'],
  'features/commands': ['core', 'lib', 'presenters', 'contracts', 'features/sources/store'],
  'features/adopted': [
    'core',
    'operator',
    'lib',
    'presenters',
    'contracts',
    'features/acknowledge/store',
  ],
  'features/crawlee': ['core', 'lib', 'presenters', 'contracts'],
  'features/alerts': ['core', 'lib', 'presenters', 'contracts'],
  'features/chaos': [
    'core',
    'lib',
    'presenters',
    'contracts',
    'features/inspection',
    'features/items/store',
  ],
  'features/journal': ['core', 'lib', 'presenters', 'contracts'],
  'features/metrics': ['core', 'lib', 'presenters', 'contracts', 'features/alerts/store'],
  'features/access': ['core'],
  'features/acknowledge': ['core'],
  'features/sources': ['core'],
  'features/inspection': ['core', 'lib', 'presenters', 'contracts'],
  'features/items': ['core'],
  'features/index.ts': ['contracts', 'features'],
  app: ['core', 'lib', 'presenters', 'contracts', 'features/index.ts'],
  'interfaces/cli': [
    'core',
    'operator',
    'lib',
    'presenters',
    'contracts',
    'features/index.ts',
    'features/inspection',
    'app',
  ],
  'interfaces/http': [
    'core',
    'lib',
    'presenters',
    'contracts',
    'features/index.ts',
    'features/access/store',
    'features/metrics/store',
    'app',
  ],
  'interfaces/top': ['core', 'lib', 'presenters', 'contracts', 'features/index.ts', 'app'],
  'interfaces/library': [
    'core',
    'operator',
    'lib',
    'presenters',
    'contracts',
    'features/index.ts',
    'features/items/store',
    'app',
  ],
  'interfaces/dashboard': ['presenters', 'core/model', 'lib/text'],
}

/** One file that starts another interface. */
const STARTS: Readonly<Record<string, string>> = {
  'src/interfaces/cli/commands/serve.ts': 'src/interfaces/http',
  'src/interfaces/cli/commands/top.ts': 'src/interfaces/top',
}

test('imports follow the table', () => {
  const found: string[] = []
  for (const file of productFiles) {
    const folder = folderOf(file)
    if (!folder) continue
    for (const imported of importsOf(file)) {
      if (imported.startsWith(`src/${folder}/`)) continue
      const other = imported.slice('src/'.length)
      const isAllowed = MAY_IMPORT[folder]!.some(
        (allowed) => other === allowed || other.startsWith(`${allowed}/`),
      )
      const starts = STARTS[file]
      if (isAllowed || (starts && imported.startsWith(starts))) continue
      found.push(`${file} imports ${imported}`)
    }
  }
  assert.deepEqual(found, [])
})

/** Files that know the verdicts of core: presenters that count and sort them, and the export of the type. */
const KNOWS_VERDICTS = [
  'src/presenters/action-result.ts',
  'src/presenters/apply-plan.ts',
  'src/presenters/cleaning.ts',
  'src/presenters/recovery.ts',
  'src/presenters/verdict.ts',
  'src/app/recover-on-start.ts',
  'src/index.ts',
]

test('one module renders verdicts, and one their evidence', () => {
  for (const file of productFiles.filter((file) => !file.startsWith('src/core/'))) {
    const text = read(file)
    if (!KNOWS_VERDICTS.includes(file) && !file.startsWith('src/features/adopted/'))
      assert.doesNotMatch(text, /\{[^}]*\bVerdict\b[^}]*\} from '[^']*model\/verdict/, file)
    if (file !== 'src/presenters/verdict.ts')
      assert.doesNotMatch(text, /→ \$\{|not applied: it|, and a new run is queued/, file)
    const readsEvidence = /^src\/presenters\/(view|check)\.ts$/.test(file)
    if (/^src\/(interfaces|presenters)\//.test(file) && !readsEvidence)
      assert.doesNotMatch(text, /\b(presenceKind|loopLagMs|hasProgress|neverBeat)\b/, file)
  }
})

test('every folder of src is in the table', () => {
  for (const file of productFiles) {
    assert.ok(
      /^src\/[^/]+$/.test(file) || folderOf(file),
      `${file}: its folder is not in the table`,
    )
  }
})

test('the two engines do not import each other', () => {
  for (const file of productFiles) {
    const engine = /^src\/core\/store\/(sqlite|postgres)\//.exec(file)?.[1]
    if (!engine) continue
    const other = engine === 'sqlite' ? 'postgres' : 'sqlite'
    for (const imported of importsOf(file)) {
      assert.ok(!imported.startsWith(`src/core/store/${other}/`), `${file} imports ${imported}`)
    }
  }
})

test('published code does not import test helpers', () => {
  for (const file of productFiles) {
    for (const imported of importsOf(file)) {
      assert.ok(!isTest(imported), `${file} imports ${imported}`)
    }
  }
})

test('the model and the decisions do no input or output', () => {
  const pure = /^src\/(core\/(model|decide)|operator\/(refusals|revert)\.ts)/
  for (const file of productFiles.filter((file) => pure.test(file))) {
    for (const [, name] of read(file).matchAll(/from 'node:([\w/]+)'/g)) {
      assert.equal(name, 'crypto', `${file} imports node:${name}`)
    }
    assert.doesNotMatch(read(file), /Date\.now\(|Math\.random\(|process\./, file)
  }
})

test('only the store and the adopted tables contain SQL', () => {
  for (const file of productFiles.filter(
    (file) =>
      !/^src\/(core\/store|features\/adopted|features\/\w+\/store|features\/chaos\/ledger)/.test(
        file,
      ),
  )) {
    assert.doesNotMatch(read(file), /\/\* sql \*\/|(?<!\.)\bsql\(|from '(pg|node:sqlite)'/, file)
  }
})

test('the SQLite store takes the time from its own clock, except for times of files', () => {
  const mayAsk = /\/(clock|database|inspect)\.ts$/
  const store = productFiles.filter(
    (file) => file.startsWith('src/core/store/sqlite/') && !mayAsk.test(file),
  )
  for (const file of store) assert.doesNotMatch(read(file), /Date\.now\(/, file)
})

test('no file is longer than 350 lines', () => {
  for (const file of productFiles) {
    const lines = read(file).split('\n').length
    assert.ok(lines <= 350, `${file} has ${lines} lines: which two ideas are in it?`)
  }
})

/** Upper limits. A change that raises one says why. */
const LIMITS = {
  files: 655,
  lines: 83_000,
  'lines of src/core': 17_000,
  'methods of WorkerStore': 36,
  'methods of Store': 57,
  'methods of the stores of features': 48,
  'files that name pageTarget': 23,
}

test('the code stays within its limits', () => {
  const text = (files: readonly string[]): string => files.map(read).join('')
  const linesOf = (files: readonly string[]): number => text(files).split('\n').length - 1
  const styles = globSync('src/**/*.css', { cwd: ROOT })
  const core = productFiles.filter((file) => file.startsWith('src/core/'))
  const found: Record<keyof typeof LIMITS, number> = {
    files: productFiles.length + styles.length,
    lines: linesOf([...productFiles, ...styles]),
    'lines of src/core': linesOf(core),
    'methods of WorkerStore': methodsOf('src/core/store/worker-store.ts').length,
    'methods of Store': STORE_METHODS.length,
    'methods of the stores of features': FEATURE_STORE_METHODS.length,
    'files that name pageTarget': productFiles.filter((file) =>
      /\bpage_target\b|\bpageTarget\b/.test(read(file)),
    ).length,
  }
  for (const [what, limit] of Object.entries(LIMITS)) {
    const count = found[what as keyof typeof LIMITS]
    assert.ok(count <= limit, `${what}: ${count}, at most ${limit}`)
  }
})

const STORE_METHODS = ['worker-store', 'operator-store', 'reads'].flatMap((name) =>
  methodsOf(`src/core/store/${name}.ts`),
)
const FEATURE_STORE_METHODS = globSync('src/features/*/store/store.ts', { cwd: ROOT }).flatMap(
  methodsOf,
)

test('every method of a store has a caller outside the stores and the tests', () => {
  const callers = productFiles
    .filter((file) => !/^src\/(core|features\/\w+)\/store\//.test(file))
    .map(read)
    .join('\n')
  for (const method of [...STORE_METHODS, ...FEATURE_STORE_METHODS]) {
    assert.match(callers, new RegExp(`(?<!\\b(?:Date|performance|clock))\\.${method}\\b`), method)
  }
})

/** The methods of the interfaces in a file. */
function methodsOf(file: string): string[] {
  return [
    ...read(file).matchAll(/^export interface \w*Store\b.*?^\}|^export interface Reads\b.*?^\}/gms),
  ]
    .flatMap(([body]) => [...body.matchAll(/^  (\w+)\(/gm)])
    .map(([, name]) => name!)
}

test('every error code has its entry in docs/reference/errors.md, and every entry its code', () => {
  const codes = new Set<string>()
  for (const file of productFiles) {
    for (const [, code] of read(file).matchAll(/'(E_[A-Z_]+)'/g)) codes.add(code!)
  }
  const entries = [...read('docs/reference/errors.md').matchAll(/^## (E_[A-Z_]+)$/gm)].map(
    ([, code]) => code!,
  )

  assert.ok(codes.size > 10)
  assert.deepEqual(entries, [...codes].sort())
  for (const entry of read('docs/reference/errors.md').split(/^## /m).slice(1)) {
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
const BROWSER_SAFE = [
  'src/core/model/shell-command.ts',
  'src/core/model/time.ts',
  'src/core/model/run.ts',
  'src/lib/text/safe-text.ts',
]

test('the dashboard calls the HTTP API and knows nothing else but its types', () => {
  for (const file of globSync('src/interfaces/dashboard/**/*.{ts,tsx}', { cwd: ROOT })) {
    if (isTest(file) || file.endsWith('vite.config.ts')) continue
    for (const [, imported] of read(file).matchAll(/^import (?!type\b)[^']*'(\.[^']+)'/gm)) {
      const path = join(dirname(file), imported!)
      const isOwn = path.startsWith('src/interfaces/dashboard/')
      assert.ok(isOwn || BROWSER_SAFE.includes(path), `${file} imports ${path}`)
    }
  }
  for (const file of BROWSER_SAFE) assert.doesNotMatch(read(file), /^import (?!type\b)/m)
})

test('a command that is shown with more than an id in it is made by unstuckCommand', () => {
  const names = COMMANDS.map(({ name }) => name.split('-')[0]!).join('|')
  const shown = new RegExp(
    `\\bunstuck (?:${names})(?:[- ][a-z]+)*(?: --[a-z-]+)?[ =]\\$\\{(.+?)\\}`,
    'g',
  )
  for (const file of productFiles) {
    for (const [, value] of read(file).matchAll(shown)) {
      assert.match(
        value!,
        /^(shortId\(.*|runName\(.*|shellQuote\(.*|withoutSpecifiers\(.*|short|id|[A-Z_]+)$/,
        file,
      )
    }
  }
})

test('nothing is left to be done later in a comment', () => {
  for (const file of sources) assert.doesNotMatch(read(file), /\b(TODO|FIXME|XXX|HACK)\b/, file)
})

/** Metaphors, and actors that are no part of the program. `E_GUARDIAN` keeps its name. */
const BANNED =
  /\b(attendants?|caretakers?|complains?|deeds?|depots?|doorstep|guardians?|mended|mending|nobody|anybody|everybody|somebody|roster|signs of life|tally|troupe|wards?|whereabouts|whoever|whomever|left for a person|none of its business)\b/i
/** The name of an account that exists on every system, or one that an error of a test contains. */
const ACCOUNT = /(['"`]|:\/\/)nobody\b/g

test('text and names are plain technical English', () => {
  const patterns = ['{src,test,docs,examples}/**/*.{ts,tsx,css,md,py,sql,yml}', 'bench/*.{ts,md}']
  for (const file of [...globSync([...patterns, '*.md'], { cwd: ROOT }), 'examples/cron/crontab']) {
    if (file.endsWith('tidy.test.ts')) continue
    for (const line of read(file).replaceAll(ACCOUNT, '').split('\n')) {
      // A word in a name, such as `hasNobody` or `DEED_MAX`, counts too.
      const words = line.replaceAll(/([a-z])([A-Z])/g, '$1 $2').replaceAll(/_(?!GUARDIAN)/g, ' ')
      assert.doesNotMatch(words, BANNED, file)
    }
  }
})

test('no test is skipped without a reason, and none runs alone', () => {
  for (const file of [...sources, ...globSync('test/**/*.ts', { cwd: ROOT })]) {
    if (file.endsWith('tidy.test.ts')) continue
    assert.doesNotMatch(read(file), /\b(test|it|describe)\.(only|skip|todo)\(|only: true/, file)
  }
})

test('the lock files record what is installed, not the registry it comes from', () => {
  for (const file of ['package-lock.json', 'bench/package-lock.json']) {
    assert.doesNotMatch(read(file), /"resolved"/, file)
  }
})

function folderOf(file: string): string | undefined {
  const [, ...parts] = file.split('/')
  return [parts.slice(0, 2).join('/'), parts[0]!].find((folder) => folder in MAY_IMPORT)
}

function importsOf(file: string): string[] {
  const specifiers = [
    ...read(file).matchAll(/\bfrom '(\.[^']+)'/g),
    ...read(file).matchAll(/\bimport\('(\.[^']+)'\)/g),
  ]
  return specifiers.map(([, specifier]) => join(dirname(file), specifier!))
}
