import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { noChromium } from '../../src/testing/chromium.ts'
import { waitFor } from '../processes/harness.ts'
import { BrowserSession, type Tab } from './browser.ts'
import { startShowcaseSite, type ShowcaseSite } from './pages.ts'

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789'
const KEYS = [
  ...LETTERS.split(''),
  'Delete',
  'Backspace',
  'Space',
  'Enter',
  'Escape',
  'Insert',
  'End',
  'F2',
]

describe('keyboard only', { skip: noChromium }, () => {
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

  test('moves between pages, through lists and into rows', async () => {
    await using tab = await session.open(site.ctx.url)
    const { page } = tab
    await tab.go('/')
    await press(tab, 'g', 'r')
    await page.getByRole('heading', { name: 'Runs', level: 1 }).waitFor()
    // It is there a moment before it is focused, and read out.
    await waitFor('the heading', async () => (await focused(tab)) === 'Runs')
    await tab.waitUntilSettled()

    await press(tab, '/')
    await page.keyboard.type('flight-fares')
    await page.waitForURL(/\?q=flight-fares/)
    const others = page.locator('tbody tr').filter({ hasNotText: 'flight-fares' })
    await others.first().waitFor({ state: 'detached' })
    await press(tab, 'Escape', 'j', 'j', 'k')
    assert.match(await focused(tab), /flight-fares/)
    await press(tab, 'Enter')
    await page.waitForURL(new RegExp(`/runs/${site.showcase.runs.failed}`))

    await press(tab, '?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await press(tab, 'g', 'o')
    assert.match(page.url(), /\/runs\//, 'keys belong to the dialog while it is open')
    await press(tab, 'Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    assert.deepEqual(tab.errors, [])
  })

  test('no key alone changes anything', async () => {
    await using tab = await session.open(site.ctx.url)
    for (const path of ['/', '/recovery', '/dead-letters', `/runs/${site.showcase.runs.failed}`]) {
      await tab.go(path)
      for (const key of KEYS) {
        await press(tab, key)
        // `g` waits for a second key.
        if (key === 'g') await press(tab, 'Shift')
        if (key === '?') await press(tab, 'Escape')
      }
      await press(tab, 'j', 'Delete', 'x', 'Enter')
    }
    assert.deepEqual(tab.calls.filter(isMutation), [])
  })

  test('live updates do not take the focus away', async () => {
    await using tab = await session.open(site.ctx.url)
    const { page } = tab
    await tab.go('/')
    const row = page.locator('tr', { hasText: site.showcase.sources.tenders }).first()
    await row.getByRole('link').first().focus()
    const progress = row.locator('[data-label="Progress"]')
    const before = await progress.textContent()
    await waitFor('news in the row', async () => {
      await site.showcase.saveMorePages()
      return (await progress.textContent()) !== before
    })
    assert.equal(await focused(tab), site.showcase.sources.tenders)
  })

  test('recovers everything, from the first key to the last', async () => {
    await using tab = await session.open(site.ctx.url)
    const { page } = tab
    await tab.go('/')
    await press(tab, 'g', 'y')
    await page.getByRole('button', { name: /^Recover \d+$/ }).waitFor()
    await tabTo(tab, /^Recover \d+$/)
    await press(tab, 'Enter')
    const dialog = page.getByRole('dialog')
    await dialog.getByText('would be applied').waitFor()
    await press(tab, 'Escape')
    await dialog.waitFor({ state: 'detached' })
    assert.match(await focused(tab), /^Recover \d+$/, 'back where it came from')
    assert.deepEqual(tab.calls.filter(isMutation), [])

    await press(tab, 'Enter')
    await dialog.getByText('would be applied').waitFor()
    await tabTo(tab, /^Recover \d+$/)
    await press(tab, 'Enter')
    await dialog.getByText('verdicts applied.').waitFor()
    assert.ok(await page.locator('dialog :focus').count(), 'the focus stays in the dialog')
    await press(tab, 'Escape')
    await dialog.waitFor({ state: 'detached' })
    await page.getByText('Nothing to recover.').waitFor()
    await waitFor('the heading', async () => (await focused(tab)) === 'Recovery')
    assert.deepEqual(tab.calls.filter(isMutation), ['POST /api/recovery'])
    assert.deepEqual(tab.errors, [])
  })
})

async function press({ page }: Tab, ...keys: string[]): Promise<void> {
  for (const key of keys) await page.keyboard.press(key)
}

/** What has the focus, by its words. */
async function focused({ page }: Tab): Promise<string> {
  const element = page.locator(':focus')
  if ((await element.count()) === 0) return ''
  return ((await element.getAttribute('aria-label')) ?? (await element.textContent()) ?? '').trim()
}

async function tabTo(tab: Tab, name: RegExp): Promise<void> {
  for (let steps = 0; steps < 80; steps++) {
    await press(tab, 'Tab')
    if (name.test(await focused(tab))) return
  }
  assert.fail(`Tab never comes to ${name}`)
}

function isMutation(call: string): boolean {
  return !call.startsWith('GET ')
}
