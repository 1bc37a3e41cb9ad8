import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import type { Access } from './http.ts'
import type * as Next from './next.ts'
import { recoveryRoutes, unstuckRoutes } from './next.ts'
import { sqliteEngine, temporaryFolder } from './testing/sqlite-engine.ts'
import { ALERT_STORE } from './features/alerts/store/store.ts'

const NEXT = new URL('./next.ts', import.meta.url).href

/** As it is loaded again after a change. */
const freshImport = async (n: number): Promise<typeof Next> => import(`${NEXT}?${n}`)

/** Tables of a user's own: in one, rows fail after a second; in the other, they are then dead, which is for people. */
const CONFIG = `
  const columns = { id: 'id', status: 'status', startedAt: 'at' }
  const statuses = { active: 'busy', failed: 'failed' }
  export default {
    adopted: {
      hasty: { table: 'hasty', columns, statuses, policy: { staleAfter: '1s', onStale: 'fail' } },
      quiet: { table: 'quiet', columns, statuses, policy: { abandonAfter: '1s' } },
    },
  }
`
/** A server that is ready a moment after it starts, and ends when its work is done. */
const SERVER = `
  import assert from 'node:assert/strict'
  import { once } from 'node:events'
  const [one, two] = [await import('${NEXT}?1'), await import('${NEXT}?2')]
  const log = (who) => (line) => console.log(who + ': ' + line)
  process.env.NEXT_RUNTIME = 'edge'
  one.register({ log: log('edge') })
  process.env.NEXT_RUNTIME = 'nodejs'
  process.env.NEXT_PHASE = 'phase-production-build'
  one.register({ log: log('build') })
  process.env.NEXT_PHASE = 'phase-production-server'
  assert.equal(one.register({ log: log('one') }), undefined)
  two.register({ log: log('two') })
  two.register({ db: 'sqlite:another.db', log: log('other') })
  await once(process.stdin.resume(), 'end')
`

