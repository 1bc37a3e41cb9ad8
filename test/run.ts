import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import process from 'node:process'
import { pipeline } from 'node:stream/promises'
import { run } from 'node:test'
import { spec } from 'node:test/reporters'
import { prepare } from '../src/testing/postgres-engine.ts'
import { createDatabase, startServer, type TestServer } from '../src/testing/postgres.ts'
import { prepare as prepareSqlite } from '../src/testing/sqlite-engine.ts'
import { groupTests } from './groups.ts'

/**
 * `npm run unit [FILE…]`: starts one PostgreSQL server, runs the tests against it, and stops it whatever happens.
 * With UNSTUCK_TEST_PG set, that server is used instead. `--long`: the same tests, with more of everything.
 * `--checks`: checks types and style at the same time, as `npm test` does.
 */

const isLong = process.argv.includes('--long')
const selected = process.argv.slice(2).filter((argument) => !/^--(long|checks)$/.test(argument))
/** Those that take longest start first, so that short ones fill the gaps at the end. */
const LONGEST = [
  'test/crash/points.test.ts',
  'test/python/crawl.test.ts',
  'test/security/input.test.ts',
  'test/processes/wrapped-examples.test.ts',
  'test/package.test.ts',
  'src/core/store/postgres/conformance.test.ts',
  'test/situations/postgres.test.ts',
  'test/processes/wrapped-ends.test.ts',
  'test/processes/outage.test.ts',
  'test/crash/crash.test.ts',
  'test/python/storm.test.ts',
  'test/processes/wrapped-copies.test.ts',
  'test/processes/disconnected.test.ts',
  'test/processes/scenarios.test.ts',
  'test/demo.test.ts',
  'test/next.test.ts',
  'test/browser/accessibility.test.ts',
  'test/browser/hostile.test.ts',
  'src/core/store/sqlite/conformance.test.ts',
]
const all = ['test/**/*.test.ts', 'src/**/*.test.ts'].flatMap((files) => globSync(files).sort())
/** Long tests of what is not part of the core. They run in `npm run proof`. */
const LONG_TESTS = ['chaos', 'pm2', 'wrapped-kills'].map((name) => `test/processes/${name}.test.ts`)
/** These assert a promised time, so nothing else runs beside them. */
const SERIAL_TESTS = ['test/processes/bounded-recovery.test.ts']
const isSerial = (file: string): boolean => SERIAL_TESTS.includes(file)
/** A file that hangs fails after this long. The longest one takes two minutes. */
const FILE_MAX_MS = 15 * 60_000
/** For two processors: most of the time some of the files only wait. */
const CONCURRENCY = 6

if (isLong && !existsSync('bench/node_modules')) {
  console.error(
    'The tests with PM2, BullMQ and Next.js are skipped; to install them: npm ci --prefix bench',
  )
}

let server: TestServer | undefined
try {
  server = process.env['UNSTUCK_TEST_PG'] ? undefined : await startServer({ inMemory: true })
} catch (error) {
  console.error(error instanceof Error ? error.message : error)
  console.error(
    'The tests need it. If `npm ci` was run with --ignore-scripts, run it again without.',
  )
  process.exit(1)
}

/** A private folder: the code in it is executed. */
const folder = mkdtempSync(join(tmpdir(), 'unstuck-tests-'))
const others = all.filter(
  (file) => !LONGEST.includes(file) && !LONG_TESTS.includes(file) && !isSerial(file),
)
const files =
  selected.length > 0
    ? selected
    : [...(isLong ? LONG_TESTS : []), ...LONGEST, ...groupTests(others, folder), ...SERIAL_TESTS]
const sqliteTemplate = join(folder, 'template.db')
await prepareSqlite(sqliteTemplate)
Object.assign(process.env, {
  // The tests start hundreds of processes: each takes what the one before compiled.
  NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? join(folder, 'compile-cache'),
  UNSTUCK_TEST_SQLITE_TEMPLATE: sqliteTemplate,
  ...(server && { UNSTUCK_TEST_PG: server.url, UNSTUCK_TEST_TEMPLATE: await makeTemplate(server) }),
  ...(isLong && { UNSTUCK_TESTS: 'long' }),
})
const stop = new AbortController()
// From a terminal the tests get it too. Either way they end first, then the server.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stop.abort())

/** The database that those of the tests begin as copies of. */
async function makeTemplate({ url }: TestServer): Promise<string> {
  const template = await createDatabase(url)
  await prepare(template.url)
  return template.url
}

/** Runs the files in this order, which `node --test` does not keep. Returns true if all tests pass. */
async function runTests(concurrency: number, chosen: readonly string[]): Promise<boolean> {
  if (chosen.length === 0 || stop.signal.aborted) return true
  let passed = true
  const paths = chosen.map((file) => resolve(file))
  const events = run({ files: paths, concurrency, signal: stop.signal, timeout: FILE_MAX_MS })
  events.on('test:fail', ({ todo }) => (passed &&= todo !== undefined && todo !== false))
  await pipeline(events, new spec(), process.stdout, { end: false })
  return passed
}

/** Checks types and style beside the tests. Returns the names of those that failed, and prints what they found. */
async function runChecks(): Promise<string[]> {
  const failed: string[] = []
  for (const name of ['types', 'lint']) {
    if (stop.signal.aborted) break
    const child = spawn('npm', ['run', '--silent', name], { stdio: ['ignore', 'pipe', 'pipe'] })
    let output = ''
    for (const stream of [child.stdout, child.stderr]) {
      stream.setEncoding('utf8').on('data', (text: string) => (output += text))
    }
    const [code] = (await once(child, 'close')) as [number | null]
    if (code === 0) continue
    failed.push(name)
    console.error(`\nnpm run ${name} failed:\n${output}`)
  }
  return failed
}

try {
  const checks = process.argv.includes('--checks') ? runChecks() : []
  const parallel = await runTests(
    CONCURRENCY,
    files.filter((file) => !isSerial(file)),
  )
  const failed = await checks
  const serial = await runTests(1, files.filter(isSerial))
  for (const name of failed) console.error(`npm run ${name} failed: see above.`)
  const isGood = parallel && serial && failed.length === 0 && !stop.signal.aborted
  process.exitCode = isGood ? 0 : 1
} finally {
  await server?.remove()
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
