import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openStore } from '../../src/core/store/open.ts'
import { addToken, tokensPath } from '../../src/app/tokens.ts'
import { runDoctor } from '../../src/testing/doctor-report.ts'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'

const CANARY = 'canary-hunter2'
const SLACK = `https://hooks.example/services/${CANARY}`

/** The user who runs the tests is not a finding. */
const MACHINE_CHECK = 'user'

function configure(folder: string, code: string): string {
  const path = join(folder, 'unstuck.config.mjs')
  writeFileSync(path, `export default ${code}`, { mode: 0o644 })
  return path
}

async function runSecurityDoctor(cwd: string, env: NodeJS.ProcessEnv, ...args: string[]) {
  const report = await runDoctor(['--security', ...args], { cwd, env })
  assert.doesNotMatch(report.stdout, /canary/)
  return report
}

test('S34 doctor --security names every problem of a setup, with a remedy', async () => {
  using folder = temporaryFolder()
  const data = join(folder.path, '.unstuck')
  await (await openStore(`sqlite:${join(data, 'unstuck.db')}`)).close()
  mkdirSync(join(data, 'journal'))
  writeFileSync(join(data, 'journal', 'one.jsonl'), '')
  chmodSync(join(data, 'journal', 'one.jsonl'), 0o640)
  addToken(tokensPath(data), 'maria', 'admin')
  chmodSync(tokensPath(data), 0o644)
  chmodSync(join(data, 'unstuck.db'), 0o644)
  chmodSync(data, 0o777)
  const config = configure(
    folder.path,
    `{
      db: 'postgres://me:${CANARY}@db.example/x',
      channels: {
        slack: { url: '${SLACK}' },
        email: { smtp: 'smtp://me:${CANARY}@mail.example', from: 'a@b.example', to: ['c@d.example'] },
        webhook: { url: 'http://hook.example/x', allowHttp: true },
      },
    }`,
  )
  const env = { UNSTUCK_ADMIN_TOKEN: 'short-canary', COPY: SLACK }
  const here = await runSecurityDoctor(
    folder.path,
    env,
    '--db',
    `sqlite:${join(data, 'unstuck.db')}`,
  )
  assert.equal(here.code, 3)
  const bad = (name: string, ...details: string[]): void => {
    const { result, found, why, fix, details: told } = here.getCheck(name)
    assert.ok(['problem', 'warning'].includes(result), `${name}: ${result}`)
    assert.ok(found && why && fix, name)
    for (const one of details) assert.ok(told.join('\n').includes(one), `${name}: ${one}`)
  }
  bad('files', 'unstuck.db (mode 0644)', 'one.jsonl (mode 0640)', 'tokens.json', '.unstuck (mode')
  bad('tokens')
  bad('admin-token')
  bad('written-secrets', 'db of ', 'channels.slack.url of ', 'channels.email.smtp of ')
  bad('handed-on', 'COPY')
  bad('channels', 'channels.webhook.url', 'channels.email.smtp', 'no secret')
  assert.ok(here.has('user'))

  const far = await runSecurityDoctor(
    folder.path,
    env,
    '--db',
    `postgres://me:${CANARY}@db.example/x`,
  )
  assert.equal(far.getCheck('database-tls').result, 'warning')
  assert.equal(far.getCheck('flags').result, 'warning')
  const both = await runSecurityDoctor(
    folder.path,
    env,
    '--db',
    `postgres://me:${CANARY}@127.0.0.1,db.example/x`,
  )
  assert.equal(both.getCheck('database-tls').result, 'warning')

  // A config that others can change is not read, so nothing that is in it can be examined.
  chmodSync(config, 0o666)
  const open = await runSecurityDoctor(folder.path, env)
  for (const name of ['config', 'config-file']) assert.equal(open.getCheck(name).result, 'problem')
})

test('S34 doctor --security finds nothing where all is as it should be', async () => {
  using folder = temporaryFolder()
  const data = join(folder.path, '.unstuck')
  const db = join(data, 'unstuck.db')
  const store = await openStore(`sqlite:${db}`)
  addToken(tokensPath(data), 'maria', 'operator')
  configure(
    folder.path,
    `{
      db: process.env.UNSTUCK_DATABASE_PASSWORD,
      channels: {
        slack: { url: process.env.UNSTUCK_SLACK_WEBHOOK },
        webhook: { url: 'https://hook.example', secret: process.env.UNSTUCK_WEBHOOK_SECRET },
        email: { smtp: process.env.UNSTUCK_SMTP_URL, from: 'a@b.example', to: ['c@d.example'] },
      },
    }`,
  )
  const env = {
    UNSTUCK_DATABASE_PASSWORD: `postgres://me:${CANARY}@db.example/x?sslmode=verify-full`,
    UNSTUCK_SLACK_WEBHOOK: SLACK,
    UNSTUCK_WEBHOOK_SECRET: `${CANARY}-of-the-hook`,
    UNSTUCK_SMTP_URL: `smtps://me:${CANARY}@mail.example`,
    UNSTUCK_ADMIN_TOKEN: 'by-chance-0123456789-abcdefghijklmnop',
  }
  for (const args of [['--db', `sqlite:${db}`], []]) {
    const report = await runSecurityDoctor(folder.path, env, ...args)
    report.assertOnlyProblems(MACHINE_CHECK)
    assert.equal(report.code, 0)
    assert.ok(report.data.checks.length >= 8)
  }
  await store.close()
})

test('S34 doctor --security reports a missing token and an unreadable config', async () => {
  using folder = temporaryFolder()
  const fresh = await runSecurityDoctor(folder.path, {})
  fresh.assertOnlyProblems(MACHINE_CHECK, 'tokens')
  assert.deepEqual([fresh.getCheck('tokens').result, fresh.code], ['note', 0])
  configure(folder.path, '{ polices: {} }')
  const wrong = await runSecurityDoctor(folder.path, {})
  assert.deepEqual([wrong.getCheck('config').result, wrong.code], ['problem', 2])
})
