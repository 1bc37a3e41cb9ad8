import assert from 'node:assert/strict'
import { createHmac, hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { StoreUnavailable } from '../../src/core/model/errors.ts'
import { openStore } from '../../src/core/store/open.ts'
import type { Store } from '../../src/core/store/store.ts'
import { addToken, readTokens, removeToken, tokensPath } from '../../src/interfaces/http/tokens.ts'
import { EventReader } from '../../src/testing/event-reader.ts'
import { httpStage, type HttpStage } from '../../src/testing/http-context.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'

const OWN = { 'sec-fetch-site': 'same-origin' }
const ENGINES = [sqliteEngine, postgresEngine]

async function logIn(stage: HttpStage, token = stage.tokens.operator, headers = {}) {
  const got = await stage.call('POST', '/api/login', {
    headers: { ...OWN, ...headers },
    body: { token },
  })
  assert.equal(got.status, 200)
  const [set] = got.headers.getSetCookie()
  return { set: set!, cookie: set!.split(';')[0]! }
}

async function statusWith(stage: HttpStage, cookie: string, headers = {}): Promise<number> {
  const asked = { headers: { ...OWN, ...headers, cookie } }
  return (await stage.call('GET', '/api/session', asked)).status
}

function logOut(stage: HttpStage, cookie: string) {
  return stage.call('POST', '/api/logout', { headers: { ...OWN, cookie } })
}

/** Another server on the database of the first, with the same tokens and a connection of its own. */
async function beside(first: HttpStage) {
  const store = await openStore(first.database.url)
  const tokens = tokensPath(first.folder)
  const stage = await httpStage({ app: { open: async () => store }, tokensAt: tokens })
  return {
    ...stage,
    async [Symbol.asyncDispose]() {
      await stage[Symbol.asyncDispose]()
      await store.close()
    },
  }
}

for (const engine of ENGINES) {
  test(`S39 logging out ends the session on the server, on every server of the database, ${engine.name}`, async () => {
    await using one = await httpStage({ engine })
    await using other = await beside(one)
    const { cookie } = await logIn(one)
    const kept = await logIn(one)
    // The name of a cookie has the port of its server; what it holds counts on both.
    const there = (text: string) => text.replace(new URL(one.url).port, new URL(other.url).port)
    assert.equal(await statusWith(one, cookie), 200)
    assert.equal(await statusWith(other, there(cookie)), 200)
    const url = `${one.url}/api/events?topics=overview`
    await using tab = await EventReader.open(url, { ...OWN, cookie })
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

  test(`S39 what is stored is not enough to make a session, ${engine.name}`, async () => {
    await using stage = await httpStage({ engine })
    const { cookie } = await logIn(stage)
    const [name, secret] = cookie.split('=') as [string, string]
    assert.equal(Buffer.from(secret, 'base64url').length, 32)
    const rows = await stage.database.raw(`SELECT * FROM ${stage.database.table('http_session')}`)
    assert.equal(rows.length, 1)
    assert.equal(rows[0]!['id'], hash('sha256', secret))
    const stored = JSON.stringify(rows) + readFileSync(tokensPath(stage.folder), 'utf8')
    assert.ok(!stored.includes(secret))
    const [token] = readTokens(tokensPath(stage.folder)).filter(({ role }) => role === 'operator')
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
      assert.equal(await statusWith(stage, `${name}=${value}`), 401, value)
    }
    assert.equal(await statusWith(stage, cookie), 200)
  })
}

test('S39 a session ends with its token, and another token of the same name does not revive it', async () => {
  await using stage = await httpStage()
  const path = tokensPath(stage.folder)
  const { cookie } = await logIn(stage)
  removeToken(path, 'the-operator')
  assert.equal(await statusWith(stage, cookie), 401)
  addToken(path, 'the-operator', 'admin')
  assert.equal(await statusWith(stage, cookie), 401)
})

test('S39 a session is over after a day, and logging in again ends the one before', async () => {
  await using stage = await httpStage()
  const { cookie, set } = await logIn(stage)
  assert.match(set, /; Max-Age=86400; /)
  const again = await logIn(stage, stage.tokens.operator, { cookie })
  assert.equal(await statusWith(stage, cookie), 401)
  assert.equal(await statusWith(stage, again.cookie), 200)
  await stage.database.later(86_400_000)
  assert.equal(await statusWith(stage, again.cookie), 401)
})

test('S39 one token makes no more than 60 sessions a minute', async () => {
  await using stage = await httpStage()
  const codes: number[] = []
  for (let n = 0; n < 62; n++) {
    const asked = { headers: OWN, body: { token: stage.tokens.viewer } }
    codes.push((await stage.call('POST', '/api/login', asked)).status)
  }
  assert.equal(codes.indexOf(429), 60)
})

test('S39 a read-only server keeps sessions in its memory and writes none', async () => {
  await using stage = await httpStage({ gate: { readOnly: true } })
  const { cookie } = await logIn(stage)
  assert.equal(await statusWith(stage, cookie), 200)
  assert.deepEqual(await stage.database.raw('SELECT * FROM http_session'), [])
  assert.equal((await logOut(stage, cookie)).status, 200)
  assert.equal(await statusWith(stage, cookie), 401)
})

test('S39 while the database is away a session is neither lost nor open; its stream stays until its token goes', async () => {
  await using real = await httpStage()
  let isAway = false
  const store = new Proxy(real.store, {
    get: (target, name: keyof Store) =>
      typeof target[name] === 'function' && isAway
        ? () => Promise.reject(new StoreUnavailable('The database does not answer.'))
        : target[name],
  })
  await using stage = await httpStage({ app: { open: async () => store } })
  const { cookie } = await logIn(stage, stage.tokens.operator)
  await using tab = await EventReader.open(`${stage.url}/api/events?topics=overview`, {
    ...OWN,
    cookie,
  })
  await tab.next('overview')
  isAway = true
  await tab.next('trouble')
  assert.equal(await statusWith(stage, cookie), 503)
  assert.equal((await logOut(stage, cookie)).status, 503)
  isAway = false
  await tab.next('back')
  assert.equal(await statusWith(stage, cookie), 200)
  isAway = true
  removeToken(tokensPath(stage.folder), 'the-operator')
  await tab.end(5_000)
})

test('S39 cookies of two servers on one host do not mix: each has its port and its path', async () => {
  await using root = await httpStage({ gate: { trustProxy: true } })
  await using below = await httpStage({
    gate: { trustProxy: true },
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
    headers: { ...OWN, ...at('ops.example.com') },
    body: { token: below.tokens.operator },
  })
  assert.match(
    headers.getSetCookie()[0]!,
    /^unstuck-443=[\w-]{43}; Path=\/ops\/unstuck; Max-Age=86400; HttpOnly; SameSite=Strict; Secure$/,
  )
})
