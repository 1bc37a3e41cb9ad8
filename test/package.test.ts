import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join, relative } from 'node:path'
import process from 'node:process'
import { DatabaseSync } from 'node:sqlite'
import { text } from 'node:stream/consumers'
import { setTimeout as delay } from 'node:timers/promises'
import { after, before, describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { findOldNode } from '../src/testing/old-node.ts'
import { isLong } from '../src/testing/long-tests.ts'
import { createDatabase } from '../src/testing/postgres.ts'

/**
 * What a user gets: `npm pack`, installed into an empty folder, with the code blocks of the README as their files.
 * npm takes the dependencies from its cache; where it has none and no network either, they are linked from here.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const MODULES = join(ROOT, 'node_modules')
const folder = mkdtempSync(join(tmpdir(), 'unstuck-package-'))
const app = join(folder, 'app')
const PAGES = 3
const CITIES = ['los-angeles', 'austin', 'miami', 'denver', 'boston', 'tampa']
const TARGETS = CITIES.length * 3

let tarball: string
let files: string[]
let site: Server

describe('the package, installed into an empty folder', { concurrency: 4 }, () => {
  before(async () => {
    mkdirSync(app)
    tarball = await pack()
    files = ok(await run('tar', ['-tzf', tarball]))
      .split('\n')
      .filter(Boolean)
    // With a package.json of its own: without one npm would look for one further up.
    writeFileSync(join(app, 'package.json'), '{ "private": true, "type": "module" }')
    await install()
    site = await openSite()
    for (const [name, code] of codeOfReadme(site)) writeFileSync(join(app, name), code)
  })
  after(() => {
    site?.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  })

  test('holds what is needed and nothing else', () => {
    for (const file of [
      'package.json',
      'README.md',
      'LICENSE',
      'CHANGELOG.md',
      'AGENTS.md',
      'SECURITY.md',
      'dist/sbom.cdx.json',
      'docs/reference/errors.md',
      'bin/unstuck.js',
      'bin/check-runtime.js',
      'bin/assert-runtime.js',
      'dist/index.js',
      'dist/index.d.ts',
      'dist/core/heartbeat/thread.js',
      'dist/features/commands/watchdog-process.js',
      'docs/reference/run-api.openapi.json',
      'examples/init/crawl.ts',
      'examples/init/unstuck.service',
      'examples/init/command/unstuck.service',
    ]) {
      assert.ok(files.includes(`package/${file}`), `${file} is missing`)
    }
    const strays = files.filter(
      (file) =>
        !/^package\/(package\.json|README\.md|LICENSE|CHANGELOG\.md|AGENTS\.md|SECURITY\.md|(bin|dist|docs|examples)\/)/.test(
          file,
        ) ||
        (!file.startsWith('package/examples/') &&
          /\.test\.|\/testing\/|\/conformance\/|(?<!\.d)\.ts$|\.db$/.test(file)),
    )
    assert.deepEqual(strays, [])
    assert.ok(files.length <= 470, `${files.length} files`)
  })

  test('S29 its bill of materials has all that it installs, and no address of a registry', async () => {
    const text = ok(await run('tar', ['-xzOf', tarball, 'package/dist/sbom.cdx.json']))
    const sbom = JSON.parse(text) as Sbom
    assert.deepEqual([sbom.bomFormat, sbom.metadata.component.name], ['CycloneDX', 'unstuck'])
    const there = new Set(sbom.components.map((component) => component['bom-ref']))
    const { dependencies } = installed<{ dependencies: Record<string, string> }>()
    for (const [name, version] of Object.entries(dependencies)) {
      assert.ok(there.has(`${name}@${version}`), `${name} is missing`)
    }
    const needed = sbom.dependencies.flatMap(({ dependsOn }) => dependsOn)
    assert.ok(needed.includes('pg-protocol@' + versionOf('pg-protocol')))
    assert.deepEqual([...there].sort(), [...new Set(needed)].sort())
    assert.ok(there.size <= 25 && !there.has(`typescript@${versionOf('typescript')}`))
    assert.doesNotMatch(text, /registry|https?:(?!\/\/cyclonedx\.org\/)/)
  })

  test('runs nothing when it is installed', () => {
    const { scripts = {} } = installed<{ scripts?: Record<string, string> }>()
    const own = ['preinstall', 'install', 'postinstall', 'prepare', 'preprepare', 'postprepare']
    assert.deepEqual(
      own.filter((name) => name in scripts),
      [],
    )
  })

  test('publint has nothing to say about it', async () => {
    const bytes = new Uint8Array(readFileSync(tarball)).buffer
    const { messages, pkg } = await publint({ pack: { tarball: bytes }, strict: true })
    assert.deepEqual(
      messages.map((message) => formatMessage(message, pkg)),
      [],
    )
  })

  test('its command line works there', async () => {
    const { version } = installed<{ version: string }>()
    assert.equal(ok(await run('npx', ['--no-install', 'unstuck', '--version'])), `${version}\n`)
    assert.match(ok(await unstuck(['--help'])), /^Examples:\n {2}unstuck demo/)
    const empty = `sqlite:${join(folder, 'nothing.db')}`
    assert.match(ok(await unstuck(['status', '--db', empty])), /^Nothing has run yet\./)
    const written = ok(await unstuck(['init', 'started', '--for', 'systemd', 'docker']))
    assert.match(written, /^ {2}written +Dockerfile /m)
  })

  const old = findOldNode()
  test(
    'importing any part of it on an old Node names the version that is needed',
    { skip: old ? false : 'there is no Node older than 24.15 on this machine' },
    async () => {
      const { exports } = installed<{ exports: Record<string, unknown> }>()
      const parts = Object.keys(exports).filter((part) => part !== './package.json')
      assert.ok(parts.length >= 5)
      for (const part of parts) {
        const name = part.replace('.', 'unstuck')
        const imported = ['--input-type=module', '-e', `import '${name}'`]
        const { code, stderr } = await run(old!, imported)
        assert.equal(code, 1, name)
        assert.match(stderr, /^Error: unstuck needs Node 24\.15 or newer; this is v[\d.]+\./m, name)
        assert.doesNotMatch(stderr, /SyntaxError|ERR_/, name)
        assert.equal((await run(process.execPath, imported)).stderr, '', name)
      }
      ok(await run(process.execPath, ['-e', "require('unstuck')"]))
      const required = await run(old!, ['-e', "require('unstuck')"])
      assert.match(required.stderr, /unstuck needs Node 24\.15 or newer|ERR_REQUIRE_ESM/)
    },
  )

  test('in a package of `npm init -y` it names both ways to make a crawl a module', async () => {
    const plain = join(app, 'plain')
    mkdirSync(plain)
    writeFileSync(join(plain, 'package.json'), '{ "type": "commonjs" }')
    cpSync(join(app, 'crawl.ts'), join(plain, 'crawl.ts'))
    const { code, stderr } = await unstuck(['work', 'plain/crawl.ts', '--drain'])
    assert.equal(code, 2, stderr)
    assert.match(
      stderr,
      /plain\/package\.json has no "type": "module"\. Add it with .* crawl\.mts\./,
    )
  })

  test('it names documentation where it is installed', async () => {
    const database = join(folder, 'notes.db')
    new DatabaseSync(database).exec('CREATE TABLE notes (id integer PRIMARY KEY)')
    const { stdout } = await unstuck(['adopt', '--db', `sqlite:${database}`])
    const guide = /To write a mapping by hand: (\S+)\.\n/.exec(stdout)?.[1] ?? stdout
    assert.equal(guide, 'node_modules/unstuck/docs/guides/adopted-tables.md')
    assert.ok(existsSync(join(app, guide)))
  })

  test('its types work there, and find a mistake', async () => {
    writeFileSync(join(app, 'wrong.ts'), INVALID_CRAWL)
    const right = await tsc(['crawl.ts', 'nightly.ts', 'unstuck.config.ts'])
    assert.equal(right.code, 0, right.stdout)
    const wrong = await tsc(['wrong.ts'])
    const found = wrong.stdout.match(/^wrong\.ts\(\d+,\d+\): error TS\d+/gm) ?? []
    assert.equal(found.length, 1, wrong.stdout)
    assert.match(found[0], new RegExp(`^wrong\\.ts\\(${INVALID_LINE},`))
  })

  test("the README's crawl runs, in two processes, and each item is there once", async () => {
    const env = { UNSTUCK_DB: `sqlite:${join(folder, 'crawl.db')}` }
    await assertCrawl(env)
  })

  test(
    "the README's crawl runs on PostgreSQL too",
    { skip: process.env['UNSTUCK_TEST_PG'] ? false : 'UNSTUCK_TEST_PG is not set' },
    async () => {
      const database = await createDatabase()
      try {
        await assertCrawl({ UNSTUCK_DB: database.url })
      } finally {
        await database.drop()
      }
    },
  )

  test("two terminals share the README's crawl", async () => {
    const code = readFileSync(join(app, 'crawl.ts'), 'utf8')
    const concurrency = Number(/concurrency: (\d+)/.exec(code)?.[1])
    // No page is answered before more are asked for than one process has in flight.
    const shared = Promise.withResolvers<void>()
    let asked = 0
    const held = Promise.race([shared.promise, delay(30_000, undefined, { ref: false })])
    const slow = await openSite(() => {
      if (++asked > concurrency) shared.resolve()
      return held
    })
    try {
      const [, shop] = codeOfReadme(slow).find(([name]) => name === 'crawl.ts')!
      writeFileSync(join(app, 'shared.ts'), shop)
      const env = { UNSTUCK_DB: `sqlite:${join(folder, 'shared.db')}` }
      const journals = [1, 2].map((n) => join(folder, `terminal-${n}`))
      const work = (journal: string) =>
        unstuck(['work', 'shared.ts', '--drain', '--journal', journal], env)
      for (const ended of await Promise.all(journals.map(work))) {
        ok(ended)
        assert.doesNotMatch(ended.stderr, / 0 of 0 targets/)
      }
      const pages = journals.map((journal) => countSaved(journal))
      assert.ok(
        pages.every((count) => count > 0),
        `saved by each terminal: ${pages}`,
      )
      assert.equal(pages[0]! + pages[1]!, TARGETS * PAGES)
    } finally {
      slow.close()
    }
  })

  test("the README's run in one's own code goes from begin to succeed", async () => {
    const env = { UNSTUCK_DB: `sqlite:${join(folder, 'nightly.db')}` }
    ok(await run(process.execPath, ['nightly.ts'], env))
    const [last] = await runs(env)
    assert.deepEqual([last?.['status'], last?.['extracted']], ['succeeded', 40])
  })

  test('any command can be wrapped there', async () => {
    const env = { UNSTUCK_DB: `sqlite:${join(folder, 'wrapped.db')}` }
    const script =
      'fetch(process.env.UNSTUCK_URL + "/finish", { method: "POST", headers: { authorization: "Bearer " + process.env.UNSTUCK_TOKEN } })'
    ok(await unstuck(['run', 'portal', '--', process.execPath, '-e', script], env))
    const [last] = await runs(env)
    assert.deepEqual([last?.['source'], last?.['status']], ['portal', 'succeeded'])
  })

  const long = { skip: isLong ? false : 'it takes half a minute: part of `npm run proof`' }
  test(
    'the demo runs there: kill -9, a deploy, a zombie, and nothing lost or doubled',
    long,
    async () => {
      const args = ['demo', '--targets', '5', '--workers', '3', '--kills', '1', '--json']
      const { stdout, stderr } = await unstuck(args)
      const report = JSON.parse(stdout) as Record<string, unknown>
      const { kills, deploys, zombies, lost, doubled, runStatus } = report
      assert.deepEqual(
        { kills, deploys, zombies, lost, doubled, runStatus },
        { kills: 1, deploys: 1, zombies: 1, lost: 0, doubled: 0, runStatus: 'succeeded' },
        `${stdout}\n${stderr}`,
      )
    },
  )
})

type Sbom = {
  bomFormat: string
  metadata: { component: { name: string } }
  components: { 'bom-ref': string }[]
  dependencies: { dependsOn: string[] }[]
}

function versionOf(name: string): string {
  const manifest = readFileSync(join(MODULES, name, 'package.json'), 'utf8')
  return (JSON.parse(manifest) as { version: string }).version
}

const INVALID_CRAWL = `import { defineCrawl } from 'unstuck'

export default defineCrawl({
  source: 'wrong',
  targets: () => [{ key: 'a' }],
  async page({ page }) {
    const next: number = page.toFixed()
    return { next: String(next) }
  },
})
`
const INVALID_LINE = 7

async function assertCrawl(env: Record<string, string>): Promise<void> {
  ok(await unstuck(['work', 'crawl.ts', '--workers', '2', '--drain'], env))
  const lines = ok(await unstuck(['items', 'directory'], env))
    .trim()
    .split('\n')
  const items = lines.map((line) => JSON.parse(line) as { url: string; version: number })
  assert.equal(items.length, TARGETS * PAGES * 2)
  assert.ok(items.every(({ version }) => version === 1))
  const [last] = await runs(env)
  assert.deepEqual([last?.['status'], last?.['done']], ['succeeded', TARGETS])
}

/** How many pages the workers of a folder of journals saved. */
function countSaved(journal: string): number {
  const lines = readdirSync(journal).map((file) => readFileSync(join(journal, file), 'utf8'))
  return lines.join('').match(/"type":"page_complete"/g)?.length ?? 0
}

async function runs(env: Record<string, string>): Promise<Record<string, unknown>[]> {
  const { items } = JSON.parse(ok(await unstuck(['runs', '--json'], env))) as {
    items: Record<string, unknown>[]
  }
  return items
}

/** The blocks that say at their top which file they are, with this site in place of those that do not exist. */
function codeOfReadme(site: Server): [name: string, code: string][] {
  const blocks = ['README.md', 'docs/reference/configuration.md'].flatMap((file) => {
    const markdown = readFileSync(join(ROOT, file), 'utf8')
    return [...markdown.matchAll(/^```ts\n\/\/ (\S+\.ts)\n([^]*?)^```$/gm)]
  })
  const here = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
  return blocks.map(([, name, code]) => [name!, code!.replace(/https:\/\/\w+\.example/g, here)])
}

/** Lists companies page by page, and tenders. */
async function openSite(before: () => Promise<void> = async () => {}): Promise<Server> {
  const server = createServer((request, response) => {
    const { pathname, searchParams, origin } = new URL(
      request.url!,
      `http://${request.headers.host}`,
    )
    const page = Number(searchParams.get('page') ?? 1)
    const answer = pathname.startsWith('/tenders/')
      ? [1, 2].map((n) => ({ id: `${pathname}-${n}`, title: `Tender ${n}` }))
      : {
          companies: [1, 2].map((n) => ({
            url: `${origin}${pathname}/${page}-${n}`,
            name: `${n}`,
          })),
          next: page < PAGES ? `${origin}${pathname}?page=${page + 1}` : null,
        }
    void before().then(() => response.end(JSON.stringify(answer)))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

/** From a copy: packing empties `dist`, and tests that run beside this one read the dashboard from it. */
async function pack(): Promise<string> {
  const copy = join(folder, 'copy')
  const isCopied = (path: string): boolean =>
    !/^(\.git|dist|node_modules|bench)$/.test(relative(ROOT, path))
  cpSync(ROOT, copy, { recursive: true, filter: isCopied })
  symlinkSync(MODULES, join(copy, 'node_modules'))
  const args = ['pack', '--json', '--silent', '--pack-destination', folder]
  const [packed] = JSON.parse(ok(await run('npm', args, {}, copy))) as { filename: string }[]
  return join(folder, packed!.filename)
}

async function install(): Promise<void> {
  const npmOptions = ['--prefer-offline', '--fetch-retries=0', '--fetch-timeout=10000']
  const quiet = ['--no-audit', '--no-fund', '--no-progress']
  const { code, stderr } = await run('npm', ['install', ...npmOptions, ...quiet, tarball])
  if (code === 0) return
  console.log(`npm cannot install here, so the dependencies are linked instead: ${stderr}`)
  const modules = join(app, 'node_modules')
  mkdirSync(join(modules, '.bin'), { recursive: true })
  ok(await run('tar', ['-xzf', tarball, '-C', modules]))
  ok(await run('mv', [join(modules, 'package'), join(modules, 'unstuck')]))
  symlinkSync('../unstuck/bin/unstuck.js', join(modules, '.bin', 'unstuck'))
  symlinkSync(MODULES, join(modules, 'unstuck', 'node_modules'))
}

function installed<T>(): T {
  return JSON.parse(readFileSync(join(app, 'node_modules/unstuck/package.json'), 'utf8')) as T
}

function tsc(names: readonly string[]): Promise<ProcessResult> {
  const types = ['--types', 'node', '--typeRoots', join(MODULES, '@types')]
  const strict = ['--strict', '--noEmit', '--target', 'es2025', '--lib', 'es2025,esnext.disposable']
  const args = ['--ignoreConfig', '--module', 'nodenext', ...strict, ...types, ...names]
  return run(join(MODULES, '.bin', 'tsc'), args)
}

/** As `npx` would, without the time that npm takes to start. */
const unstuck = (
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<ProcessResult> => run(join(app, 'node_modules', '.bin', 'unstuck'), args, env)

type ProcessResult = {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** On this Node, without what npm and other tests have set. */
async function run(
  program: string,
  args: readonly string[],
  env: Record<string, string> = {},
  cwd: string = app,
): Promise<ProcessResult> {
  const { PATH = '', HOME = '' } = process.env
  const npmConfig = Object.entries(process.env).filter(([name]) => /^npm_config_cache$/i.test(name))
  const child = spawn(program, args, {
    cwd,
    env: {
      ...Object.fromEntries(npmConfig),
      PATH: [dirname(process.execPath), PATH].join(delimiter),
      HOME,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const [stdout, stderr, code] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    new Promise<number | null>((resolve, reject) =>
      child.once('error', reject).once('close', resolve),
    ),
  ])
  return { code, stdout, stderr }
}

function ok({ code, stdout, stderr }: ProcessResult): string {
  assert.equal(code, 0, `${stdout}\n${stderr}`)
  return stdout
}
