import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join, matchesGlob } from 'node:path'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../src/core/model/policy.ts'
import { parseDuration } from '../src/core/model/time.ts'
import { RUN_TRANSITIONS, TARGET_TRANSITIONS } from '../src/testing/transitions.ts'
import { COMMANDS } from '../src/interfaces/cli/commands.ts'

/** The documentation says what is there: what of it a machine can check. */

const ROOT = join(import.meta.dirname, '..')
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8')
/** Without code, in which brackets are no links. */
const readProse = (file: string): string => read(file).replaceAll(/^```[^]*?^```$/gm, '')
const pages = globSync(['*.md', 'docs/**/*.md'], { cwd: ROOT }).sort()

test('every link leads to a file and a heading', () => {
  assert.ok(pages.length > 15)
  for (const page of pages) {
    for (const [, target, anchor] of readProse(page).matchAll(
      /\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g,
    )) {
      const file = target ? join(dirname(page), target) : page
      assert.ok(existsSync(join(ROOT, file)), `${page} links to ${target}`)
      if (anchor) assert.ok(headingsOf(file).includes(anchor), `${page} links to ${file}#${anchor}`)
    }
  }
})

const ALWAYS_PACKED = ['README.md', 'LICENSE']

test('no published page links to what the package does not have', () => {
  const { files } = JSON.parse(read('package.json')) as { files: string[] }
  const published = files.flatMap((one) => (one.endsWith('.md') ? one : `${one}/**`))
  const isPublished = (file: string): boolean =>
    ALWAYS_PACKED.includes(file) || published.some((one) => matchesGlob(file, one))
  for (const page of pages.filter(isPublished)) {
    for (const [, target] of readProse(page).matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      const file = join(dirname(page), target!)
      assert.ok(isPublished(file) || isPublished(`${file}/a`), `${page} links to ${target}`)
    }
  }
})

