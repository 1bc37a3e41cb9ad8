import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { AdoptedOptions } from '../../src/features/adopted/mapping.ts'
import { withStorages } from '../../src/features/crawlee/store/store.ts'
import { newId } from '../../src/core/model/id.ts'
import { DEFAULT_POLICY } from '../../src/core/model/policy.ts'
import { makeCheckpoint } from '../../src/core/worker/page.ts'
import { claimOne, registerWorker } from '../../src/testing/fixtures.ts'
import { noChromium } from '../../src/testing/chromium.ts'
import { HOSTILE_TEXTS } from '../../src/testing/hostile-text.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import type { UserTable } from '../../src/testing/user-tables.ts'
import {
  minutesAgo,
  createAdoptedTestContext,
  type AdoptedTestContext,
} from '../adopted/test-context.ts'
import { BrowserSession } from './browser.ts'
import { assertHarmless } from './assert-harmless.ts'

const OPTIONS: AdoptedOptions = {
  table: 'jobs',
  columns: {
    id: 'id',
    source: 'site',
    status: 'state',
    owner: 'host',
    heartbeatAt: 'beat',
    error: 'why',
  },
  statuses: { active: 'busy', failed: 'broken' },
}

const jobs: UserTable = {
  sql: { sqlite: 'jobs', postgres: 'jobs' },
  ddl: {
    sqlite: `CREATE TABLE jobs (id TEXT PRIMARY KEY, site TEXT, state TEXT, host TEXT, beat TEXT, why TEXT)`,
    postgres: '',
  },
  options: { sqlite: OPTIONS, postgres: OPTIONS },
  sqliteTime: (at) => at.toISOString(),
}

describe('rows of users’ own tables, and crawls of Crawlee’s', { skip: noChromium }, () => {
  let session: BrowserSession
  before(async () => {
    session = await BrowserSession.start()
  })
  after(() => session?.[Symbol.asyncDispose]())

  const serve = (ctx: AdoptedTestContext) =>
    createHttpTestContext({ tokens: false, app: { open: async () => ctx.store } })

  test('S9 untrusted text in a row stays text, on every page', async () => {
    await using ctx = await createAdoptedTestContext(sqliteEngine, {
      jobs: {
        table: jobs,
        rows: HOSTILE_TEXTS.map((text, n) => ({
          id: `${n} ${text}`,
          site: text,
          state: n % 3 === 0 ? text : 'busy',
          host: text,
          beat: minutesAgo(n % 2 === 0 ? 0 : 30),
          why: text,
        })),
      },
    })
    await using http = await serve(ctx)
    await using tab = await session.open(http.url, { policy: 'told' })
    const { items } = await ctx.store.runs({ limit: 200 })
    assert.equal(items.length, HOSTILE_TEXTS.length)
    const some = items.filter((_, n) => n % 12 === 0).map(({ id }) => `/runs/${id}`)
    for (const path of ['/', '/runs', '/workers', '/recovery', '/history', ...some]) {
      await tab.go(path)
      await assertHarmless(tab, path)
    }
  })

  test('a dead row is failed by the button, and restored by the undo', async () => {
    await using ctx = await createAdoptedTestContext(sqliteEngine, {
      jobs: {
        table: jobs,
        rows: [{ id: '7', site: 'ted', state: 'busy', host: 'vm-1', beat: minutesAgo(30) }],
      },
    })
    const before = await ctx.rows('jobs')
    await using http = await serve(ctx)
    await using tab = await session.open(http.url)
    await tab.go('/')
    await tab.page.getByText('row 7 of jobs').first().waitFor()
    await tab.page.getByRole('button', { name: 'Recover' }).click()
    const dialog = tab.page.getByRole('dialog')
    await dialog.getByRole('button', { name: /^Recover/ }).click()
    await dialog.getByText('1 verdict applied.').waitFor()
    assert.equal((await ctx.rows('jobs'))[0]!['state'], 'broken')

    await dialog.getByRole('button', { name: 'Revert' }).click()
    await dialog.getByText('Reverted.').waitFor()
    assert.deepEqual(await ctx.rows('jobs'), before)

    await tab.go('/history')
    await tab.page.getByRole('link', { name: 'run jobs:7' }).first().waitFor()
    const [run] = (await ctx.store.runs({ limit: 1 })).items
    await tab.go('/runs/jobs:7')
    await tab.page.waitForURL(`**/runs/${run!.id}`)
    await tab.page.getByText('row 7 of jobs').first().waitFor()
  })

  test('a crawl of Crawlee’s shows how far it is, and its items', async () => {
    await using http = await createHttpTestContext({ tokens: false })
    const id = newId()
    const store = await withStorages(http.store)
    const queue = { id, source: 'crawlee/shop', kind: 'crawl', policy: DEFAULT_POLICY } as const
    await store.enqueue({ ...queue, profile: 'requests' })
    await store.plan(
      id,
      ['/', '/a', '/b'].map((key) => ({ key, url: `http://shop.example${key}` })),
    )
    await store.finishPlanning(id)
    const worker = await registerWorker(store, { source: 'crawlee/shop' })
    const claimed = await claimOne(store, worker, { source: 'crawlee/shop' })
    const { id: dataset } = await store.makeStorage('dataset', 'default')
    const page = makeCheckpoint(claimed, claimed, { page: 1, next: null, done: true })
    await store.checkpoint(
      [page],
      store.appending(id, [{ dataset, key: null, data: '{"n":"found"}' }]),
    )
    await using tab = await session.open(http.url)
    await tab.go(`/runs/${id}`)
    await tab.page.getByRole('heading', { name: 'crawlee/shop' }).waitFor()
    await tab.page.getByText('1 / 3').first().waitFor()
    await tab.page.getByRole('region', { name: 'Saved items' }).getByText('found').waitFor()
    assert.equal(await tab.page.getByRole('heading', { name: 'Log' }).count(), 0)
  })
})
