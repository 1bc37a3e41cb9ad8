import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { prepare } from '../src/testing/postgres-engine.ts'
import { createDatabase, startServer, type TestServer } from '../src/testing/postgres.ts'
import { prepare as prepareSqlite } from '../src/testing/sqlite-engine.ts'

/**
 * `npm run unit [FILE…]`: starts one PostgreSQL server, runs the tests against it, and stops it whatever happens.
 * With UNSTUCK_TEST_PG set, that server is used instead. `--long`: the same tests, with more of everything.
 */

const isLong = process.argv.includes('--long')
const selected = process.argv.slice(2).filter((argument) => argument !== '--long')
/** Those with processes take long: they go first, and the short ones fill the gaps at the end. */
const all = ['test/**/*.test.ts', 'src/**/*.test.ts'].flatMap((files) => globSync(files).sort())
/** Long stories about what stands beside the heart. They are part of `npm run proof`. */
const LONG_TESTS = ['chaos', 'pm2', 'wrapped-kills'].map((name) => `test/processes/${name}.test.ts`)
const defaultFiles = isLong ? all : all.filter((file) => !LONG_TESTS.includes(file))
const files = selected.length > 0 ? selected : defaultFiles
/** These hold a time that is promised, so nothing else runs beside them. */
const SERIAL_TESTS = ['test/crash/crash.test.ts', 'test/processes/bounded-recovery.test.ts']

if (isLong && !existsSync('bench/node_modules')) {
  console.error('The tests with PM2 and BullMQ are skipped; to install both: npm ci --prefix bench')
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

/** A private folder: the compiled code in it is executed. */
const folder = mkdtempSync(join(tmpdir(), 'unstuck-tests-'))
const sqliteTemplate = join(folder, 'template.db')
await prepareSqlite(sqliteTemplate)
const env = {
  // The tests start hundreds of processes: each takes what the one before compiled.
  NODE_COMPILE_CACHE: join(folder, 'compile-cache'),
  ...process.env,
  UNSTUCK_TEST_SQLITE_TEMPLATE: sqliteTemplate,
  ...(server && { UNSTUCK_TEST_PG: server.url, UNSTUCK_TEST_TEMPLATE: await makeTemplate(server) }),
  ...(isLong && { UNSTUCK_TESTS: 'long' }),
}
let stopped = false
let tests: ChildProcess | undefined
// From a terminal the tests hear it too. Either way they end first, then the server.
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.on(signal, () => {
    stopped = true
    tests?.kill(signal)
  })
}

/** The database that those of the tests begin as copies of. */
async function makeTemplate({ url }: TestServer): Promise<string> {
  const template = await createDatabase(url)
  await prepare(template.url)
  return template.url
}

async function run(concurrency: number, chosen: readonly string[]): Promise<number> {
  if (chosen.length === 0 || stopped) return 0
  const args = ['--test', `--test-concurrency=${concurrency}`, ...chosen]
  tests = spawn(process.execPath, args, { stdio: 'inherit', env })
  const [code] = (await once(tests, 'exit')) as [number | null]
  return code ?? 1
}

const isSerial = (file: string): boolean => SERIAL_TESTS.includes(file)
try {
  const codes = [
    await run(
      // On two processors: most of the time some of them only wait.
      3,
      files.filter((file) => !isSerial(file)),
    ),
    await run(1, files.filter(isSerial)),
  ]
  process.exitCode = stopped ? 1 : Math.max(...codes)
} finally {
  await server?.remove()
  rmSync(folder, { recursive: true, force: true })
}
process.exit()
