import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { getRequestListener } from '@hono/node-server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import {
  createHandler,
  toFastifyPlugin,
  toNodeHandler,
  type Access,
  type Handler,
  type HandlerOptions,
} from './http.ts'
import { open } from './interfaces/library/unstuck.ts'
import { assertMountedServer } from './testing/assert-mounted-server.ts'
import { sqliteEngine, temporaryFolder } from './testing/sqlite-engine.ts'

/** As a server of one's own would tell it from its sessions. */
const access: Access = ({ headers }) => {
  const role = headers.get('x-role')
  return role === 'viewer' || role === 'operator' ? { name: `a ${role}`, role } : null
}

type Listener = (...of: Parameters<RequestListener>) => unknown
type Mounted = (handler: Handler) => Listener | Promise<Listener>

async function assertMounted(mount: Mounted, basePath = '/ops/unstuck'): Promise<void> {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const handler = createHandler({ db: database.url, basePath, access, log: () => {} })
  const mounted = await mount(handler)
  const server = createServer((...call) => void mounted(...call)).listen(0, '127.0.0.1')
  try {
    await once(server, 'listening')
    const { port } = server.address() as AddressInfo
    await assertMountedServer(`http://127.0.0.1:${port}${basePath}`, store)
  } finally {
    await handler.close()
    await closeServer(server)
  }
}

async function closeServer(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

test('it mounts in Hono, which takes its path off, and in one that does not', async () => {
  await assertMounted(({ fetch }) => {
    const app = new Hono().mount('/ops/unstuck', fetch)
    return getRequestListener((request, env) => app.fetch(request, env))
  })
  await assertMounted(({ fetch }) => {
    const app = new Hono().all('/ops/unstuck/*', ({ req, env }) => fetch(req.raw, env))
    return getRequestListener((request, env) => app.fetch(request, env))
  })
})

test('it mounts in Express, before and after a body parser', async () => {
  await assertMounted((handler) => express().use('/ops/unstuck', toNodeHandler(handler)))
  await assertMounted((handler) =>
    express().use(express.json()).use('/ops/unstuck', toNodeHandler(handler)),
  )
})

test('it mounts in Fastify', async () => {
  await assertMounted(async (handler) => {
    const app = fastify()
    app.register(toFastifyPlugin(handler), { prefix: '/ops/unstuck' })
    await app.ready()
    return app.routing
  })
})

test('it mounts in plain Node, and at the root', async () => {
  await assertMounted((handler) => toNodeHandler(handler), '')
})

test('it serves route handlers over an open Unstuck and leaves it open', async () => {
  await using database = await sqliteEngine.fresh()
  await using unstuck = await open({ db: database.url })
  const { routes, close } = createHandler({ unstuck, basePath: '/api/unstuck', access })
  const address = 'http://localhost:3000/api/unstuck/api/session'
  const answer = await routes.GET(new Request(address, { headers: { 'x-role': 'viewer' } }))
  assert.equal(answer.status, 200)
  assert.equal((await routes.GET(new Request(address))).status, 401)
  await close()
  assert.deepEqual((await unstuck.runs()).items, [])
})

test('closed by default: without an access option no handler is created', () => {
  assert.throws(() => createHandler({}), { code: 'E_USAGE', message: /access.*tokens/ })
  assert.throws(() => createHandler({ access, basePath: 'x' }), { code: 'E_USAGE' })
})

test('a config that could not be read is read again by the next call', async () => {
  await using database = await sqliteEngine.fresh()
  using folder = temporaryFolder()
  const before = process.cwd()
  process.chdir(folder.path)
  try {
    writeFileSync('unstuck.config.mjs', 'export { default } from "./part.mjs"')
    const viewer: Access = () => ({ name: 'maria', role: 'viewer' })
    const { fetch, close } = createHandler({ db: database.url, access: viewer, log: () => {} })
    const ask = async () => (await fetch(new Request('http://localhost/api/session'))).status
    assert.equal(await ask(), 500)
    writeFileSync('part.mjs', 'export default {}')
    assert.equal(await ask(), 200)
    await close()
  } finally {
    process.chdir(before)
  }
})

test('the result of access is validated, and an error in it denies access', async () => {
  await using database = await sqliteEngine.fresh()
  const ask = async (word: Access): Promise<number> => {
    const { fetch, close } = createHandler({ db: database.url, access: word, log: () => {} })
    const { status } = await fetch(new Request('http://localhost/api/session'))
    await close()
    return status
  }
  assert.equal(await ask(async () => ({ name: 'maria', role: 'viewer' })), 200)
  assert.equal(await ask(() => undefined), 401)
  assert.equal(await ask(() => ({ name: 'eve', role: 'root' as 'admin' })), 401)
  assert.equal(await ask(() => ({ name: '', role: 'admin' })), 401)
  assert.equal(await ask(() => Promise.reject(new Error('no session store'))), 503)
})

test('a caller that access rejects is told whom to ask, and nothing about tokens', async () => {
  await using database = await sqliteEngine.fresh()
  const ask = async (options: Partial<HandlerOptions>, path: string, init?: RequestInit) => {
    const handler = createHandler({ db: database.url, log: () => {}, ...options })
    const response = await handler.fetch(new Request(`http://localhost${path}`, init))
    await handler.close()
    const { error, login } = (await response.json()) as any
    assert.doesNotMatch(error.message, /tokens (add|list|remove)/)
    return { status: response.status, message: error.message as string, login }
  }
  const denied: Access = () => null
  const rejected = await ask({ access: denied }, '/api/session')
  assert.equal(rejected.status, 401)
  assert.match(rejected.message, /Log in to the application .* ask its operator .*role/)
  assert.doesNotMatch(rejected.message, /token/i)
  assert.deepEqual(rejected.login, { by: ['access'], url: null })

  const withUrl = await ask({ access: denied, loginUrl: '/sign-in' }, '/api/session')
  assert.match(withUrl.message, /Log in at \/sign-in/)
  assert.deepEqual(withUrl.login, { by: ['access'], url: '/sign-in' })

  const both = await ask({ access: denied, tokens: 'tokens.json' }, '/api/session')
  assert.match(both.message, /Authorization: Bearer TOKEN/)
  assert.deepEqual(both.login, { by: ['access', 'token'], url: null })

  const inAddress = await ask({ access: denied }, '/api/session?token=x')
  assert.match(inAddress.message, /never part of the address/)

  const post = {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: 'http://localhost' },
    body: '{"token":"x"}',
  }
  assert.match((await ask({ access: denied }, '/api/login', post)).message, /takes no tokens/)

  const viewer: Access = () => ({ name: 'maria', role: 'viewer' })
  const forbidden = await ask({ access: viewer }, '/api/recovery', { ...post, body: '{}' })
  assert.equal(forbidden.status, 403)
  assert.match(forbidden.message, /role operator, and you have viewer.* ask its operator/)
})

for (const loginUrl of ['javascript:alert(1)', '//evil.example', 'login', 'data:text/html,x', '']) {
  test(`loginUrl is a path or an http address: ${JSON.stringify(loginUrl)} is refused`, () => {
    assert.throws(() => createHandler({ access, loginUrl }), {
      code: 'E_USAGE',
      message: /loginUrl/,
    })
  })
}
