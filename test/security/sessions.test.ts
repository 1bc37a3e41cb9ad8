import assert from 'node:assert/strict'
import { createHmac, hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { StoreUnavailableError } from '../../src/core/model/errors.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { addToken, readTokens, removeToken, tokensPath } from '../../src/app/tokens.ts'
import { EventReader } from '../../src/testing/event-reader.ts'
import { createHttpTestContext, type HttpTestContext } from '../../src/testing/http-test-context.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'

const SAME_ORIGIN = { 'sec-fetch-site': 'same-origin' }
const ENGINES = [sqliteEngine, postgresEngine]

async function logIn(ctx: HttpTestContext, token = ctx.tokens.operator, headers = {}) {
  const got = await ctx.call('POST', '/api/login', {
    headers: { ...SAME_ORIGIN, ...headers },
    body: { token },
  })
  assert.equal(got.status, 200)
  const [set] = got.headers.getSetCookie()
  return { set: set!, cookie: set!.split(';')[0]! }
}

async function statusWith(ctx: HttpTestContext, cookie: string, headers = {}): Promise<number> {
  const asked = { headers: { ...SAME_ORIGIN, ...headers, cookie } }
  return (await ctx.call('GET', '/api/session', asked)).status
}

function logOut(ctx: HttpTestContext, cookie: string) {
  return ctx.call('POST', '/api/logout', { headers: { ...SAME_ORIGIN, cookie } })
}

/** Another server on the database of the first, with the same tokens and a connection of its own. */
async function startSecondServer(first: HttpTestContext) {
  const store = await openStore(first.database.url)
  const tokens = tokensPath(first.folder)
  const ctx = await createHttpTestContext({ app: { open: async () => store }, tokensPath: tokens })
  return {
    ...ctx,
    async [Symbol.asyncDispose]() {
      await ctx[Symbol.asyncDispose]()
      await store.close()
    },
  }
}

for (const engine of ENGINES) {
  test(`S39 logging out ends the session on the server, on every server of the database, ${engine.name}`, async () => {
    await using one = await createHttpTestContext({ engine })
    await using other = await startSecondServer(one)
    const { cookie } = await logIn(one)
    const kept = await logIn(one)
    // The name of a cookie has the port of its server; what it holds counts on both.
    const there = (text: string) => text.replace(new URL(one.url).port, new URL(other.url).port)
    assert.equal(await statusWith(one, cookie), 200)
    assert.equal(await statusWith(other, there(cookie)), 200)
    const url = `${one.url}/api/events?topics=overview`
    await using tab = await EventReader.open(url, { ...SAME_ORIGIN, cookie })
    await tab.next('overview')

    const out = await logOut(other, there(cookie))

    assert.equal(out.status, 200)
    assert.match(
      out.headers.getSetCookie()[0]!,
      /=; Path=\/; Max-Age=0; HttpOnly; SameSite=Strict$/,
    )
    assert.equal(await statusWith(one, cookie), 401)
    assert.equal(await statusWith(other, there(cookie)), 401)
    assert.equal(await statusWith(one, kept.cookie), 200)
    await tab.end(5_000)
    assert.equal((await logOut(one, cookie)).status, 200)
  })

  test(`S39 the stored data is not enough to create a session, ${engine.name}`, async () => {
    await using ctx = await createHttpTestContext({ engine })
    const { cookie } = await logIn(ctx)
    const [name, secret] = cookie.split('=') as [string, string]
    assert.equal(Buffer.from(secret, 'base64url').length, 32)
    const rows = await ctx.database.raw(`SELECT * FROM ${ctx.database.table('http_session')}`)
    assert.equal(rows.length, 1)
    assert.equal(rows[0]!['id'], hash('sha256', secret))
    const stored = JSON.stringify(rows) + readFileSync(tokensPath(ctx.folder), 'utf8')
    assert.ok(!stored.includes(secret))
    const [token] = readTokens(tokensPath(ctx.folder)).filter(({ role }) => role === 'operator')
    // As sessions were once made of a token's hash.
    const said = `${Buffer.from(token!.name).toString('base64url')}.${2 ** 32}`
    const key = Buffer.from(token!.hash, 'hex')
    const sealed = `${said}.${createHmac('sha256', key).update(said).digest('base64url')}`
    const made = [
      sealed,
      token!.hash,
      ...Object.values(rows[0]!).map(String),
      '',
      'x',
      `${secret}x`,
    ]
    const encoded = made.map((text) => Buffer.from(text, 'hex').toString('base64url'))
    for (const value of [...made, ...encoded]) {
      assert.equal(await statusWith(ctx, `${name}=${value}`), 401, value)
    }
    assert.equal(await statusWith(ctx, cookie), 200)
  })
}

test('S39 a session ends with its token, and another token of the same name does not revive it', async () => {
  await using ctx = await createHttpTestContext()
  const path = tokensPath(ctx.folder)
  const { cookie } = await logIn(ctx)
  removeToken(path, 'the-operator')
  assert.equal(await statusWith(ctx, cookie), 401)
  addToken(path, 'the-operator', 'admin')
  assert.equal(await statusWith(ctx, cookie), 401)
})

test('S39 a session is over after a day, and logging in again ends the one before', async () => {
  await using ctx = await createHttpTestContext()
  const { cookie, set } = await logIn(ctx)
  assert.match(set, /; Max-Age=86400; /)
  const again = await logIn(ctx, ctx.tokens.operator, { cookie })
  assert.equal(await statusWith(ctx, cookie), 401)
  assert.equal(await statusWith(ctx, again.cookie), 200)
  await ctx.database.advanceClock(86_400_000)
  assert.equal(await statusWith(ctx, again.cookie), 401)
})

test('S39 one token makes no more than 60 sessions a minute', async () => {
  await using ctx = await createHttpTestContext()
  const codes: number[] = []
  for (let n = 0; n < 62; n++) {
    const asked = { headers: SAME_ORIGIN, body: { token: ctx.tokens.viewer } }
    codes.push((await ctx.call('POST', '/api/login', asked)).status)
  }
  assert.equal(codes.indexOf(429), 60)
})

test('S39 a read-only server keeps sessions in its memory and writes none', async () => {
  await using ctx = await createHttpTestContext({ auth: { readOnly: true } })
  const { cookie } = await logIn(ctx)
  assert.equal(await statusWith(ctx, cookie), 200)
  assert.deepEqual(await ctx.database.raw('SELECT * FROM http_session'), [])
  assert.equal((await logOut(ctx, cookie)).status, 200)
  assert.equal(await statusWith(ctx, cookie), 401)
})

test('S39 while the database is unreachable a session is neither lost nor accepted; its stream stays until its token is removed', async () => {
  await using real = await createHttpTestContext()
  let isAway = false
  const store = new Proxy(real.store, {
    get: (target, name: keyof Store) =>
      typeof target[name] === 'function' && isAway
        ? () => Promise.reject(new StoreUnavailableError('The database does not answer.'))
        : target[name],
  })
  await using ctx = await createHttpTestContext({ app: { open: async () => store } })
  const { cookie } = await logIn(ctx, ctx.tokens.operator)
  await using tab = await EventReader.open(`${ctx.url}/api/events?topics=overview`, {
    ...SAME_ORIGIN,
    cookie,
  })
  await tab.next('overview')
  isAway = true
  await tab.next('trouble')
  assert.equal(await statusWith(ctx, cookie), 503)
  assert.equal((await logOut(ctx, cookie)).status, 503)
  isAway = false
  await tab.next('back')
  assert.equal(await statusWith(ctx, cookie), 200)
  isAway = true
  removeToken(tokensPath(ctx.folder), 'the-operator')
  await tab.end(5_000)
})

test('S39 cookies of two servers on one host do not mix: each has its port and its path', async () => {
  await using root = await createHttpTestContext({ auth: { trustProxy: true } })
  await using below = await createHttpTestContext({
    auth: { trustProxy: true },
    app: { basePath: '/ops/unstuck' },
  })
  const plain = (await logIn(root)).set
  const { port } = new URL(root.url)
  assert.match(
    plain,
    new RegExp(`^unstuck-${port}=[\\w-]{43}; Path=/; Max-Age=86400; HttpOnly; SameSite=Strict$`),
  )
  // Behind a proxy the port is the one that the browser sees.
  const https = { 'x-forwarded-proto': 'https' }
  const at = (host: string) => ({ ...https, 'x-forwarded-host': host })
  const secure =
    /^__Host-unstuck-443=[\w-]{43}; Path=\/; Max-Age=86400; HttpOnly; SameSite=Strict; Secure$/
  assert.match((await logIn(root, undefined, at('ops.example.com'))).set, secure)
  const other = await logIn(root, undefined, at('ops.example.com:8443'))
  assert.match(other.set, /^__Host-unstuck-8443=/)
  assert.equal(await statusWith(root, other.cookie, at('ops.example.com:8443')), 200)
  assert.equal(await statusWith(root, other.cookie, at('ops.example.com')), 401)
  assert.equal(await statusWith(root, other.cookie), 401)
  const { headers } = await below.call('POST', '/ops/unstuck/api/login', {
    headers: { ...SAME_ORIGIN, ...at('ops.example.com') },
    body: { token: below.tokens.operator },
  })
  assert.match(
    headers.getSetCookie()[0]!,
    /^unstuck-443=[\w-]{43}; Path=\/ops\/unstuck; Max-Age=86400; HttpOnly; SameSite=Strict; Secure$/,
  )
})
