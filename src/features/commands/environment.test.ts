import assert from 'node:assert/strict'
import { test } from 'node:test'
import { commandEnvironment } from './environment.ts'

const RUN = {
  runId: 'r',
  source: 'portal',
  url: 'http://127.0.0.1:1/r',
  token: 't',
  socket: null,
  outputDir: '/out',
  api: 'run' as const,
  resumed: false,
  input: null,
}

test("the user's variables stay, an outer run's are replaced, Unstuck's secrets are removed, outer process tags stay", () => {
  const users = {
    PATH: '/bin',
    DATABASE_URL: "postgres://user's-own",
    UNSTUCK_DB: 'postgres://secret',
    UNSTUCK_TOKEN: 'outer',
    UNSTUCK_INPUT: 'outer',
    UNSTUCK_SLACK_WEBHOOK: 'https://hooks/secret',
    NOTIFY_SOCKET: '/run/x',
    UNSTUCK_TREE_abc: 'outer-execution',
    UNSTUCK_CHAOS_DIR: '/tmp/x',
    MISSING: undefined,
  }
  assert.deepEqual(commandEnvironment(users, RUN), {
    PATH: '/bin',
    DATABASE_URL: "postgres://user's-own",
    UNSTUCK_TREE_abc: 'outer-execution',
    UNSTUCK_CHAOS_DIR: '/tmp/x',
    UNSTUCK_RUN_ID: 'r',
    UNSTUCK_SOURCE: 'portal',
    UNSTUCK_API: 'run',
    UNSTUCK_URL: 'http://127.0.0.1:1/r',
    UNSTUCK_TOKEN: 't',
    UNSTUCK_OUTPUT_DIR: '/out',
    UNSTUCK_RESUME: '0',
  })
})

test('input is JSON; calls to its own API do not go through a proxy', () => {
  const users = { HTTP_PROXY: 'http://proxy', no_proxy: 'intranet' }
  const env = commandEnvironment(users, { ...RUN, input: { month: '2026-10' }, resumed: true })
  assert.equal(env['UNSTUCK_INPUT'], '{"month":"2026-10"}')
  assert.equal(env['UNSTUCK_RESUME'], '1')
  assert.equal(env['no_proxy'], 'intranet,127.0.0.1,localhost')
  assert.equal(env['NO_PROXY'], '127.0.0.1,localhost')
})
