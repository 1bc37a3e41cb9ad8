import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId } from '../../../core/model/id.ts'
import {
  claimOne,
  registerWorker,
  savePage,
  makeItems,
  SOURCE,
  enqueueCrawl,
  listOperations,
} from '../../../testing/fixtures.ts'
import { createCliTestContext } from '../../../testing/cli-test-context.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { TcpProxy } from '../../../testing/tcp-proxy.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { cliCommand, unstuck } from '../../../testing/unstuck-cli.ts'
import { ALL_ROUTES } from '../../../testing/all-routes.ts'
import { addToken, tokensPath } from '../../../app/tokens.ts'

const ROLES = readFileSync(
  new URL('../../../../docs/reference/postgres-roles.sql', import.meta.url),
  'utf8',
)

type ServeProcess = AsyncDisposable & {
  readonly url: string
  readonly output: () => string
  /** Its exit code after this signal. */
  end(signal?: NodeJS.Signals): Promise<number | null>
}

async function serve(
  cwd: string,
  args: readonly string[],
  env: object = {},
): Promise<ServeProcess> {
  const { command, env: clean } = cliCommand(['serve', '--port', '0', '--json', ...args])
  const child = spawn(command[0]!, command.slice(1), { cwd, env: { ...clean, ...env } })
  let said = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text))
  const ended = once(child, 'close') as Promise<[number | null]>
  const told = once(child.stdout.setEncoding('utf8'), 'data') as Promise<[string]>
  const [line] = await Promise.race([
    told,
    ended.then(() => assert.fail(`it ended: ${said}`) as [string]),
  ])
  const end: ServeProcess['end'] = async (signal = 'SIGTERM') => {
    child.kill(signal)
    return (await ended)[0]
  }
  return {
    url: (JSON.parse(line) as { url: string }).url,
    output: () => said,
    end,
    async [Symbol.asyncDispose]() {
      await end('SIGKILL')
    },
  }
}

async function waitUntil(what: string, condition: () => Promise<boolean> | boolean): Promise<void> {
  for (const from = performance.now(); !(await condition());) {
    assert.ok(performance.now() - from < 150_000, what)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers })
  return { status: response.status, body: (await response.json()) as any }
}

test('serve shows runs, recovers dead workers in the background, is no worker itself, and stops on SIGTERM', async () => {
  await using ctx = await createCliTestContext()
  const run = await enqueueCrawl(ctx.store, 1)
  const gone = await ctx.registerDeadWorker('shop')
  const { target } = await claimOne(ctx.store, gone)
  await using server = await serve(ctx.cwd, ['--db', ctx.database.url])
  assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+\/$/)
  const { body } = await get(`${server.url}api/session`)
  assert.deepEqual([body.name, body.role], ['local', 'admin'])
  await waitUntil('the dead one is recovered', async () => {
    return (await ctx.store.target(target))?.status === 'planned'
  })
  assert.equal((await get(`${server.url}api/runs/${run}`)).body.run.id, run)
  assert.deepEqual((await ctx.json(['workers'])).items, [])
  assert.deepEqual((await get(`${server.url}api/workers`)).body.items, [])
  assert.equal(await server.end(), 0)
  assert.match(server.output(), /serving http:\/\/127/)
  assert.deepEqual(await ctx.store.observations(), [])
})

test('--no-monitor disables recovery in the server', async () => {
  await using ctx = await createCliTestContext()
  await using server = await serve(ctx.cwd, ['--db', ctx.database.url, '--no-monitor'])
  assert.equal((await get(`${server.url}readyz`)).status, 200)
  assert.deepEqual(await ctx.store.observations(), [])
  assert.equal(await server.end('SIGINT'), 0)
})

test('S1 others than this machine need a token: without one it does not start', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  const refused = [
    ['--host', '0.0.0.0'],
    ['--host', '::'],
    ['--trust-proxy'],
    ['--allow-host', 'ops.example.com'],
  ]
  await Promise.all(
    refused.map(async (args) => {
      const { code, stderr } = await unstuck(['serve', '--port', '0', ...args], { cwd })
      assert.equal(code, 2, args.join(' '))
      assert.match(stderr, /unstuck tokens add/)
    }),
  )
  const short = await unstuck(['serve'], { cwd, env: { UNSTUCK_ADMIN_TOKEN: 'short' } })
  assert.deepEqual([short.code, short.stderr.includes('shorter than 32')], [2, true])
  const path = await unstuck(['serve', '--base-path', 'a"><script>'], { cwd })
  assert.deepEqual([path.code, path.stderr.includes('base path')], [2, true])
})

const outside = Object.values(networkInterfaces())
  .flat()
  .find((one) => one && !one.internal && one.family === 'IPv4')?.address

test('S1 by default only this machine reaches it', { skip: !outside }, async () => {
  using folder = temporaryFolder()
  await using server = await serve(folder.path, [])
  const socket = connect(Number(new URL(server.url).port), outside)
  await assert.rejects(once(socket, 'connect'), { code: 'ECONNREFUSED' })
})

