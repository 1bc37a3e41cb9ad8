import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SOURCE_STORE } from '../../src/features/sources/store/store.ts'
import { noChromium } from '../../src/testing/chromium.ts'
import {
  claimOne,
  enqueueCrawl,
  enqueueSingle,
  registerWorker,
} from '../../src/testing/fixtures.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { BrowserSession } from './browser.ts'

test(
  'a source is paused from the page of its run, and runs now from the overview, with the next start in view',
  { skip: noChromium },
  async () => {
    await using session = await BrowserSession.start()
    await using http = await createHttpTestContext({ tokens: false })
    const { store } = http
    const run = await enqueueCrawl(store, 3, { source: 'portal-a' })
    const worker = await registerWorker(store, { source: 'portal-a', leaseMs: 600_000 })
    await claimOne(store, worker, { source: 'portal-a' })
    await enqueueSingle(store, 'nightly')
    const supervisor = await registerWorker(store, { source: 'nightly', leaseMs: 600_000 })
    await store.lockSource({
      source: 'nightly',
      worker: supervisor,
      killTimeoutMs: 1_000,
      processTag: 'x',
    })
    const sources = await store.extend(SOURCE_STORE)
    await sources.setNextStart('nightly', 2 * 3_600_000)

    await using tab = await session.open(http.url)
    const { page } = tab
    await tab.go(`/runs/${run}`)
    await page.getByRole('button', { name: 'Pause', exact: true }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('1 target in progress: released after the current page.').waitFor()
    await dialog.getByRole('textbox').fill('their site is down')
    await dialog.getByRole('button', { name: 'Pause', exact: true }).click()
    await dialog.getByText('portal-a is paused').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('button', { name: 'Unpause', exact: true }).waitFor()

    await tab.go('/')
    const section = page.getByRole('region', { name: 'Paused and scheduled' })
    await section.getByText(': their site is down').waitFor()
    await section.getByText(/next start in (2 h|1 h 59 min|119 min|120 min)/).waitFor()
    for (const width of [1_440, 768, 360]) {
      await page.setViewportSize({ width, height: 900 })
      const beyond = await section.evaluate(
        `(section) => [...section.querySelectorAll('*')].filter((one) => one.getBoundingClientRect().right > innerWidth).length`,
      )
      assert.ok(!beyond, `${beyond} elements beyond the edge at ${width} px`)
    }
    await section.getByRole('button', { name: 'Run now' }).click()
    await dialog.getByText('would start it now').waitFor()
    await dialog.getByRole('button', { name: 'Run now' }).click()
    await dialog.getByText('starts it now').waitFor()
    assert.equal((await sources.sourceStates(['nightly']))[0]!.isRunNow, true)
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await section.getByRole('button', { name: 'Unpause', exact: true }).click()
    await dialog.getByRole('button', { name: 'Unpause', exact: true }).click()
    await dialog.getByText('no longer paused').waitFor()
    assert.equal((await store.run(run))!.paused, null)
    assert.deepEqual(tab.errors, [])
  },
)