test('every guarantee names existing tests', () => {
  const promises = read('docs/reference/guarantees.md').split(/^## /m).slice(1)
  assert.deepEqual(
    promises.map((promise) => promise.split(':', 1)[0]),
    Array.from({ length: 15 }, (_, n) => `P${n + 1}`),
  )
  for (const promise of promises) {
    const named = [...promise.matchAll(/^- `([^`]+)`: (.+)$/gm)]
    assert.ok(named.length > 0, promise)
    for (const [, file, title] of named) {
      assert.ok(hasTest(read(file!), title!), `${file} has no test “${title}”`)
    }
  }
})

test('the state diagrams show every legal move, and no other', () => {
  const [target, run] = [
    ...read('docs/how-it-works.md').matchAll(/^```mermaid\n([^]*?)^```$/gm),
  ].map(([, diagram]) => [...diagram!.matchAll(/^ +(\w+) --> (\w+)/gm)].map(([, ...move]) => move))
  assert.deepEqual(target!.sort(), transitionsOf(TARGET_TRANSITIONS))
  assert.deepEqual(run!.sort(), transitionsOf(RUN_TRANSITIONS))
})

test('how it works names existing files, and the walks have as many as their headings claim', () => {
  const page = read('docs/how-it-works.md')
  const known = globSync('{src,bin,test}/**/*.{ts,tsx,js}', { cwd: ROOT })
  for (const [, name] of page.matchAll(/`([\w./*-]+\.(?:ts|tsx|js))`/g)) {
    const pattern = new RegExp(`(^|/)${name!.replaceAll('.', '\\.').replaceAll('*', '[^/]+')}$`)
    assert.ok(
      known.some((file) => pattern.test(file)),
      `there is no ${name}`,
    )
  }
  const walks = page.split(/^### (?=.* \(\d+ files\)$)/m).slice(1)
  assert.equal(walks.length, 3)
  for (const walk of walks) {
    const steps = walk.split(/^## /m)[0]!
    const named = new Set(steps.match(/`(?:src|bin)\/[^`]+`/g))
    assert.equal(named.size, Number(/\((\d+) files\)/.exec(walk)![1]), walk.split('\n')[0])
  }
})

test('the configuration page names every setting of a policy with its default', () => {
  const rows = [
    ...read('docs/reference/configuration.md').matchAll(/^\| (`.+?`) \| (.+?) \| .+ \|$/gm),
  ]
  const told: Record<string, string> = {}
  for (const [, names, defaults] of rows) {
    const values = defaults!.split(', ')
    for (const [n, name] of names!.split(', ').entries())
      told[stripMarkup(name)] = stripMarkup(values[n] ?? '')
  }
  for (const [field, value] of Object.entries(DEFAULT_POLICY)) {
    const isTime = field.endsWith('Ms')
    const text = told[isTime ? field.slice(0, -2) : field]
    assert.ok(text !== undefined, `${field} is not there`)
    if (value === null) assert.equal(text, 'none', field)
    else if (isTime) assert.equal(parseDuration(text), value, field)
    else assert.equal(text, JSON.stringify(value).replaceAll('"', ''), field)
  }
})

test('the command line reference names every command', () => {
  for (const { name } of COMMANDS) {
    assert.match(read('docs/reference/cli.md'), new RegExp(`^\\| .*\\b${name}\\b.* \\|`, 'm'))
  }
})

/** Names of the reader's own code, and libraries that are not installed here. */
const READERS_OWN = `
declare const requestHandler: any, userOf: any, PAGES: any, fetchPage: any, error: any
declare const inngest: any, job: any, task: any, Context: any
`
const OTHER_MODULES = `
declare module 'crawlee'
declare module '*/access' { export const access: any, userOf: any }
`

test('every code sample in TypeScript compiles', () => {
  mkdirSync(join(ROOT, '.cache'), { recursive: true })
  const folder = mkdtempSync(join(ROOT, '.cache', 'samples-'))
  try {
    const samples = pages.flatMap((page) =>
      [...read(page).matchAll(/^```(?:ts|js)\n([^]*?)^```$/gm)]
        .map(([, code]) => code!)
        .filter((code) => /^(import|export) /m.test(code))
        .map((code, n) => [`${page.replaceAll(/[/.]/g, '-')}-${n}`, code] as const),
    )
    assert.ok(samples.length > 20)
    for (const [name, code] of samples) writeFileSync(join(folder, `${name}.ts`), code)
    writeFileSync(join(folder, 'names.d.ts'), READERS_OWN)
    writeFileSync(join(folder, 'modules.d.ts'), OTHER_MODULES)
    const options = {
      module: 'esnext',
      moduleResolution: 'bundler',
      allowImportingTsExtensions: true,
      rewriteRelativeImportExtensions: false,
      noImplicitAny: false,
      noUnusedLocals: false,
      noUnusedParameters: false,
    }
    const config = { extends: '../../tsconfig.json', compilerOptions: options, include: ['*.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ ...config, exclude: [] }))
    const tsc = join(ROOT, 'node_modules', '.bin', 'tsc')
    const { stdout } = spawnSync(tsc, ['-p', folder], { encoding: 'utf8' })
    assert.equal(stdout, '')
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the workers of other languages are the files in examples/worker', () => {
  const samples = [...read('docs/guides/other-languages.md').matchAll(/^```(\w+)\n([^]*?)^```$/gm)]
    .map(([, language, code]) => [language!, code!] as const)
    .filter(([language]) => language !== 'sh')
  const files = { go: 'worker.go', ruby: 'worker.rb', php: 'worker.php', bash: 'worker.sh' }
  assert.deepEqual(
    samples,
    Object.entries(files).map(([language, file]) => [language, read(`examples/worker/${file}`)]),
  )
})

test('messages and written files name pages where they are installed, and the package has them', () => {
  const published = (JSON.parse(read('package.json')) as { files: string[] }).files
  const assertPublished = (page: string, file: string): void => {
    assert.ok(existsSync(join(ROOT, 'docs', page)), `${file} names docs/${page}`)
    const folder = dirname(page)
    assert.ok(published.includes(folder === '.' ? 'docs/*.md' : `docs/${folder}`), page)
  }
  let named = 0
  for (const file of globSync('src/**/*.{ts,tsx}', { cwd: ROOT })) {
    if (/\.test\.|^src\/testing\//.test(file)) continue
    const code = read(file).replaceAll(/\/\*[^]*?\*\/|^\s*(\/\/|--) .*$/gm, '')
    for (const [, page] of code.matchAll(/docPath\('([^']+)'\)/g)) {
      named++
      assertPublished(page!, file)
    }
    const bare = code.match(/(?<![./]|unstuck\/)\bdocs\/[\w-]+(\/[\w-]+)*\.md/)
    assert.equal(bare?.[0], undefined, `${file} names a page without docPath`)
  }
  assert.ok(named > 3)
  for (const file of [
    'src/features/adopted/wizard/config-text.ts',
    ...globSync('examples/init/**/*.*', { cwd: ROOT }),
    ...globSync('examples/init/**/Dockerfile', { cwd: ROOT }),
  ])
    for (const [, page] of read(file).matchAll(/\bdocs\/([\w/-]+\.md)/g))
      assertPublished(page!, file)
})

test('the README is at most 200 lines long', () => {
  assert.ok(read('README.md').trimEnd().split('\n').length <= 200)
})

test('the index links to every guide and reference page', () => {
  for (const page of globSync('docs/{guides,reference}/*.md', { cwd: ROOT })) {
    assert.ok(read('docs/README.md').includes(`](${page.slice('docs/'.length)})`), page)
  }
})

/** The anchors that Markdown viewers give to headings. */
function headingsOf(file: string): string[] {
  return [...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
    heading!
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  )
}

function transitionsOf(moves: Readonly<Record<string, readonly string[]>>): string[][] {
  return Object.entries(moves)
    .flatMap(([from, all]) => all.map((to) => [from, to]))
    .sort()
}

function hasTest(code: string, title: string): boolean {
  const titles = [...code.matchAll(/\btest\(\s*(['"`])([^]*?)\1,/g)].map(([, , text]) => text!)
  return titles.some((text) => text.replace(/\$\{[^}]*\}/g, '…').replace(/, …$/, '') === title)
}

function stripMarkup(text: string): string {
  return text.replaceAll('`', '')
}
