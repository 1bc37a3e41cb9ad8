import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { connect, createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { newId } from '../../src/core/model/id.ts'
import { openStore } from '../../src/core/store/open.ts'
import { httpSink, mailSink } from '../../src/testing/test-receivers.ts'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { cliCommand, unstuckProcess as unstuck } from '../../src/testing/unstuck-cli.ts'
import { READ_ROUTES, pathOf } from './route-walk.ts'

/** In every secret that there is. No output may ever hold it. */
const CANARY = 'canary-hunter2'
/** No server listens here. */
const UNREACHABLE = `postgres://me:${CANARY}-db@127.0.0.1:1/x`
const ENV = {
  UNSTUCK_ADMIN_TOKEN: `${CANARY}-admin-token-0123456789abcdef`,
  UNSTUCK_SLACK_WEBHOOK: `https://127.0.0.1:1/services/${CANARY}-slack`,
  UNSTUCK_WEBHOOK_URL: `https://me:${CANARY}-hook@127.0.0.1:1/${CANARY}-path?key=${CANARY}`,
  UNSTUCK_WEBHOOK_SECRET: `${CANARY}-signature`,
  UNSTUCK_SMTP_URL: `smtp://me:${CANARY}-smtp@127.0.0.1:1`,
}
const CONFIG = `export default {
  db: process.env.THE_DATABASE_PASSWORD,
  url: 'https://unstuck.example',
  alerts: [{ when: 'gave-up', to: ['slack', 'email', 'webhook'] }, { when: 'dead', to: ['slack'] }],
  channels: {
    slack: { url: process.env.UNSTUCK_SLACK_WEBHOOK, allowPrivate: true, allowHttp: true },
    email: { smtp: process.env.UNSTUCK_SMTP_URL, from: 'a@b.example', to: ['c@d.example'] },
    webhook: { url: process.env.UNSTUCK_WEBHOOK_URL, secret: process.env.UNSTUCK_WEBHOOK_SECRET, allowPrivate: true, allowHttp: true },
  },
}`

function assertNoSecrets(where: string, text: string): void {
  const at = text.indexOf('canary')
  assert.equal(at, -1, `${where}: ${text.slice(Math.max(0, at - 200), at + 60)}`)
}

/** Everything that was written below a folder. How many files that are. */
function assertNoSecretsInFiles(folder: string): number {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name))
  for (const file of files) assertNoSecrets(file, readFileSync(file, 'latin1'))
  return files.length
}

test('S17 no command prints a secret, in its output or its errors, with an unreachable database', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'unstuck.config.mjs'), CONFIG)
  const env = { ...ENV, THE_DATABASE_PASSWORD: UNREACHABLE }
  const calls = [
    ['status', '--debug'],
    ['runs', '--json', '--debug'],
    ['recover', '--dry-run'],
    ['config', 'show', '--defaults'],
    ['config', 'show', '--json'],
    ['doctor'],
    ['doctor', '--security', '--json'],
    ['alerts', 'test'],
    ['alerts', 'list', '--debug'],
    ['migrate', '--json'],
    ['enqueue', 'shop', '--debug'],
    ['tokens', 'list'],
    ['serve', '--host', '203.0.113.1', '--debug'],
    ['status', '--db', UNREACHABLE, '--debug'],
    ['status', '--db', `postgres://me:${CANARY}@[bad/x`, '--debug'],
    ['status', '--db', `mysql://me:${CANARY}@h/x`, '--json', '--debug'],
  ]
  const say = async (args: string[]): Promise<void> => {
    const { stdout, stderr } = await unstuck(args, { cwd: folder.path, env })
    assert.ok(stdout + stderr !== '', args.join(' '))
    assertNoSecrets(args.join(' ').replaceAll(CANARY, '…'), stdout + stderr)
  }
  for (let at = 0; at < calls.length; at += 4) await Promise.all(calls.slice(at, at + 4).map(say))
  assertNoSecretsInFiles(folder.path)
})

