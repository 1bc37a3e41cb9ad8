import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { redact } from '../../src/core/model/redact.ts'
import { redactArguments } from '../../src/lib/text/redact-arguments.ts'
import { cliCommand, unstuckProcess as unstuck } from '../../src/testing/unstuck-cli.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import type { TestDatabase } from '../../src/testing/test-database.ts'

const CANARY = 'canary-hunter2'
const INDEX = fileURLToPath(new URL('../../src/index.ts', import.meta.url))
const SECRETS = {
  UNSTUCK_ADMIN_TOKEN: `${CANARY}-admin-token-0123456789abcdef`,
  UNSTUCK_SLACK_WEBHOOK: `https://127.0.0.1:1/services/${CANARY}-slack`,
  UNSTUCK_WEBHOOK_SECRET: `${CANARY}-signature`,
  UNSTUCK_SMTP_URL: `smtp://me:${CANARY}-smtp@127.0.0.1:1`,
  // Known by the config alone, which a run in one's own code does not read.
  OUR_HOOK: `https://127.0.0.1:1/${CANARY}-hook-path`,
}
const CONFIG = `export default {
  alerts: [{ when: 'gave-up', to: [] }],
  channels: {
    slack: { url: process.env.UNSTUCK_SLACK_WEBHOOK },
    email: { smtp: process.env.UNSTUCK_SMTP_URL, from: 'a@b.example', to: ['c@d.example'] },
    webhook: { url: process.env.OUR_HOOK, secret: process.env.UNSTUCK_WEBHOOK_SECRET },
  },
}`
/** Everything that is secret here, in one message. */
const ALL = `Object.entries(process.env).filter(([name]) => /^(UNSTUCK_|OUR_)/.test(name))
  .map(([name, value]) => name + ' is ' + value).join('; ') + '; password=${CANARY}; Authorization: Bearer ${CANARY}-bearer-1; ' +
  'smtp password is ' + new URL(process.env.UNSTUCK_SMTP_URL).password`

/** Every row of every table. Items are the user's data. */
async function dump(database: TestDatabase, engine: 'sqlite' | 'postgres'): Promise<string> {
  const names =
    engine === 'sqlite'
      ? `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'`
      : `SELECT table_name AS name FROM information_schema.tables WHERE table_schema = 'unstuck' AND table_type = 'BASE TABLE'`
  const texts: string[] = []
  for (const { name } of await database.raw(names)) {
    if (name === 'item') continue
    const rows = await database.raw(`SELECT * FROM ${database.table(String(name))}`)
    texts.push(`${String(name)}: ${JSON.stringify(rows)}`)
  }
  return texts.join('\n')
}

function assertClean(what: string, text: string, secrets: readonly string[]): void {
  for (const secret of secrets) {
    const at = text.indexOf(secret)
    assert.equal(at, -1, `${what}: ${text.slice(Math.max(0, at - 200), at + 80)}`)
  }
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`S36 no secret is stored: not of an error, an argument, a reason or a body, ${engine.name}`, async () => {
    await using ctx = await createHttpTestContext({ engine })
    const { database } = ctx
    using folder = temporaryFolder()
    const cwd = folder.path
    const env = { ...SECRETS, UNSTUCK_DB: database.url }
    const secrets = [CANARY, URL.parse(database.url)?.password ?? ''].filter((one) => one !== '')
    writeFileSync(join(cwd, 'unstuck.config.mjs'), CONFIG)
    writeFileSync(
      join(cwd, 'crawl.mjs'),
      `import { defineCrawl } from '${INDEX}'
       export default defineCrawl({
         source: 'shop', policy: { retries: 0 }, *targets() { yield { key: 'a' } },
         async page() { throw new Error(${ALL}) },
       })`,
    )
    writeFileSync(
      join(cwd, 'own.mjs'),
      `import { open } from '${INDEX}'
       const unstuck = await open({ signals: false })
       const run = await unstuck.begin('own')
       await run.fail(new Error(${ALL.replace('|OUR_', '')}))
       const other = await unstuck.begin('other')
       await unstuck.cancel(other.id, { because: 'because of ' + process.env.UNSTUCK_DB })
       await unstuck.close()`,
    )
    writeFileSync(
      join(cwd, 'command.mjs'),
      `const { UNSTUCK_URL: url, UNSTUCK_TOKEN: token } = process.env
       const headers = { authorization: 'Bearer ' + token, 'content-type': 'application/json' }
       const error = 'my token is ' + token + ', and I was given ' + process.argv.join(' ')
       await fetch(url + '/fail', { method: 'POST', headers, body: JSON.stringify({ error }) })
       console.log('token ' + token)`,
    )
    const work = await unstuck(['work', 'crawl.mjs', '--drain'], { cwd, env })
    assert.equal(work.code, 3, work.stderr)
    const around = cliCommand([]).env
    const own = spawn(process.execPath, ['own.mjs'], { cwd, env: { ...around, ...env } })
    assert.equal(await new Promise((resolve) => own.once('close', resolve)), 0)
    const words = [`--password=${CANARY}`, '--token', CANARY, `postgres://me:${CANARY}@h/x`]
    const command = [
      process.execPath,
      'command.mjs',
      ...words,
      '-H',
      `Authorization: Bearer ${CANARY}`,
    ]
    const ran = await unstuck(['run', 'feed', '--', ...command], { cwd, env })
    assert.notEqual(ran.code, 2, ran.stderr)

    const body = { because: `as postgres://me:${CANARY}@h/x says`, token: CANARY }
    const response = await ctx.call('POST', '/api/recovery', { as: 'admin', body })
    assert.equal(response.status, 400)

    const stored = await dump(database, engine.name)
    assert.match(stored, /password is \*\*\*/)
    assert.match(stored, /--password=\*\*\*/)
    assertClean('stored', stored, secrets)
    for (const args of [
      ['status'],
      ['runs', '--json'],
      ['show', 'shop', '--json'],
      ['show', 'feed'],
      ['history', '--json'],
    ]) {
      const { stdout, stderr } = await unstuck(args, { cwd, env })
      assertClean(args.join(' '), stdout + stderr, secrets)
    }
    assertClean('what was printed', work.stdout + work.stderr + ran.stdout + ran.stderr, secrets)
  })
}

test('S36 secrets are known by their names too, and what only looks like one stays', () => {
  for (const [text, expected] of [
    ['connect host=h password=abc dbname=x', 'connect host=h password=*** dbname=x'],
    ['curl --api-key abc --verbose', 'curl --api-key *** --verbose'],
    ['{"user":"me","password":"abc"}', '{"user":"me","password":"***"}'],
    ['GET /?token=abc&page=2', 'GET /?token=***&page=2'],
    ['Authorization: Basic bWU6cHc=', 'Authorization: Basic ***'],
    [
      'Unexpected token \'<\', "<html>" is not valid JSON',
      'Unexpected token \'<\', "<html>" is not valid JSON',
    ],
    [
      'the csrf-token expired: secret santa, 5 tokens',
      'the csrf-token expired: secret santa, 5 tokens',
    ],
  ] as const) {
    assert.equal(redact(text), expected)
    assert.equal(redact(redact(text)), expected)
  }
  assert.deepEqual(redactArguments(['/usr/bin/mysql', '-pabc', '-u', 'me:pw', '--port', '3306']), [
    '/usr/bin/mysql',
    '-p***',
    '-u',
    '***',
    '--port',
    '3306',
  ])
  assert.deepEqual(redactArguments(['ls', '-pabc', '--token', '--all']), [
    'ls',
    '-pabc',
    '--token',
    '--all',
  ])
})
