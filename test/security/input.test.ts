import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fingerprintOf, errorKind } from '../../src/presenters/fingerprint.ts'
import { newId } from '../../src/core/model/id.ts'
import { canonicalUrl } from '../../src/core/model/url.ts'
import { parseDuration } from '../../src/core/model/time.ts'
import { sourceMistake } from '../../src/lib/validate/source.ts'
import { redact, redactor } from '../../src/core/model/redact.ts'
import { safeText } from '../../src/lib/text/safe-text.ts'
import { containing } from '../../src/core/store/like.ts'
import type { Store } from '../../src/core/store/store.ts'
import { csvLine } from '../../src/lib/text/csv.ts'
import { loadSections, makeSettings, readSettings } from '../../src/app/config.ts'
import { createApp, type App } from '../../src/interfaces/http/app.ts'
import type { AuthOptions } from '../../src/interfaces/http/auth.ts'
import { makeHostCheck } from '../../src/lib/http/host-check.ts'
import { readSessionCookie } from '../../src/interfaces/http/sessions.ts'
import { isJsonType } from '../../src/lib/http/body.ts'
import { claimOne, registerWorker, enqueueCrawl } from '../../src/testing/fixtures.ts'
import { cpuMs } from '../../src/testing/cpu-time.ts'
import { HOSTILE_TEXTS } from '../../src/testing/hostile-text.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { tenderRuns, ypTargets } from '../../src/testing/user-tables.ts'
import { createAdoptedTestContext } from '../adopted/test-context.ts'
import { MUTATION_ROUTES, READ_ROUTES, nameOf, parametersOf, pathOf } from './route-walk.ts'

/** Bits that mean something to SQL, LIKE, paths, URLs, numbers, dates or JavaScript, and some that are no text at all. */
const TEXT_FRAGMENTS = Array.from(
  '\'"`;\\%_-()*?$:.,/{}[]<>|&=+~^#@! 0123456789abcdefxyzé漢\u{1f600}\u202e\0\r\n',
).concat(
  ['--', '/*', "'||'", '$1', 'NULL', 'NaN', 'Infinity', '1e309', '-1', '9'.repeat(30), '../'],
  ['__proto__', 'constructor', '\ufffe', ' OR 1=1', 'live', '24h', '9999999999d', '0s'],
  ['99999999999999999s', '00000000', '{"a":1}', '[]', 'true', 'group'],
)
/** As they come over the wire, because no text can hold them. */
const ENCODED_BYTES = ['%00', '%ff%fe', '%ed%a0%80', '%c0%af', '%', '%zz', '%2e%2e%2f', '%u0000']

function* strings(count: number, seed: number): Generator<string> {
  let state = seed
  const next = (below: number): number => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return (state >> 8) % below
  }
  for (let n = 0; n < count; n++) {
    if (n < HOSTILE_TEXTS.length) yield encodeURIComponent(HOSTILE_TEXTS[n]!)
    else if (n % 10 === 0)
      yield Array.from({ length: 3 }, () => ENCODED_BYTES[next(ENCODED_BYTES.length)]).join('')
    else {
      const bits = Array.from(
        { length: 1 + next(8) },
        () => TEXT_FRAGMENTS[next(TEXT_FRAGMENTS.length)],
      )
      yield encodeURIComponent(bits.join(''))
    }
  }
}

/** On a busy machine it would fall silent meanwhile, and each look at recovery would first listen for it. */
const LONG_LEASE = { leaseMs: 3_600_000 }

/** Without a network. Each call comes from another address, so that no rate limit applies. */
function openApp(store: Store, folder: string, log: string[]): App {
  const gate: AuthOptions = {
    tokens: null,
    access: () => ({ name: newId(), role: 'admin' }),
    isPrivate: false,
    isKnownHost: null,
    trustProxy: false,
    readOnly: false,
    path: '/',
  }
  const settings = async () => makeSettings({}, null)
  const open = async () => store
  const dataFolder = async () => folder
  return createApp({ auth: gate, open, settings, dataFolder, log: (line) => log.push(line) })
}

/** Two tables of a user's own beside it: their statements are put together when they are asked for. */
const TABLES = {
  courses: { table: tenderRuns, rows: [{ portal_name: 'p', status: 'running' }] },
  yp: { table: ypTargets, rows: [{ id: 1, slug: 'a', state: 'CA', status: 'IN_PROGRESS' }] },
}

