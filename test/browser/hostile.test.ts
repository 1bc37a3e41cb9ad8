import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { safe } from '../../src/surfaces/dashboard/model/safe.ts'
import { allTargets } from '../../src/testing/cast.ts'
import { noChromium } from '../../src/testing/chromium.ts'
import { HOSTILE_TEXTS, PWNED } from '../../src/testing/hostile-text.ts'
import { Browsing, type Tab } from './browser.ts'
import { everyPage, showSite, type ShownSite } from './pages.ts'

/** What the dashboard has of its own; whatever else there is came out of somebody's text. */
const FOREIGN = [
  'iframe, object, embed, math, video, audio, style, marquee, textarea, form[action]',
  'body script, script:not([src]), script[src*="://"], link[href*="evil"], base[href*="evil"]',
  'meta[http-equiv], img, [onload], [onerror], [onfocus], [ontoggle], [onmouseover]',
  '[style*="fixed"]',
].join(', ')
const SCRIPT = /^\s*javascript:/i
/** Characters that a reader does not see, or that turn the text around them. */
const UNSEEN = /\p{Cc}|[\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/u

describe('text that strangers wrote stays text', { skip: noChromium }, () => {
  let browsing: Browsing
  let site: ShownSite
  before(async () => {
    ;[browsing, site] = await Promise.all([Browsing.start(), showSite({ hostile: true })])
  })
  after(async () => {
    await browsing?.[Symbol.asyncDispose]()
    await site?.[Symbol.asyncDispose]()
  })

  test('on every page, and the policy has nothing to tell', async () => {
    await using tab = await browsing.visit(site.stage.url, { policy: 'told' })
    const asked = encodeURIComponent(`"'><style>*{display:none!important}</style>`)
    const pages = {
      ...everyPage(site.showcase),
      'a search': `/runs?q=${asked}`,
      'a source': `/runs?source=${asked}`,
      'another run': `/runs/${asked}`,
      'another target': `/targets/${asked}`,
      'an open letter': `/dead-letters?open=${await fingerprint(site)}`,
      'a script to come': `/targets/${await scriptToCome(site)}`,
    }
    for (const [name, path] of Object.entries(pages)) {
      await tab.go(path)
      await assertHarmless(tab, name)
    }
  })

  test('in every dialog too', async () => {
    await using tab = await browsing.visit(site.stage.url, { policy: 'told' })
    const { runs, targets } = site.showcase
    for (const [path, button] of [
      ['/', 'Unstick'],
      ['/recovery', 'Clean 1 dead run'],
      [`/runs/${runs.healthy}`, 'Cancel'],
      [`/runs/${runs.failed}`, 'Reset failed'],
      [`/runs/${runs.failed}`, 'Delete'],
      [`/targets/${targets.inProgress}`, 'Park'],
      ['/dead-letters', /^Retry all/],
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
    await using tab = await browsing.visit(site.stage.url)
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
    await using tab = await browsing.visit(site.stage.url)
    for (const next of [
      '/\\evil.example/',
      `javascript:window.${PWNED}=1`,
      'https://evil.example/',
      '//evil.example/',
    ]) {
      await tab.go(`/login?next=${encodeURIComponent(next)}`)
      await tab.page.getByRole('button', { name: 'Go on' }).click()
      await tab.page.getByRole('navigation', { name: 'Pages' }).waitFor()
      assert.equal(new URL(tab.page.url()).origin, site.stage.url)
      await assertHarmless(tab, next)
    }
  })
})

async function assertHarmless({ page, troubles }: Tab, name: string): Promise<void> {
  // Whatever is laid out of sight is on the page as well.
  await page.locator('main details').evaluateAll(unfold)
  assert.deepEqual(troubles, [], name)
  assert.equal(await page.evaluate(`window.${PWNED}`), undefined, name)
  assert.deepEqual(await page.locator(FOREIGN).evaluateAll(outlines), [], name)
  for (const [href, rel] of await page.locator('a[href]').evaluateAll(links)) {
    assert.match(href, /^https?:/, name)
    const isOurs = new URL(href).origin === new URL(page.url()).origin
    if (!isOurs) assert.equal(rel, 'noopener noreferrer', `${name}: ${href}`)
  }
  const seen = await page.locator('body').evaluate((body: any) => body.innerText as string)
  assert.doesNotMatch(seen.replaceAll(/[\n\t]/g, ''), UNSEEN, name)
}

/** A target whose next page is a script, if one were to follow it. */
async function scriptToCome({ stage, showcase }: ShownSite): Promise<string> {
  const runs = [showcase.runs.healthy, showcase.runs.orphaned, showcase.runs.stalled]
  const all = await Promise.all(runs.map((run) => allTargets(stage.store, run)))
  const found = all.flat().find(({ next }) => next !== null && SCRIPT.test(next))
  assert.ok(found, 'no target has such a page')
  return found.id
}

async function fingerprint({ stage }: ShownSite): Promise<string> {
  const { body } = await stage.call('GET', '/api/dead-letters')
  return body.groups[0].fingerprint
}

const unfold = (all: any[]): void => all.forEach((one) => (one.open = true))
const outlines = (all: any[]): string[] => all.map((one) => one.outerHTML.slice(0, 200))
const links = (all: any[]): [string, string][] => all.map((one) => [one.href, one.rel])
