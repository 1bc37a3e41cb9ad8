import assert from 'node:assert/strict'
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join, resolve } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test, type TestContext } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { findModule, notInstalled } from '../bench/packages.ts'
import { emptyProject } from '../src/testing/empty-project.ts'
import { isLong } from '../src/testing/long-tests.ts'
import { assertMountedServer } from '../src/testing/assert-mounted-server.ts'
import { sqliteEngine, temporaryFolder } from '../src/testing/sqlite-engine.ts'
import { waitFor } from './processes/harness.ts'

/**
 * `examples/next`: its files on a plain server that calls them as Next.js does; and built and started by Next.js itself,
 * where `npm ci --prefix bench` has installed it.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const EXAMPLE = join(ROOT, 'examples', 'next')
const MODULES = join(ROOT, 'node_modules')
const NEXT = findModule('next/dist/bin/next')

/** Calls `register` once before the first request, and the exported function of a route file by the request's method. */
const PLAIN_SERVER = `
  import { serve } from ${JSON.stringify(import.meta.resolve('@hono/node-server'))}
  import { register } from './instrumentation.ts'
  import * as recovery from './app/api/recovery/route.js'
  import * as unstuck from './app/unstuck/[[...path]]/route.js'
  import { listRuns } from './runs.js'

  register()
  const files = { '/api/recovery': recovery, '/edge': { GET: () => new Response() } }
  const page = { GET: () => new Response(listRuns().map((run) => run.id + run.status).join()) }
  const fetch = (request) => {
    const { pathname } = new URL(request.url)
    const file = pathname.startsWith('/unstuck') ? unstuck : (files[pathname] ?? page)
    return file[request.method]?.(request) ?? new Response(null, { status: 405 })
  }
  serve({ fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) =>
    console.log('Ready in a moment: http://127.0.0.1:' + port),
  )
  process.once('SIGTERM', () => process.exit(143))
`
/** The quick way through a build: no page is drawn beforehand, nothing made small, nothing kept for the next one. */
const BUILD = ['build', '--experimental-build-mode', 'compile']
const CONFIG = `
  import example from './example.config.js'
  const experimental = { turbopackMinify: false, turbopackFileSystemCacheForBuild: false }
  export default { ...example, turbopack: { root: '/' }, experimental }
`
/** For the edge everything is built a second time, instrumentation.ts too. */
const EDGE = `
  export const runtime = 'edge'
  export const GET = () =>
    Response.json([typeof EdgeRuntime, globalThis[Symbol.for('unstuck.next')]?.registered])
`
/** How long the database is held at least. */
const HELD_MS = 1_500
/** Ends a test whose answer would never come. */
const ANSWER_MS = 30_000

test('the files of an app of Next.js, on a plain server', async (t) => {
  using project = emptyProject('app')
  copyExample(project.path)
  writeFileSync(join(project.path, 'server.js'), PLAIN_SERVER)
  await assertApp(t, project.path, { start: ['server.js'] })
})

test(
  'an app of Next.js, built and started by it',
  { skip: NEXT === null && notInstalled('next') },
  async (t) => {
    using folder = temporaryFolder()
    setUp(folder.path)
    const start = [NEXT!, 'start', '-p', '0', '-H', '127.0.0.1']
    await assertApp(t, folder.path, { build: [NEXT!, ...BUILD], start })
  },
)