/** At least so many that each hostile text is among them. */
const FEW = HOSTILE_TEXTS.length

for (const [engine, tables, count] of [
  [sqliteEngine, {}, isLong ? 500 : 2 * FEW],
  [postgresEngine, {}, isLong ? 100 : FEW],
  [sqliteEngine, TABLES, isLong ? 100 : FEW],
  [postgresEngine, TABLES, FEW],
] as const) {
  const where = engine.name + (tables === TABLES ? ", users' own tables beside" : '')
  test(`S12 no parameter of any call changes or breaks a statement, ${where}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, tables)
    using folder = temporaryFolder()
    const { store } = ctx
    const run = await enqueueCrawl(store, 2)
    const { target } = await claimOne(store, await registerWorker(store, LONG_LEASE))
    const log: string[] = []
    const app = openApp(store, folder.path, log)
    const seed = Date.now() & 0xffffff
    let asked = 0
    const look = async (address: string): Promise<void> => {
      const response = await app.fetch(new Request(`http://unstuck.invalid${address}`))
      const isStream = response.headers.get('content-type')?.startsWith('text/event-stream')
      const said = isStream ? '' : await response.text()
      if (isStream) await response.body!.cancel()
      asked++
      assert.ok(response.status < 500, `${address} (seed ${seed}): ${said} ${log.join('\n')}`)
      assert.doesNotMatch(response.ok ? '' : said, /sqlite|syntax|byte sequence|relation|\.ts:/i)
    }
    for (const route of READ_ROUTES) {
      const { path, query } = parametersOf(route)
      const about = { run, target, source: 'shop' }
      for (const text of strings(count, seed)) {
        await Promise.all([
          ...path.map((name) => look(pathOf(route, { ...about, [name]: text }))),
          ...query.map((name) => look(`${pathOf(route, about)}?${name}=${text}`)),
        ])
      }
    }
    app.close()
    assert.ok(asked > count * 30, `${asked}`)
    assert.deepEqual(log, [])
    assert.equal((await store.run(run))?.status, 'running')
    assert.deepEqual(store.unreadable, [])
  })
}

test('S12 nor does any request body, on the stricter database', async () => {
  await using database = await postgresEngine.fresh()
  using folder = temporaryFolder()
  const store = await database.open()
  const run = await enqueueCrawl(store, 2)
  const { target } = await claimOne(store, await registerWorker(store, LONG_LEASE))
  const log: string[] = []
  const app = openApp(store, folder.path, log)
  const ask = async (route: (typeof MUTATION_ROUTES)[number], body: object): Promise<void> => {
    const address = `http://unstuck.invalid${pathOf(route, { run, target })}`
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    const request = new Request(address, {
      method: route.method,
      headers,
      body: JSON.stringify(body),
    })
    const response = await app.fetch(request)
    const said = await response.text()
    assert.ok(response.status < 500, `${nameOf(route)} ${JSON.stringify(body)} ${said} ${log[0]}`)
  }
  const texts = ['\0', 'half \ud800', "'; DROP TABLE run; --", '../..', '9'.repeat(40)]
  for (const route of MUTATION_ROUTES) {
    const names = Object.keys((route.body as { entries?: object } | undefined)?.entries ?? {})
    const sound = Object.entries({ source: 'other', to: 0, count: 0, targets: [target] })
    const body = Object.fromEntries(sound.filter(([name]) => names.includes(name)))
    for (const name of names.filter((one) => one !== 'dryRun')) {
      for (const value of texts.flatMap((text) => [text, [text], { [text]: text }])) {
        await ask(route, { ...body, [name]: value })
      }
    }
  }
  app.close()
  assert.deepEqual(log, [])
})