test('S17 S16 nor do the API, the log, the journal or a command that prints its whole environment', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'unstuck.config.mjs'), CONFIG)
  const cwd = folder.path
  const db = `sqlite:${join(cwd, '.unstuck', 'unstuck.db')}`
  await using sink = await httpSink()
  await using mail = await mailSink({ name: 'me', password: `${CANARY}-smtp` })
  const env = {
    ...ENV,
    THE_DATABASE_PASSWORD: db,
    UNSTUCK_SLACK_WEBHOOK: `${sink.url}/services/${CANARY}-slack`,
    UNSTUCK_WEBHOOK_URL: `${sink.url}/${CANARY}-path?key=${CANARY}`,
    UNSTUCK_SMTP_URL: `smtp://me:${CANARY}-smtp@127.0.0.1:${mail.port}`,
  }
  const script = 'console.log(JSON.stringify(process.env)); process.exit(3)'
  const run = ['run', 'feed', '--restart', 'on-failure', '--max-restarts', '0', '--']
  const wrapped = await unstuck([...run, process.execPath, '-e', script], { cwd, env })
  assert.equal(wrapped.code, 3, wrapped.stderr)
  assert.match(wrapped.stdout, /UNSTUCK_RUN_ID/)
  assertNoSecrets('run', wrapped.stdout + wrapped.stderr)
  const told = [...(await sink.wait(2)).map(({ text }) => text), (await mail.wait(1))[0]!.source]
  assertNoSecrets('what people are told', told.join('\n'))
  const store = await openStore(db)
  const [made] = (await store.runs({ limit: 1 })).items
  await store.close()

  const { command, env: around } = cliCommand(['serve', '--port', '0', '--json'])
  const server = spawn(command[0]!, command.slice(1), { cwd, env: { ...around, ...env } })
  let [said, log] = ['', '']
  server.stderr.setEncoding('utf8').on('data', (text: string) => (log += text))
  server.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = once(server, 'close')
  await Promise.race([once(server.stdout, 'data'), ended])
  try {
    const { url } = JSON.parse(said) as { url: string }
    const headers = { authorization: `Bearer ${ENV.UNSTUCK_ADMIN_TOKEN}` }
    for (const route of READ_ROUTES.filter(({ path }) => path !== '/api/events')) {
      for (const path of [pathOf(route), pathOf(route, { run: made!.id, source: 'feed' })]) {
        const response = await fetch(new URL(path, url), { headers })
        assert.ok(response.status < 500, `${path}: ${response.status}`)
        assertNoSecrets(path, (await response.text()) + JSON.stringify([...response.headers]))
      }
    }
    for (const wrong of [`/api/runs?token=${CANARY}`, `/api/${CANARY}`, `/api/runs/${newId()}`]) {
      const response = await fetch(new URL(wrong, url), { method: 'POST', headers, body: CANARY })
      assertNoSecrets('a wrong call', await response.text())
    }
  } finally {
    server.kill('SIGTERM')
    await ended
  }
  assertNoSecrets('the log of serve', said + log)
  assert.ok(assertNoSecretsInFiles(cwd) >= 3)
})

test('S18 a secret given by a flag is refused and not printed, and the error names the accepted way', async () => {
  using folder = temporaryFolder()
  const calls = [
    ['serve', `--token=${CANARY}`],
    ['serve', '--admin-token', CANARY],
    ['status', `--password=${CANARY}`],
    ['alerts', 'test', `--smtp=smtp://me:${CANARY}@h`, '--json'],
  ]
  await Promise.all(
    calls.map(async (args) => {
      const { code, stderr } = await unstuck(args, { cwd: folder.path })
      assert.equal(code, 2, stderr)
      assert.match(stderr, /not given by flags.*UNSTUCK_ADMIN_TOKEN/s)
      assertNoSecrets(args[0]!, stderr)
    }),
  )
})

test('S27 with sslmode=verify-full it connects neither in plain text nor under an untrusted certificate', async () => {
  // To a TLS server with a self-signed certificate, and to a server without TLS.
  await using tls = await mailSink(undefined, true)
  for (const answer of ['S', 'N']) {
    const heard: Buffer[] = []
    const server = createServer((socket) => {
      socket.on('error', () => {})
      socket.once('data', () => {
        socket.write(answer)
        if (answer === 'N') socket.on('data', (more) => heard.push(more))
        else {
          const beyond = connect(tls.port, '127.0.0.1').on('error', () => {})
          socket.pipe(beyond).pipe(socket)
        }
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    const address = `postgres://me:${CANARY}@127.0.0.1:${port}/x?sslmode=verify-full`
    await assert.rejects(openStore(address), (error: Error) => {
      assertNoSecrets('the error', error.message)
      assert.match(error.message, answer === 'S' ? /certificate/ : /SSL/)
      return true
    })
    assert.deepEqual(heard, [])
    server.close()
  }
})
