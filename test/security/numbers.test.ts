import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UsageError } from '../../src/core/model/errors.ts'
import { newId } from '../../src/core/model/id.ts'
import { open } from '../../src/interfaces/library/unstuck.ts'
import { makeSettings } from '../../src/app/config.ts'
import { createApp } from '../../src/interfaces/http/app.ts'
import type { AuthOptions } from '../../src/interfaces/http/auth.ts'
import type { Route } from '../../src/contracts/route.ts'
import { ALL_ROUTES } from '../../src/testing/all-routes.ts'
import { claimOne, registerWorker, enqueueCrawl } from '../../src/testing/fixtures.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { RunApiTestContext } from '../../src/testing/run-api-test-context.ts'
import { sqliteEngine, temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { tenderRuns, ypTargets } from '../../src/testing/user-tables.ts'
import { createAdoptedTestContext } from '../adopted/test-context.ts'
import { parametersOf, pathOf } from './route-walk.ts'

/** Around the ranges of a database's integers, and what is no number at all. */
const NUMBERS = [
  '2147483648',
  '9007199254740992',
  '9223372036854775808',
  '999999999999999',
  '-1',
].concat(['-2147483649', '1.5', '1e300', '1e309', 'NaN', '-Infinity', '0x7fffffff', ''])

const TABLES = {
  courses: { table: tenderRuns, rows: [{ portal_name: 'p', status: 'running' }] },
  yp: { table: ypTargets, rows: [{ id: 1, slug: 'a', state: 'CA', status: 'IN_PROGRESS' }] },
}

/** Places in a merged list, as a caller could make them up. */
function cursors(): string[] {
  const text = (value: unknown): string =>
    `sources.${Buffer.from(JSON.stringify(value)).toString('base64url')}`
  const keys = ['9223372036854775808', '-1', '1e300', 'NaN', 'x', newId(), 'a\0b']
  const times = [-1, 1.5, 2 ** 53, 8.64e15 + 1, -8.64e15, 1e300, -1e300]
  const places = [
    ...keys.map((key) => ({ startedAt: 1, key })),
    ...times.map((startedAt) => ({ startedAt, key: '1' })),
  ]
  return [
    ...places.map((place) => text({ own: null, tables: { courses: place, yp: place } })),
    ...['2147483648', 'x'].map((own) => text({ own, tables: {} })),
    text({ own: null, tables: { nothing: places[0] } }),
    ...NUMBERS,
  ]
}

/** Each call has a name of its own, so that no limit ends the walk. */
function openApp(options: Pick<Parameters<typeof createApp>[0], 'open' | 'dataFolder' | 'log'>) {
  const gate: AuthOptions = {
    tokens: null,
    access: () => ({ name: newId(), role: 'admin' }),
    isPrivate: false,
    isKnownHost: null,
    trustProxy: false,
    readOnly: false,
    path: '/',
  }
  return createApp({ ...options, auth: gate, settings: async () => makeSettings({}, null) })
}

/** Bodies of which one field is such a number, as JSON writes it where it can and as text, and the others are right. */
function bodiesOf({ body }: Route): string[] {
  const names = Object.keys((body as { entries?: object } | undefined)?.entries ?? {})
  const right = Object.entries({
    source: 'other',
    to: 0,
    count: 0,
    targets: [newId()],
    dryRun: true,
  })
  return names.flatMap((name) => {
    const others = right.filter(([one]) => one !== name && names.includes(one))
    const fields = others.map(([one, value]) => `"${one}":${JSON.stringify(value)}`)
    const values = NUMBERS.map((one) => (/^-?\d[\d.e]*$/.test(one) ? one : JSON.stringify(one)))
    return values.map((value) => `{${[...fields, `"${name}":${value}`].join()}}`)
  })
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`S19 no number in any call ends as an error of the database, ${engine.name}`, async () => {
    await using ctx = await createAdoptedTestContext(engine, TABLES)
    using folder = temporaryFolder()
    const { store } = ctx
    const run = await enqueueCrawl(store, 2)
    const { target } = await claimOne(store, await registerWorker(store, { leaseMs: 3_600_000 }))
    const log: string[] = []
    const app = openApp({
      open: async () => store,
      dataFolder: async () => folder.path,
      log: (line) => log.push(line),
    })
    const about = { run, target, source: 'shop' }
    const places = cursors()
    const look = async (address: string, init: RequestInit = {}): Promise<void> => {
      const response = await app.fetch(new Request(`http://unstuck.invalid${address}`, init))
      await response.body?.cancel()
      const what = `${init.method} ${address} ${JSON.stringify(init)}: ${response.status}`
      assert.ok(response.status < 500, `${what} ${log.join('\n')}`)
    }
    const headers = { 'content-type': 'application/json', 'sec-fetch-site': 'same-origin' }
    for (const route of ALL_ROUTES) {
      const { path, query } = parametersOf(route)
      const at = pathOf(route, about)
      const calls =
        route.method === 'GET'
          ? [
              ...path.flatMap((name) =>
                NUMBERS.map((one) => pathOf(route, { ...about, [name]: one || '0' })),
              ),
              ...query.flatMap((name) =>
                (name === 'after' ? places : NUMBERS).map(
                  (one) => `${at}?${name}=${encodeURIComponent(one)}`,
                ),
              ),
            ].map((address) => look(address))
          : bodiesOf(route).map((body) => look(at, { method: route.method, headers, body }))
      await Promise.all(calls)
    }
    for (const last of NUMBERS) {
      await look('/api/events?topics=trail', { headers: { 'last-event-id': last } })
    }
    app.close()
    assert.deepEqual(log, [])
    assert.equal((await store.run(run))?.status, 'running')
  })

  test(`S19 nor does one in a call of a run, ${engine.name}`, async () => {
    await using ctx = await RunApiTestContext.create(engine)
    const command = await ctx.begin()
    const fields: Record<string, Record<string, unknown>> = {
      '/checkpoint': { page: 1, skipped: 0, pageTarget: 1, cursor: 1, items: [] },
      '/progress': { done: 0, total: 1 },
    }
    for (const [path, right] of Object.entries(fields)) {
      for (const name of Object.keys(right)) {
        for (const number of NUMBERS.filter((one) => /^-?\d[\d.e]*$/.test(one))) {
          const raw = JSON.stringify({ ...right, [name]: 0 }).replace(
            `"${name}":0`,
            `"${name}":${number}`,
          )
          const { status } = await command.post(path, undefined, { raw })
          assert.ok(status < 500, `${path} ${raw}: ${status}`)
        }
      }
    }
    // Each is in range; their sum in the counters of the run is not.
    const { page } = (await command.get()).body
    for (const next of [page + 1, page + 2, page + 3]) {
      const { status } = await command.post('/checkpoint', { page: next, skipped: 2 ** 31 - 1 })
      assert.ok(status < 500, `${status}`)
    }
  })

  test(`S19 the library rejects the same numbers with a usage error, ${engine.name}`, async () => {
    await using database = await engine.fresh()
    await using unstuck = await open({ db: database.url })
    const run = await enqueueCrawl(await database.open(), 1)
    const { items } = await unstuck.targets(run, { limit: 1 })
    for (const number of [2 ** 31, 2 ** 53, 1e300, -1, 1.5, Number.NaN, Infinity]) {
      const options = { maxAttempts: number, dryRun: true }
      await assert.rejects(unstuck.resetFailed(run, options), UsageError, `maxAttempts ${number}`)
      await assert.rejects(unstuck.rewind(items[0]!.id, { to: number }), UsageError, `to ${number}`)
    }
  })
}