test('S19 requests are bounded: pages, times, lists, depth, length', async () => {
  await using ctx = await createHttpTestContext()
  const as = 'admin'
  const run = await enqueueCrawl(ctx.store, 1)
  for (const route of READ_ROUTES) {
    const { query } = parametersOf(route)
    const at = pathOf(route, { run, source: 'shop' })
    const wrong = [
      ...(query.includes('limit') ? ['limit=1e9', 'limit=0', 'limit=-1'] : []),
      // An export is a stream: its length needs no bound.
      ...(query.includes('limit') && !query.includes('format') ? ['limit=501'] : []),
      ...['since', 'age', 'older', 'timeout']
        .filter((name) => query.includes(name))
        .flatMap((name) => [`${name}=1e9d`, `${name}=999999d`, `${name}=${'9'.repeat(30)}d`]),
      ...(query.includes('after') ? [`after=${'x'.repeat(4_001)}`] : []),
      ...(query.includes('q') ? [`q=${'x'.repeat(201)}`] : []),
      ...(query.includes('status') ? [Array(51).fill('status=failed').join('&')] : []),
      'x'.repeat(8_000),
    ]
    for (const search of wrong) {
      const { status } = await ctx.call('GET', `${at}?${search}`, { as })
      assert.equal(status, 400, `${nameOf(route)} ${search.slice(0, 40)}`)
    }
  }
  const deep = '['.repeat(33) + ']'.repeat(33)
  const before = process.memoryUsage().rss
  for (const { method, ...route } of MUTATION_ROUTES) {
    const send = async (body: string): Promise<number> => {
      const headers = {
        authorization: `Bearer ${ctx.tokens.admin}`,
        'content-type': 'application/json',
      }
      const address = `${ctx.url}${pathOf({ method, ...route }, { run })}`
      const response = await fetch(address, { method, headers, body })
      await response.body?.cancel()
      return response.status
    }
    assert.equal(await send(`{"because":${deep}}`), 400, route.path)
    assert.equal(await send(`{"because":"${'x'.repeat(5_000_000)}"}`), 413, route.path)
  }
  assert.ok(process.memoryUsage().rss - before < 256 * 2 ** 20)
})

const LONG = 50_000

/** Made to go back and forth in: repeats of what the patterns look for, without the end that they wait for. */
const REPEATS = ['a', ' ', '0', '"', "'", '`', '“', 'a.', '://', 'a://', 'x@', '?password=', '-']
  .concat(['0x', 'http ', 'http 4', '1,', '1:', '\n', '\t', '[', '\u202e', '\x1b[', '%', '_', 'é'])
  .concat(['a:b@', 'postgres://', '"a', 'f0', '\\', ';', '=', '[::', '127.', 'localhost:', '.x'])

test('S22 every pattern runs in linear time on any text', async () => {
  const sections = await loadSections()
  const isKnown = makeHostCheck('127.0.0.1', ['ops.example.com'])
  const withSecrets = redactor(['hunter2', 'postgres://me:hunter2@db/x'])
  const patterns: Record<string, (text: string) => unknown> = {
    fingerprintOf,
    kindOf: errorKind,
    redact,
    withSecrets,
    safeText,
    containing,
    parseDuration,
    sourceMistake,
    isJsonType,
    isKnown,
    sessionIn: (text) => readSessionCookie(text, { origin: null, path: '/' }),
    url: (text) => {
      try {
        return canonicalUrl(text)
      } catch {
        return null
      }
    },
    channels: (text) => {
      try {
        const email = { smtp: text, from: text, to: [text] }
        return readSettings({ db: text, url: text, channels: { email } }, 'x', sections)
      } catch {
        return null
      }
    },
  }
  for (const [name, act] of Object.entries(patterns)) {
    for (const bit of REPEATS) {
      const text = bit.repeat(Math.ceil(LONG / bit.length)).slice(0, LONG)
      for (const one of [text, `${text}!`, `postgres://${text}`]) {
        act(one.slice(0, 100))
        // Again if it took long: it may have paid for garbage of others.
        const times: number[] = []
        do times.push(cpuMs(() => act(one)))
        while (times.at(-1)! > 50 && times.length < 3)
        assert.ok(times.at(-1)! <= 50, `${name} of ${JSON.stringify(bit)}: ${times.join(', ')}`)
      }
    }
  }
})

test('S32 no cell of a CSV file begins as a formula does, or ends where it should not', () => {
  const signs = ['=', '+', '-', '@', '\t', '\r', '\n', '＝', '＋', '－', '＠']
  const cells = [...signs.map((sign) => `${sign}HYPERLINK("x")`), ...HOSTILE_TEXTS]
  for (const cell of cells) {
    const line = csvLine([cell, 1])
    assert.doesNotMatch(line, /^"?[=+\-@＝＋－＠\t\r\n]/, JSON.stringify(cell))
    const [, quoted, bare] = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*)),1\n$/.exec(line) ?? []
    const read = quoted?.replaceAll('""', '"') ?? bare
    assert.ok(read === cell || read === `'${cell}`, JSON.stringify(line))
  }
})
