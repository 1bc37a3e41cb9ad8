import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import axe from 'axe-core'
import { noChromium } from '../../src/testing/chromium.ts'
import { httpStage } from '../../src/testing/http-context.ts'
import { isLong } from '../../src/testing/length.ts'
import { Browsing, type Tab } from './browser.ts'
import { everyPage, showSite, type ShownSite } from './pages.ts'

const STANDARDS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** Made of the same parts as another one. */
const ALIKE = ['orphaned run', 'target', 'held target']
const SIZES = [
  [{ width: 1_440, height: 900 }, 'light', 'dark'],
  [{ width: 360, height: 780 }, 'dark', 'light'],
] as const
/** Where all is made of what the pages are made of, a phone in the dark is enough, but for the long proof. */
const SOME = isLong ? SIZES : SIZES.slice(1)

describe('everybody can use the dashboard', { skip: noChromium }, () => {
  let browsing: Browsing
  let site: ShownSite
  before(async () => {
    site = await showSite()
    browsing = await Browsing.start()
  })
  after(async () => {
    await browsing?.[Symbol.asyncDispose]()
    await site?.[Symbol.asyncDispose]()
  })

  test('every page keeps the rules, light and dark, on a wide screen and on a phone', async () => {
    await using tab = await browsing.visit(site.stage.url, { policy: 'off' })
    const pages = Object.entries(everyPage(site.showcase)).filter(([name]) => !ALIKE.includes(name))
    for (const [n, [name, path]] of pages.entries()) {
      await tab.go(path)
      // By turns wide and narrow, but for the long proof.
      await assertRules(tab, name, isLong ? SIZES : [SIZES[n % 2]!])
    }
    assert.deepEqual(tab.troubles, [])
  })

  test('so does every dialog', async () => {
    await using tab = await browsing.visit(site.stage.url, { policy: 'off' })
    const { page } = tab
    const { runs, targets } = site.showcase
    for (const [name, path, button, awaited] of [
      ['recover', '/', 'Unstick', 'would be done'],
      ['clean', '/recovery', 'Clean 1 dead run', 'would be marked'],
      ['delete', `/runs/${runs.failed}`, 'Delete', 'to agree'],
      ['rewind', `/targets/${targets.done}`, 'Rewind', 'Go on after page'],
      ['retry', '/dead-letters', /^Retry all/, 'would be put back'],
    ] as const) {
      await tab.go(path)
      await page.getByRole('button', { name: button, exact: typeof button === 'string' }).click()
      await page.getByRole('dialog').getByText(awaited).first().waitFor()
      await tab.settled()
      await assertRules(tab, `the dialog to ${name}`, SOME)
    }
    await tab.go('/')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await assertRules(tab, 'the keys', SOME)
  })

  test('so does what is shown where there is nothing', async () => {
    await using stage = await httpStage({ tokens: false })
    await using tab = await browsing.visit(stage.url, { policy: 'off' })
    for (const path of ['/', '/runs', '/workers', '/recovery', '/dead-letters', '/history']) {
      await tab.go(path)
      await assertRules(tab, `${path} without anything`, SOME)
    }
  })
})

/**
 * All rules once for each width and theme; the other theme of each width, which differs by nothing but colours, by its
 * contrast in the long proof.
 * Nothing is wider than the screen.
 */
async function assertRules(
  { page }: Tab,
  name: string,
  sizes: readonly (typeof SIZES)[number][] = SIZES,
): Promise<void> {
  await page.evaluate(axe.source)
  // The contrast of text over a gradient is not looked at; ours go from one ground to the next, so one of them does.
  await page.addStyleTag({ content: '* { background-image: none !important }' })
  for (const [size, first, second] of sizes) {
    await page.setViewportSize(size)
    await page.emulateMedia({ colorScheme: first })
    assert.deepEqual(await broken(page, STANDARDS), [], `${name}, ${first}, ${size.width}`)
    if (isLong) {
      await page.emulateMedia({ colorScheme: second })
      assert.deepEqual(await broken(page, 'contrast'), [], `${name}, ${second}, ${size.width}`)
    }
    const tooWide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    assert.ok(tooWide <= 0, `${name} is ${tooWide} px wider than a screen of ${size.width}`)
  }
}

/** The rules that are not kept, each with the first elements that do not. */
async function broken(page: Tab['page'], which: readonly string[] | 'contrast'): Promise<string[]> {
  const runOnly =
    which === 'contrast'
      ? { type: 'rule', values: ['color-contrast'] }
      : { type: 'tag', values: which }
  const options = JSON.stringify({ runOnly, resultTypes: ['violations'] })
  const { violations } = await page.evaluate<axe.AxeResults>(`axe.run(document, ${options})`)
  return violations.map(({ id, nodes }) => {
    const examples = nodes
      .slice(0, 3)
      .map(({ html, failureSummary }) => `${html} ${failureSummary}`)
    return `${id}: ${examples.join('\n')}`
  })
}