test(
  'register() starts once however often it is loaded, in no other runtime, and ends with the server',
  { timeout: 90_000 },
  async () => {
    await using database = await sqliteEngine.fresh()
    const store = await database.open()
    using folder = temporaryFolder()
    writeFileSync(join(folder.path, 'unstuck.config.mjs'), CONFIG)
    writeFileSync(join(folder.path, 'server.mjs'), SERVER)
    for (const table of ['hasty', 'quiet']) {
      const columns = 'id INTEGER PRIMARY KEY, status TEXT NOT NULL, at INTEGER NOT NULL'
      await database.raw(`CREATE TABLE ${table} (${columns})`)
    }
    const server = spawn(process.execPath, ['server.mjs'], {
      cwd: folder.path,
      env: { ...process.env, NODE_TEST_CONTEXT: '', UNSTUCK_DB: database.url },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    const ended = once(server, 'exit')
    const said = text(server.stdout)
    try {
      await waitUntil('a recovering worker', async () => (await store.observations()).length > 0)
      for (const table of ['hasty', 'quiet']) {
        await database.raw(`INSERT INTO ${table} VALUES (1, 'busy', ${Date.now() - 10_000})`)
      }
      await waitUntil('a row of after the start that has failed', async () => {
        const [row] = await database.raw('SELECT status FROM hasty')
        return row!['status'] === 'failed'
      })
      await waitUntil(
        'an alert',
        async () => (await (await store.extend(ALERT_STORE)).listAlerts({ open: true })).length > 0,
      )
      assert.equal((await store.observations()).length, 1)
      server.stdin.end()
      assert.deepEqual(await ended, [0, null])
    } finally {
      server.kill('SIGKILL')
    }
    const lines = (await said).trimEnd().split('\n')
    assert.ok(lines.length > 1)
    const others = lines.filter((line) => !line.startsWith('one: '))
    assert.deepEqual(others, [
      'other: register() was called again with another database: the first one applies.',
    ])
  },
)

test('a reloaded route shares the database with the earlier one, and checks access itself', async () => {
  await using database = await sqliteEngine.fresh()
  const { handlers } = (globalThis as any)[Symbol.for('unstuck.next')]
  const before: number = handlers.size
  const options = { db: database.url, basePath: '/unstuck', log: () => {} }
  const anyCaller: Access = () => ({ name: 'maria', role: 'viewer' })
  const first = (await freshImport(1)).unstuckRoutes({ ...options, access: anyCaller })
  const second = (await freshImport(2)).unstuckRoutes({ ...options, access: () => null })
  const ask = async ({ GET }: typeof first) =>
    (await GET(new Request('http://localhost:3000/unstuck/api/session'))).status
  assert.deepEqual([await ask(first), await ask(second), await ask(first)], [200, 401, 200])
  assert.equal(handlers.size - before, 1)
  await closeAll()
})

test('recovery routes are recovery and nothing else, wherever they are', async () => {
  await using database = await sqliteEngine.fresh()
  const came: string[] = []
  const access: Access = ({ headers, url }) => {
    came.push(new URL(url).pathname)
    return headers.get('x-role') === 'operator' ? { name: 'maria', role: 'operator' } : null
  }
  const { GET, POST } = recoveryRoutes({ db: database.url, access, log: () => {} })
  const origin = 'http://localhost:3000'
  const headers = { 'x-role': 'operator', 'content-type': 'application/json', origin }
  for (const path of ['/api/recovery', '/anything/at?source=a', '/api/runs']) {
    const look = await GET(new Request(origin + path, { headers: { ...headers, host: 'x' } }))
    const answer = (await look.json()) as any
    assert.deepEqual([look.status, answer.planned, answer.dryRun], [200, 0, true], path)
    assert.equal(answer.command.includes('--source=a'), path.includes('source'))
  }
  assert.deepEqual(came, ['/api/recovery', '/anything/at', '/api/runs'])
  const act = (given: Record<string, string>, body: unknown) =>
    POST(
      new Request(`${origin}/recover`, {
        method: 'POST',
        headers: { host: 'localhost:3000', ...given },
        body: JSON.stringify(body),
      }),
    )
  assert.equal((await act({}, {})).status, 401)
  assert.equal((await act({ ...headers, origin: 'http://evil.example' }, {})).status, 403)
  assert.equal((await act(headers, { plan: 'another' })).status, 400)
  const done = (await (await act(headers, {})).json()) as any
  assert.deepEqual([done.planned, done.dryRun], [0, false])
  await closeAll()
})

test('closed by default: without an access option there are no routes', () => {
  for (const [name, make] of Object.entries({ unstuckRoutes, recoveryRoutes })) {
    for (const wrong of [undefined, {}, { access: 'all' }, { tokens: 5 }]) {
      const message = new RegExp(`^${name}\\(\\) needs`)
      assert.throws(() => make(wrong as never), { code: 'E_USAGE', message })
    }
  }
  assert.throws(() => unstuckRoutes({ access: () => null, basePath: 'x' }), { code: 'E_USAGE' })
})

test('the edge build imports nothing from Node, and functions that need Node throw a clear error', async () => {
  const edge = fileURLToPath(new URL('./next-edge.ts', import.meta.url))
  assert.doesNotMatch(stripTypeScriptTypes(readFileSync(edge, 'utf8')), /\bimport\b[^\n]*from/)
  const path = new URL('../package.json', import.meta.url)
  const { exports } = JSON.parse(readFileSync(path, 'utf8'))
  assert.equal(exports['./next']['edge-light'], './dist/next-edge.js')
  // The first condition that fits counts.
  assert.deepEqual(Object.keys(exports['./next']), ['types', 'edge-light', 'default'])
  const { register, ...makers } = await import('./next-edge.ts')
  assert.equal(register(), undefined)
  for (const make of Object.values(makers))
    assert.throws(() => make({ access: () => null }), /leave out .*edge/)
})

async function closeAll(): Promise<void> {
  const { handlers } = (globalThis as any)[Symbol.for('unstuck.next')]
  for (const handler of handlers.values()) await (await handler).close()
  handlers.clear()
}

async function waitUntil(what: string, poll: () => Promise<boolean>): Promise<void> {
  const giveUpAt = performance.now() + 60_000
  while (!(await poll())) {
    assert.ok(performance.now() < giveUpAt, `Never seen: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
