import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { safe } from '../../src/interfaces/dashboard/model/format.ts'
import { listTargets } from '../../src/testing/fixtures.ts'
import { noChromium } from '../../src/testing/chromium.ts'
import { HOSTILE_TEXTS, PWNED } from '../../src/testing/hostile-text.ts'
import { BrowserSession } from './browser.ts'
import { assertHarmless, unfold } from './assert-harmless.ts'
import { allPages, type ShowcaseSite, startShowcaseSite } from './pages.ts'

const SCRIPT = /^\s*javascript:/i

describe('untrusted text stays text', { skip: noChromium }, () => {
  let session: BrowserSession
  let site: ShowcaseSite
  before(async () => {
    site = await startShowcaseSite({ hostile: true })
    session = await BrowserSession.start()
  })
  after(async () => {
    await session?.[Symbol.asyncDispose]()
    await site?.[Symbol.asyncDispose]()
  })

  test('on every page, without a CSP violation', async () => {
    await using tab = await session.open(site.ctx.url, { policy: 'told' })
    const asked = encodeURIComponent(`"'><style>*{display:none!important}</style>`)
    const pages = {
      ...allPages(site.showcase),
      'a search': `/runs?q=${asked}`,
      'a source': `/runs?source=${asked}`,
      'another run': `/runs/${asked}`,
      'another target': `/targets/${asked}`,
      'an open letter': `/dead-letters?open=${await fingerprint(site)}`,
      'a script to come': `/targets/${await injectScriptLink(site)}`,
    }
    for (const [name, path] of Object.entries(pages)) {
      await tab.go(path)
      // A name of a run or target that is not there is a 404 or 400, which browsers log.
      const errors = tab.errors.filter((text) => !/status of 40[04] /.test(text))
      await assertHarmless({ ...tab, errors }, name)
    }
  })

  test('in every dialog too', async () => {
    await using tab = await session.open(site.ctx.url, { policy: 'told' })
    const { runs, targets } = site.showcase
    for (const [path, button] of [
      ['/', 'Recover'],
      ['/recovery', 'Clean 1 dead run'],
      [`/runs/${runs.healthy}`, 'Cancel'],
      [`/runs/${runs.failed}`, 'Reset failed'],
      [`/runs/${runs.failed}`, 'Delete'],
      [`/targets/${targets.inProgress}`, 'Park'],
      ['/dead-letters', /^Plan all/],
    ] as const) {
      await tab.go(path)
      const isExact = typeof button === 'string'
      await tab.page.getByRole('button', { name: button, exact: isExact }).click()
      await tab.page.locator('dialog .dialog-said').waitFor()
      await tab.page.locator('dialog details').evaluateAll(unfold)
      await assertHarmless(tab, `the dialog of ${button}`)
    }
  })

  test('each of the sixty is there to read, with what is not seen made visible', async () => {
    await using tab = await session.open(site.ctx.url)
    const { page } = tab
    await tab.go(`/runs/${site.showcase.runs.healthy}`)
    const more = page.getByRole('button', { name: 'More targets' })
    while (await more.isVisible()) {
      const shown = await page.locator('.target-name').count()
      await more.click()
      await page.locator('.target-name').nth(shown).waitFor()
    }
    const names = (await page.locator('.target-name').allTextContents()).join('\n')
    for (const text of HOSTILE_TEXTS) {
      assert.ok(names.includes(safe(text)), `not there: ${JSON.stringify(text)}`)
    }
    await assertHarmless(tab, 'all of them')
  })

  test('a way back after the login leads nowhere else', async () => {
    await using tab = await session.open(site.ctx.url)
    for (const next of [
      '/\\evil.example/',
      `javascript:window.${PWNED}=1`,
      'https://evil.example/',
      '//evil.example/',
    ]) {
      await tab.go(`/login?next=${encodeURIComponent(next)}`)
      await tab.page.getByRole('button', { name: 'Go on' }).click()
      await tab.page.getByRole('navigation', { name: 'Pages' }).waitFor()
      assert.equal(new URL(tab.page.url()).origin, site.ctx.url)
      await assertHarmless(tab, next)
    }
  })
})

/** A target whose next page is a script, if one were to follow it. */
async function injectScriptLink({ ctx, showcase }: ShowcaseSite): Promise<string> {
  const runs = [showcase.runs.healthy, showcase.runs.orphaned, showcase.runs.stalled]
  const all = await Promise.all(runs.map((run) => listTargets(ctx.store, run)))
  const found = all.flat().find(({ next }) => next !== null && SCRIPT.test(next))
  assert.ok(found, 'no target has such a page')
  return found.id
}

async function fingerprint({ ctx }: ShowcaseSite): Promise<string> {
  const { body } = await ctx.call('GET', '/api/dead-letters')
  return body.groups[0].fingerprint
}
