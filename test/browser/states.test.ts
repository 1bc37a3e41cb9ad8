import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { withAdoptedTables } from '../../src/features/adopted/store-wrapper.ts'
import { loadSettings } from '../../src/app/config.ts'
import { ADOPTED_SECTION } from '../../src/features/adopted/config.ts'
import { noChromium } from '../../src/testing/chromium.ts'
import { openStore } from '../../src/core/store/open.ts'
import { claim, enqueueCrawl, registerWorker } from '../../src/testing/fixtures.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { TcpProxy } from '../../src/testing/tcp-proxy.ts'
import { createUserProject } from '../../src/testing/user-project.ts'
import { BrowserSession } from './browser.ts'

describe('the dashboard when not all is well', { skip: noChromium }, () => {
  let session: BrowserSession
  before(async () => {
    session = await BrowserSession.start()
  })
  after(() => session?.[Symbol.asyncDispose]())

  test('where nothing ever ran it shows the first steps, and the first run by itself', async () => {
    await using ctx = await createHttpTestContext({ tokens: false })
    await using tab = await session.open(ctx.url)
    const { page } = tab
    await tab.go('/')
    await page.getByRole('heading', { name: 'Nothing has run yet.' }).waitFor()
    await page.getByText('unstuck demo').waitFor()
    await enqueueCrawl(ctx.store, 3)
    await page.getByRole('link', { name: 'shop' }).waitFor()
    await page.getByText('0 / 3').waitFor()
    assert.deepEqual(tab.errors, [])
  })

  test('a failure is acknowledged: no page counts it any more, until that is undone', async () => {
    await using ctx = await createHttpTestContext({ tokens: false })
    const run = await enqueueCrawl(ctx.store, 2)
    const worker = await registerWorker(ctx.store)
    const claimed = await claim(ctx.store, worker, 2)
    await ctx.store.fail(claimed.map((one) => ({ ...one, error: 'HTTP 403', becomes: 'failed' })))
    await ctx.store.settle(run)
    await ctx.store.retireWorker(worker)
    await using tab = await session.open(ctx.url)
    const { page } = tab
    await tab.go('/dead-letters')
    await page.getByText('2 targets with 1 kind of error.').waitFor()
    await page.locator('.letter-head').getByRole('button', { name: 'Acknowledge' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('2 targets of run').waitFor()
    await dialog.getByRole('button', { name: /^Acknowledge/ }).click()
    await dialog
      .getByText('2 targets of run', { exact: false })
      .getByText('are acknowledged')
      .waitFor()
    const undo = dialog.getByRole('button', { name: 'Undo' })
    await undo.waitFor()
    await page.getByText('No target needs attention.').waitFor()
    await undo.click()
    await page.getByText('2 targets with 1 kind of error.').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()

    await tab.go(`/runs/${run}`)
    await page.getByRole('button', { name: 'Acknowledge' }).first().click()
    await dialog.getByRole('button', { name: /^Acknowledge/ }).click()
    await dialog.getByText('is acknowledged').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('button', { name: 'Undo acknowledge' }).first().waitFor()
    await tab.go('/')
    await page.getByText('Nothing is stuck').waitFor()
    await tab.go('/dead-letters?acknowledged=true')
    await page.getByText('2 targets with 1 kind of error.').waitFor()
    assert.deepEqual(tab.errors, [])
  })

  test('it shows that it is loading, and then the data', async () => {
    await using ctx = await createHttpTestContext({ tokens: false })
    await enqueueCrawl(ctx.store, 3)
    await using tab = await session.open(ctx.url)
    const { page } = tab
    const held = Promise.withResolvers<void>()
    await page.route('**/api/runs', async (route) => {
      await held.promise
      await route.continue()
    })
    await page.goto('/runs')
    await page.getByRole('status').getByText('Loading').waitFor()
    held.resolve()
    await page.getByRole('link', { name: 'shop' }).waitFor()
  })

  test('an adopted row shows its table, is recovered with a preview, and reverted', async () => {
    using project = await createUserProject()
    const settings = await loadSettings(project.folder)
    const address = project.own
    const store = await withAdoptedTables(
      await openStore(address),
      settings.section(ADOPTED_SECTION),
      { address },
    )
    const open = async () => store
    await using ctx = await createHttpTestContext({
      tokens: false,
      app: { open, settings: async () => settings },
    })
    await using tab = await session.open(ctx.url)
    const { page } = tab
    const before = await project.tenders()
    await tab.go('/runs')
    await page.getByText('row 2 of tenders').waitFor()
    await page.getByRole('row').filter({ hasText: 'row 1 of tenders' }).getByRole('link').click()
    await page.getByText('no known owner', { exact: true }).waitFor()

    await tab.go('/recovery')
    await page.getByRole('button', { name: 'Recover' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 verdict would be applied.').waitFor()
    assert.deepEqual(await project.tenders(), before, 'a preview changes nothing')
    await dialog.getByRole('button', { name: 'Recover' }).click()
    await dialog.getByText('1 verdict applied.').waitFor()
    assert.equal((await project.tenders())[0]!['status'], 'failed')
    await dialog.getByRole('button', { name: 'Revert' }).click()
    await dialog.getByText('Reverted.').waitFor()
    assert.deepEqual(await project.tenders(), before)

    await tab.go('/runs?status=succeeded')
    await page.getByRole('link', { name: 'portal-a' }).click()
    await page.getByRole('button', { name: 'Copy the whole id' }).waitFor()
    assert.equal(
      await page.getByRole('button', { name: /Retry|Plan|Acknowledge|Delete/ }).count(),
      0,
    )
    assert.deepEqual(tab.errors, [])
    await store.close()
  })

  test('a failed call shows its error and can be retried; an unknown page shows that it does not exist', async () => {
    await using ctx = await createHttpTestContext({ tokens: false })
    await enqueueCrawl(ctx.store, 3)
    await using tab = await session.open(ctx.url)
    const { page } = tab
    const error = { code: 'INTERNAL', message: 'Something went wrong inside. Its number is 42.' }
    await page.route('**/api/runs', (route) => route.fulfill({ status: 500, json: { error } }))
    await page.goto('/runs')
    await page.getByRole('alert').getByText('Its number is 42').waitFor()
    await page.unrouteAll()
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('link', { name: 'shop' }).waitFor()

    await tab.go('/runs/0a1b2c3d')
    await page.getByText('There is no run 0a1b2c3d').waitFor()
    await tab.go('/targets/0a1b2c3d')
    await page.getByText('There is no target 0a1b2c3d').waitFor()
  })

  test('while the database is unreachable it shows since when, keeps the last data, and recovers by itself', async () => {
    await using database = await postgresEngine.fresh()
    await enqueueCrawl(await database.open(), 3)
    const proxy = await TcpProxy.start(database.url)
    const store = await openStore(proxy.address, { connections: 4 })
    await using _closed = {
      async [Symbol.asyncDispose]() {
        await store.close()
        proxy.close()
      },
    }
    await using ctx = await createHttpTestContext({
      tokens: false,
      app: { open: async () => store },
    })
    await using tab = await session.open(ctx.url)
    const { page } = tab
    await tab.go('/')
    await page.getByText('0 / 3').waitFor()
    const stale = page.locator('main[data-stale]')
    assert.equal(await stale.count(), 0)

    proxy.close()
    await page.getByText('The database does not answer.').waitFor()
    await page.getByText(/It stopped .* This is how things stood .* ago\./).waitFor()
    await stale.getByText('0 / 3').waitFor()
    await page.getByRole('button', { name: /^No data/ }).waitFor()

    await proxy.open()
    await page.getByText('The database does not answer.').waitFor({ state: 'detached' })
    assert.equal(await stale.count(), 0)
    await enqueueCrawl(await database.open(), 5, { source: 'another' })
    await page.getByText('0 / 5').waitFor()
  })

  test('a lost connection is shown, with the last data', async () => {
    await using ctx = await createHttpTestContext({ tokens: false })
    await enqueueCrawl(ctx.store, 3)
    await using tab = await session.open(ctx.url)
    const { page } = tab
    await tab.go('/')
    await page.getByText('0 / 3').waitFor()
    await ctx.server.stop()
    await page.getByText('No connection to the server.').waitFor()
    await page.locator('main[data-stale]').getByText('0 / 3').waitFor()
  })

  test('a paused page does not change until it is resumed', async () => {
    await using ctx = await createHttpTestContext({ tokens: false })
    await enqueueCrawl(ctx.store, 3)
    await using tab = await session.open(ctx.url)
    const { page } = tab
    await tab.go('/')
    await page.getByRole('button', { name: /^Live/ }).click()
    await page.getByText('This is how things stood').waitFor()
    const calls = tab.calls.filter((call) => call.includes('/api/events')).length
    await enqueueCrawl(ctx.store, 5, { source: 'another' })
    // It would be told within a second.
    await sleep(1_500)
    assert.equal(await page.getByText('0 / 5').count(), 0)
    await page.getByRole('button', { name: 'Go on', exact: true }).click()
    await page.getByText('0 / 5').waitFor()
    assert.equal(tab.calls.filter((call) => call.includes('/api/events')).length, calls + 1)
  })
})
