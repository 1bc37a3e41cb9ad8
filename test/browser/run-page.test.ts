import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { noChromium } from '../../src/testing/chromium.ts'
import { BrowserSession, type Tab } from './browser.ts'
import { startShowcaseSite, type ShowcaseSite } from './pages.ts'

describe('the page of a run', { skip: noChromium }, () => {
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
  const open = async (run: string): Promise<Tab> => {
    const tab = await session.open(site.ctx.url)
    await tab.go(`/runs/${run}`)
    return tab
  }

  test('with one target begins with its command and output, and has no table with one row', async () => {
    await using tab = await open(site.showcase.runs.command)
    const { page } = tab
    await page.getByRole('log').getByText('page 44: 40 listings').waitFor()
    await page.getByText('python scrape.py --portal immo').first().waitFor()
    assert.deepEqual((await headings(tab)).slice(0, 2), ['Command', 'Output'])
    await page.setViewportSize({ width: 360, height: 780 })
    const top = async (title: string): Promise<number> =>
      (await page.getByRole('heading', { name: title, exact: true }).boundingBox())!.y
    assert.ok((await top('Output')) < (await top('Why')), 'so it does on a phone')
    await page.getByRole('heading', { name: 'Position' }).waitFor()
    assert.equal(await page.getByRole('table', { name: 'Targets of this run' }).count(), 0)
    assert.deepEqual(tab.errors, [])
  })

  test('has a log of sentences, and the events as they were recorded on demand', async () => {
    await using tab = await open(site.showcase.runs.healthy)
    const log = tab.page.getByRole('log')
    await log
      .getByText(/: page \d+ saved with 3 items/)
      .first()
      .waitFor()
    assert.doesNotMatch(await log.innerText(), /page_complete|key=/)
    await tab.page.getByRole('button', { name: 'Raw events' }).click()
    await log
      .getByText(/^page_complete .*key=/)
      .first()
      .waitFor()
    assert.deepEqual(tab.errors, [])
  })

  test('that was interrupted shows the command that continues it, to be copied', async () => {
    await using tab = await open(site.showcase.runs.interrupted)
    const progress = tab.page.getByRole('region', { name: 'Progress' })
    await progress.getByText('unstuck work MODULE').waitFor()
    await progress.getByRole('button', { name: 'Copy the command' }).waitFor()
  })

  test('whose workers are all lost counts no target as worked on, and names no workers', async () => {
    await using tab = await open(site.showcase.runs.orphaned)
    const { page } = tab
    await page.getByText('No live worker holds what is in progress.').waitFor()
    await tab.go('/')
    const owner = (source: string) =>
      page.getByRole('row').filter({ hasText: source }).getByRole('cell').last()
    assert.equal(await owner('yellow-pages').innerText(), 'no live worker')
    assert.equal(await owner('tenders-eu').innerText(), 'its workers')
    for (const source of ['hotel-prices', 'product-reviews', 'job-board'])
      assert.equal(await owner(source).innerText(), 'no owner')
  })

  test('that failed names the cause, and the commands that start it again', async () => {
    await using tab = await open(site.showcase.runs.failed)
    const why = tab.page.getByRole('region', { name: 'Why' })
    await why.getByText(/29 targets failed, 16 parked, 1 stuck/).waitFor()
    await why.getByText(/unstuck reset-failed/).waitFor()
    assert.doesNotMatch(await why.innerText(), /leave/)
    await tab.go(`/targets/${site.showcase.targets.failed}`)
    await why.getByText(/It failed: \S+/).waitFor()
    assert.doesNotMatch(await why.innerText(), /leave/)
    await tab.go(`/runs/${site.showcase.runs.healthy}`)
    await why
      .getByText(/is alive/)
      .first()
      .waitFor()
    assert.doesNotMatch(await why.innerText(), /leave/)
  })

  test('that is deleted gives way to the list of runs, under the result', async () => {
    await using tab = await open(site.showcase.runs.failed)
    const { page } = tab
    await page.getByRole('button', { name: 'Delete' }).click()
    const dialog = page.getByRole('dialog')
    const word = await dialog.locator('code.keys').innerText()
    await dialog.getByRole('textbox', { name: /to confirm/ }).fill(word)
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByText(/is deleted\./).waitFor()
    await page.waitForURL(/\/runs$/)
    await dialog.getByRole('button', { name: 'Close' }).last().click()
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    assert.equal(await page.getByRole('alert').count(), 0)
    assert.deepEqual(tab.errors, [])
  })
})

/** The headings of the sections in the main column, in order. */
function headings({ page }: Tab): Promise<string[]> {
  return page.locator('.run-main h2').allInnerTexts()
}
