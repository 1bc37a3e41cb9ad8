import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { noChromium } from '../../src/testing/chromium.ts'
import { waitFor } from '../processes/harness.ts'
import { BrowserSession, type Tab } from './browser.ts'
import { startShowcaseSite, type ShowcaseSite } from './pages.ts'

const IDLE_S = 6

describe('a tab of the dashboard', { skip: noChromium }, () => {
  let session: BrowserSession
  let site: ShowcaseSite
  before(async () => {
    site = await startShowcaseSite()
    session = await BrowserSession.start()
  })
  after(async () => {
    await session?.[Symbol.asyncDispose]()
    await site?.[Symbol.asyncDispose]()
  })

  test('has one stream, whichever page it is on', async () => {
    await using tab = await session.open(site.ctx.url)
    const { page } = tab
    const open = openStreams(tab)
    await tab.go('/')
    for (const name of ['Workers', 'Recovery', 'History', 'Runs', 'Overview']) {
      await page.getByRole('navigation').getByRole('link', { name }).click()
      await tab.waitUntilSettled()
      await waitFor(`one stream on ${name}`, () => open.size === 1)
    }
    assert.deepEqual(tab.errors, [])
  })

  test('sends less than one request per second while idle', async () => {
    const idle = async (path: string): Promise<void> => {
      await using tab = await session.open(site.ctx.url)
      await tab.go(path)
      const before = tab.calls.length
      await sleep(IDLE_S * 1_000)
      const calls = tab.calls.slice(before)
      assert.ok(calls.length < IDLE_S, `${path}: ${calls.join(', ')}`)
    }
    await Promise.all(['/', `/runs/${site.showcase.runs.healthy}`, '/recovery'].map(idle))
  })

  test('keeps its filters in the address: for a link, a reload, Back, and after a look elsewhere', async () => {
    await using tab = await session.open(site.ctx.url)
    const { page } = tab
    await tab.go('/runs')
    await page.getByRole('button', { name: 'failed', exact: true }).click()
    await page.getByRole('button', { name: 'cancelled', exact: true }).click()
    await page.getByRole('searchbox').fill('FLIGHT')
    await page.waitForURL('/runs?status=failed&status=cancelled&q=FLIGHT')
    await assertFiltered(tab)
    await page.reload()
    await assertFiltered(tab)
    await page.getByRole('link', { name: site.showcase.sources.flights }).click()
    await page.getByRole('heading', { name: 'Targets' }).waitFor()
    await page.goBack()
    await assertFiltered(tab)
    await using other = await session.open(site.ctx.url)
    await other.go(new URL(page.url()).pathname + new URL(page.url()).search)
    await assertFiltered(other)

    await page.getByRole('searchbox').fill('nothing is called so')
    await page.getByText('No run fits these filters.').waitFor()
    await page.getByRole('button', { name: 'Clear filters' }).last().click()
    await page.waitForURL('/runs')
    await page.getByRole('link', { name: site.showcase.sources.tenders }).first().waitFor()
    assert.equal(await page.getByRole('searchbox').inputValue(), '')
  })
})

/** The streams that are open, by their address. */
function openStreams({ page }: Tab): Set<unknown> {
  const open = new Set<unknown>()
  page.on('request', (request) => {
    if (request.url().includes('/api/events')) open.add(request)
  })
  page.on('requestfailed', (request) => void open.delete(request))
  page.on('requestfinished', (request) => void open.delete(request))
  return open
}

async function assertFiltered({ page, waitUntilSettled }: Tab): Promise<void> {
  await waitUntilSettled()
  const others = page.locator('tbody tr').filter({ hasNotText: 'flight-fares' })
  await others.first().waitFor({ state: 'detached' })
  assert.equal(await page.locator('tbody tr').count(), 1)
  for (const name of ['failed', 'cancelled']) {
    await page.getByRole('button', { name, exact: true, pressed: true }).waitFor()
  }
  assert.equal(await page.getByRole('searchbox').inputValue(), 'FLIGHT')
}