async function assertApp(
  t: TestContext,
  app: string,
  commands: { build?: string[]; start: string[] },
): Promise<void> {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const path = join(app, 'app.db')
  const env = {
    ...process.env,
    NODE_TEST_CONTEXT: '',
    NEXT_TELEMETRY_DISABLED: '1',
    UNSTUCK_DB: database.url,
    APP_DB: `sqlite:${path}`,
  }
  run(['seed.js'], app, env)
  using table = new DatabaseSync(path, { timeout: 5_000 })
  const row = (id: string) =>
    table.prepare('SELECT * FROM qualification_runs WHERE "id" = ?').get(id)!
  const [stuck, young] = [row('stuck'), row('young')]
  if (commands.build) run(commands.build, app, env)
  assert.deepEqual(row('stuck'), stuck)

  table.exec('BEGIN EXCLUSIVE')
  const server = spawn(process.execPath, commands.start, {
    cwd: app,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const ended = once(server, 'exit')
  try {
    const { url, said } = await waitUntilListening(server)
    const as = (role: string) => ({ headers: { 'x-role': role } })

    await t.test('it answers while recovery waits for a database', async () => {
      const heldUntil = performance.now() + HELD_MS
      // The lock is held until all answers are there: none can have waited for it.
      while (performance.now() < heldUntil) {
        const signal = AbortSignal.timeout(ANSWER_MS)
        assert.equal((await fetch(`${url}/edge`, { signal })).status, 200)
        await sleep(50)
      }
      table.exec('COMMIT')
      assert.deepEqual(row('stuck'), stuck)
    })

    await t.test(
      'a stuck run is failed after the start, with its data kept; a young one is unchanged',
      async () => {
        await waitFor(`it has failed, in ${said()}`, () => row('stuck')['status'] === 'FAILED')
        const { completedAt, errorMessage, ...rest } = row('stuck')
        assert.ok(Math.abs(Number(completedAt) - Date.now()) < 60_000, String(completedAt))
        assert.match(String(errorMessage), /./)
        assert.deepEqual(
          { ...rest, status: 'PROCESSING', completedAt: null, errorMessage: null },
          { ...stuck },
        )
        assert.deepEqual(row('young'), young)
        assert.match(
          await (await fetch(url)).text(),
          /stuck[^]*FAILED[^]*young|young[^]*stuck[^]*FAILED/,
        )
      },
    )

    if (commands.build) {
      await t.test('in the edge runtime nothing is started', async () => {
        assert.deepEqual(await (await fetch(`${url}/edge`)).json(), ['string', null])
      })
    }

    await t.test('the two recovery routes answer, and no other call is behind them', async () => {
      const recovery = `${url}/api/recovery`
      assert.equal((await fetch(recovery)).status, 401)
      assert.equal((await fetch(recovery, { ...as('operator'), method: 'DELETE' })).status, 405)
      const look = await fetch(`${recovery}?source=none`, as('viewer'))
      assert.deepEqual([look.status, ((await look.json()) as any).planned], [200, 0])

      table.exec(`
        INSERT INTO qualification_runs ("id", "status", "total", "createdAt")
        VALUES ('late', 'pending', 1, ${Date.now() - 600_000})
      `)
      const act = (role: string, body: unknown) =>
        fetch(recovery, {
          method: 'POST',
          headers: { 'x-role': role, 'content-type': 'application/json', origin: url },
          body: JSON.stringify(body),
        })
      assert.equal((await act('viewer', {})).status, 403)
      assert.equal((await act('operator', { sourze: 'x' })).status, 400)
      assert.equal((await act('operator', { dryRun: true })).status, 200)
      assert.equal((await act('operator', {})).status, 200)
      assert.equal(row('late')['status'], 'FAILED')
    })

    await t.test('the dashboard and the API mount as route handlers', () =>
      assertMountedServer(`${url}/unstuck`, store, 3),
    )

    await t.test('it ends with the server', async () => {
      server.kill('SIGTERM')
      assert.deepEqual(await ended, [143, null])
      assert.deepEqual(row('young'), young)
    })
  } finally {
    server.kill('SIGKILL')
    await ended
  }
}

/** A middleware runs at the edge, and has instrumentation.ts built for it as well. */
const MIDDLEWARE = `
  import { NextResponse } from 'next/server'
  export const middleware = () => NextResponse.next({ headers: { 'x-middleware': 'yes' } })
`

for (const [bundler, paths] of [
  ['--turbopack', ['/', '/edge', '/unstuck/healthz']],
  ['--webpack', ['/', '/unstuck/healthz']],
] as const) {
  test(
    `while an app is written, with a middleware at the edge, ${bundler}`,
    { skip: NEXT === null ? notInstalled('next') : !isLong && 'part of `npm run proof`' },
    async () => {
      await using database = await sqliteEngine.fresh()
      using folder = temporaryFolder()
      const app = folder.path
      const env = {
        ...process.env,
        NEXT_TELEMETRY_DISABLED: '1',
        UNSTUCK_DB: database.url,
        APP_DB: `sqlite:${join(app, 'app.db')}`,
      }
      setUp(app)
      writeFileSync(join(app, 'middleware.js'), MIDDLEWARE)
      run(['seed.js'], app, env)
      const server = spawn(
        process.execPath,
        [NEXT!, 'dev', bundler, '-p', '0', '-H', '127.0.0.1'],
        {
          cwd: app,
          env,
          stdio: ['ignore', 'pipe', 'inherit'],
        },
      )
      const ended = once(server, 'exit')
      try {
        const { url, said } = await waitUntilListening(server)
        const statuses = async (): Promise<number[]> => {
          const found: number[] = []
          for (const path of paths) found.push((await fetch(url + path)).status)
          return found
        }
        assert.deepEqual(
          await statuses(),
          paths.map(() => 200),
          said(),
        )
        assert.equal((await fetch(url)).headers.get('x-middleware'), 'yes')
        await waitFor('recovery has been at it', () => /recovery: fail run /.test(said()))
        // instrumentation.ts is loaded again after this.
        appendFileSync(join(app, 'instrumentation.ts'), '\n// changed\n')
        appendFileSync(join(app, 'access.js'), '\n// changed\n')
        await sleep(3_000)
        assert.deepEqual(
          await statuses(),
          paths.map(() => 200),
          said(),
        )
        assert.equal(
          said().match(/run \w+ of \w+ is running: 0\/1 done, 10 min old/g)?.length,
          1,
          said(),
        )
      } finally {
        server.kill('SIGTERM')
        await ended
      }
    },
  )
}

function copyExample(app: string): void {
  cpSync(EXAMPLE, app, {
    recursive: true,
    filter: (path) => !/[/\\](node_modules|\.next|app\.db)/.test(path.slice(ROOT.length)),
  })
}

/** With the package as users get it, which Next.js builds. */
function setUp(app: string): void {
  copyExample(app)
  renameSync(join(app, 'next.config.js'), join(app, 'example.config.js'))
  writeFileSync(join(app, 'next.config.js'), CONFIG)
  mkdirSync(join(app, 'app', 'edge'))
  writeFileSync(join(app, 'app', 'edge', 'route.js'), EDGE)
  const unstuck = join(app, 'node_modules', 'unstuck')
  mkdirSync(unstuck, { recursive: true })
  for (const name of ['next', 'react', 'react-dom'])
    symlinkSync(resolve(NEXT!, '../../../..', name), join(app, 'node_modules', name))
  for (const name of ['package.json', 'bin', 'docs'])
    cpSync(join(ROOT, name), join(unstuck, name), { recursive: true })
  symlinkSync(MODULES, join(unstuck, 'node_modules'))
  run([join(ROOT, 'src', 'testing', 'build.ts'), join(unstuck, 'dist')], ROOT)
  const dashboard = join(ROOT, 'dist', 'dashboard')
  if (existsSync(dashboard))
    cpSync(dashboard, join(unstuck, 'dist', 'dashboard'), { recursive: true })
}

function run(args: readonly string[], cwd: string, env = process.env): void {
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd,
    env,
    encoding: 'utf8',
  })
  assert.equal(status, 0, `${stdout}${stderr}`)
}

/** Where it listens, and what it has said so far. */
async function waitUntilListening(
  server: ChildProcess,
): Promise<{ url: string; said: () => string }> {
  let said = ''
  server.stdout!.setEncoding('utf8').on('data', (text: string) => (said += text))
  const url = await waitFor('it listens', () => {
    if (server.exitCode !== null) throw new Error(`It has ended: ${said}`)
    return /Ready in/.test(said) ? /http:\/\/127\.0\.0\.1:\d+/.exec(said)?.[0] : null
  })
  return { url, said: () => said }
}