test('with the token of the environment it serves everywhere, below its base path, and read-only if so asked', async () => {
  using folder = temporaryFolder()
  const token = 'a-long-secret-of-a-container-0123456789'
  const args = ['--host', '0.0.0.0', '--base-path', '/ops/', '--read-only']
  await using server = await serve(folder.path, args, { UNSTUCK_ADMIN_TOKEN: token })
  const url = server.url.replace('0.0.0.0', '127.0.0.1')
  assert.match(url, /:\d+\/ops\/$/)
  assert.equal((await get(`${url}api/session`)).status, 401)
  const authorization = `Bearer ${token}`
  const { body } = await get(`${url}api/session`, { authorization })
  assert.deepEqual([body.role, body.readOnly], ['admin', true])
  const page = await fetch(`${url}runs/1`)
  assert.match(await page.text(), /data-base="\/ops\/"/)
  assert.ok(!server.output().includes(token))
  const { port } = new URL(url)
  const second = await unstuck(['serve', '--port', port], { cwd: folder.path })
  assert.deepEqual([second.code, second.stderr.includes('is taken')], [2, true])
})

test('without its database it stays up and reports so, and goes on when it is back', async () => {
  await using database = await postgresEngine.empty()
  const proxy = await TcpProxy.start(database.url)
  proxy.close()
  using folder = temporaryFolder()
  await using server = await serve(folder.path, ['--db', proxy.address])
  const status = async (path: string) => (await get(`${server.url}${path}`)).status
  assert.deepEqual(
    [await status('healthz'), await status('readyz'), await status('api/runs')],
    [200, 503, 503],
  )
  await proxy.open()
  await waitUntil('it is there', async () => (await status('readyz')) === 200)
  assert.equal(await status('api/runs'), 200)
  const store = await database.open()
  await waitUntil('it looks after the dead', async () => (await store.observations()).length === 1)
  proxy.close()
  await waitUntil('it is away', async () => (await status('readyz')) === 503)
  assert.equal(await status('api/runs'), 503)
  await proxy.open()
  await waitUntil('it is back', async () => (await status('api/runs')) === 200)
  assert.equal(await server.end(), 0)
  proxy.close()
  // Nor who it logs in as.
  assert.doesNotMatch(server.output(), /@/)
})

const SAME_ORIGIN_JSON = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }

test('S25 read-only it recovers nothing, and a login that may only read is enough', async () => {
  await using database = await postgresEngine.fresh()
  // Roles are of the whole server: these have names of their own.
  const named = (role: string): string => `${role}_of_serve_${newId().slice(-8)}`
  const [migrate, worker, viewer, program] = ['migrate', 'worker', 'viewer', 'program'].map(named)
  const roles = { migrate, worker, viewer, program } as Record<string, string>
  const own = (_: string, role: string): string => roles[role]!
  await database.raw(ROLES.replace(/unstuck_(migrate|worker|viewer|program)\b/g, own))
  await database.raw(`ALTER ROLE ${viewer} LOGIN PASSWORD 'x'`)
  const store = await database.open()
  const run = await enqueueCrawl(store, 3)
  const hired = await registerWorker(store)
  const { target } = await savePage(store, await claimOne(store, hired), { items: makeItems(0, 2) })
  const theirs = Object.assign(new URL(database.url), { username: viewer, password: 'x' }).href
  using folder = temporaryFolder()
  await using server = await serve(folder.path, ['--db', theirs, '--read-only'])
  const looks = ALL_ROUTES.filter(({ method, path }) => method === 'GET' && path !== '/api/events')
  assert.ok(looks.length > 20)
  const ids: Record<string, string> = { run, target, source: SOURCE, fingerprint: 'x' }

  for (const { path } of looks) {
    const at = path.replace(/:(\w+)/g, (_, name: string) => ids[name]!)
    const { status } = await fetch(`${server.url}${at.slice(1)}`)
    assert.ok(status === 200 || /fingerprint|log$/.test(path), `${path}: ${status}`)
  }
  const cancel = await fetch(`${server.url}api/runs/${run}/cancel`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: server.url.slice(0, -1) },
    body: '{}',
  })
  assert.equal(cancel.status, 403)
  assert.deepEqual(
    (await store.observations()).map((one) => one.worker.id),
    [hired],
  )
  assert.deepEqual((await listOperations(store, 5)).items, [])
  // Sessions work although they cannot be written.
  const token = addToken(tokensPath(join(folder.path, '.unstuck')), 'maria', 'viewer')
  const ask = (path: string, init: { method?: string; body?: string }, more: object = {}) =>
    fetch(`${server.url}api/${path}`, { ...init, headers: { ...SAME_ORIGIN_JSON, ...more } })
  const login = await ask('login', { method: 'POST', body: JSON.stringify({ token }) })
  const cookie = login.headers.getSetCookie()[0]!.split(';')[0]!
  const session = async () => (await ask('session', {}, { cookie })).status
  assert.equal(await session(), 200)
  await ask('logout', { method: 'POST', body: '{}' }, { cookie })
  assert.equal(await session(), 401)
  assert.equal(await server.end(), 0)
  const said = server.output().match(/\[unstuck\].*/g) ?? []
  assert.equal(said.filter((line) => !line.includes('] Refused ')).length, 2, server.output())
  assert.equal(said.length, 4, server.output())
  const all = Object.values(roles).join(', ')
  await database.raw(`DROP OWNED BY ${all} CASCADE; DROP ROLE ${all}`)
})

test('a mistake in the config is reported at the start', async () => {
  using folder = temporaryFolder()
  writeFileSync(`${folder.path}/unstuck.config.mjs`, 'export default { polices: {} }')
  const { code, stderr } = await unstuck(['serve'], { cwd: folder.path })
  assert.deepEqual([code, stderr.includes('did you mean policies')], [2, true])
})
