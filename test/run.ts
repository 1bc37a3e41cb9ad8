import { spawn } from 'node:child_process'
import { globSync } from 'node:fs'
import process from 'node:process'
import { startServer, type TestServer } from '../src/testing/postgres.ts'

/**
 * `npm run unit [FILE…]`: starts one PostgreSQL server, runs the tests against it, and stops it whatever happens.
 * With UNSTUCK_TEST_PG set, that server is used instead.
 */

const CONCURRENCY = 2
const given = process.argv.slice(2)
const files = given.length > 0 ? given : globSync(['src/**/*.test.ts', 'test/**/*.test.ts']).sort()

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

const env = { ...process.env, ...(server && { UNSTUCK_TEST_PG: server.url }) }
const tests = spawn(process.execPath, ['--test', `--test-concurrency=${CONCURRENCY}`, ...files], {
  stdio: 'inherit',
  env,
})
// From a terminal the tests hear it too. Either way they end first, then the server.
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => tests.kill(signal))

tests.on('exit', (code) => {
  void Promise.resolve(server?.remove()).finally(() => process.exit(code ?? 1))
})
