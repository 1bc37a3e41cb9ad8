import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { noChromium } from '../../src/testing/chromium.ts'
import { BrowserSession, type Tab } from './browser.ts'
import { allPages, startShowcaseSite } from './pages.ts'

/** Charts follow the width of the screen with its next picture. */
const UNTIL_CHARTS_FIT = `new Promise((resolve) => {
  const isWithin = (svg) => svg.clientWidth <= svg.parentElement.clientWidth
  const look = () =>
    [...document.querySelectorAll('.chart-svg')].every(isWithin) ? resolve() : requestAnimationFrame(look)
  look()
})`

describe('on a narrow screen', { skip: noChromium }, () => {
  test('nothing is beyond the edge of any page, and every tab has its whole label', async () => {
    await using session = await BrowserSession.start()
    await using site = await startShowcaseSite()
    await using tab = await session.open(site.ctx.url)
    for (const [name, path] of Object.entries(allPages(site.showcase))) {
      await tab.go(path)
      for (const width of [768, 360]) {
        await tab.page.setViewportSize({ width, height: 780 })
        await tab.page.evaluate(UNTIL_CHARTS_FIT)
        assert.deepEqual(await cutElements(tab), [], `${name} at ${width} px`)
      }
    }
    assert.deepEqual(tab.errors, [])
  })
})

/** Returns the visible elements that reach beyond the screen, and the tabs and buttons whose text is wider than they are. */
function cutElements({ page }: Tab): Promise<string[]> {
  return page.evaluate<string[]>(`[...document.body.querySelectorAll('*')].flatMap((element) => {
    const { left, right, width, height } = element.getBoundingClientRect()
    if (width <= 1 || height <= 1 || element.closest('.visually-hidden, .skip')) return []
    // Output of programs scrolls within its frame.
    if (element.closest('pre, [role=log]')) return []
    const name = element.tagName + '.' + element.className + ' ' + element.textContent.slice(0, 40)
    if (left < -0.5 || right > innerWidth + 0.5) return [name + ': ' + left + '–' + right]
    const isLabel = element.matches('.nav-link, .tab, .chip, .button, .pill, th')
    return isLabel && element.scrollWidth > element.clientWidth + 1 ? [name + ': is cut'] : []
  })`)
}
