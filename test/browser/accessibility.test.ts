import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import axe from 'axe-core'
import { noChromium } from '../../src/testing/chromium.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { BrowserSession, type Tab } from './browser.ts'
import { allPages, startShowcaseSite, type ShowcaseSite } from './pages.ts'

const STANDARDS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice']
/** Made of the same parts as another one. */
const SIMILAR_PAGES = ['orphaned run', 'target', 'held target']
const SIZES = [
  [{ width: 1_440, height: 900 }, 'light', 'dark'],
  [{ width: 360, height: 780 }, 'dark', 'light'],
] as const
/** Where all is made of what the pages are made of, a phone in the dark is enough, but for the long proof. */
const DEFAULT_SIZES = isLong ? SIZES : SIZES.slice(1)

describe('the dashboard is accessible', { skip: noChromium }, () => {
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

  test('every page keeps the rules, light and dark, on a wide screen and on a phone', async () => {
    await using tab = await session.open(site.ctx.url, { policy: 'off' })
    const pages = Object.entries(allPages(site.showcase)).filter(
      ([name]) => !SIMILAR_PAGES.includes(name),
    )
    for (const [n, [name, path]] of pages.entries()) {
      await tab.go(path)
      // By turns wide and narrow, but for the long proof.
      await assertAccessible(tab, name, isLong ? SIZES : [SIZES[n % 2]!])
    }
    assert.deepEqual(tab.errors, [])
  })

  test('so does every dialog', async () => {
    await using tab = await session.open(site.ctx.url, { policy: 'off' })
    const { page } = tab
    const { runs, targets } = site.showcase
    for (const [name, path, button, awaited] of [
      ['recover', '/', 'Recover', 'would be applied'],
      ['clean', '/recovery', 'Clean 1 dead run', 'would be marked'],
      ['delete', `/runs/${runs.failed}`, 'Delete', 'to confirm'],
      ['rewind', `/targets/${targets.done}`, 'Rewind', 'would be rewound'],
      ['plan again', '/dead-letters', /^Plan all/, 'would be put back'],
    ] as const) {
      await tab.go(path)
      await page.getByRole('button', { name: button, exact: typeof button === 'string' }).click()
      await page.getByRole('dialog').getByText(awaited).first().waitFor()
      await tab.waitUntilSettled()
      await assertAccessible(tab, `the dialog to ${name}`, DEFAULT_SIZES)
    }
    await tab.go('/')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard' }).waitFor()
    await assertAccessible(tab, 'the keys', DEFAULT_SIZES)
  })

  test('so do empty pages', async () => {
    await using ctx = await createHttpTestContext({ tokens: false })
    await using tab = await session.open(ctx.url, { policy: 'off' })
    for (const path of ['/', '/runs', '/workers', '/recovery', '/dead-letters', '/history']) {
      await tab.go(path)
      await assertAccessible(tab, `${path} without anything`, DEFAULT_SIZES)
    }
  })
})

/**
 * All rules once for each width and theme; the other theme of each width, which differs by nothing but colours, by its
 * contrast in the long proof.
 * Nothing is wider than the screen.
 */
async function assertAccessible(
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
    assert.deepEqual(await violations(page, STANDARDS), [], `${name}, ${first}, ${size.width}`)
    if (isLong) {
      await page.emulateMedia({ colorScheme: second })
      assert.deepEqual(await violations(page, 'contrast'), [], `${name}, ${second}, ${size.width}`)
    }
    const tooWide = await page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
    assert.ok(tooWide <= 0, `${name} is ${tooWide} px wider than a screen of ${size.width}`)
  }
}

/** The rules that are not kept, each with the first elements that do not. */
async function violations(
  page: Tab['page'],
  which: readonly string[] | 'contrast',
): Promise<string[]> {
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
