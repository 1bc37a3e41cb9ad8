import assert from 'node:assert/strict'
import { PWNED } from '../../src/testing/hostile-text.ts'
import type { Tab } from './browser.ts'

/** The dashboard's own elements; any other element came out of scraped text. */
const FORBIDDEN_ELEMENTS = [
  'iframe, object, embed, math, video, audio, style, marquee, textarea, form[action]',
  'body script, script:not([src]), script[src*="://"], link[href*="evil"], base[href*="evil"]',
  'meta[http-equiv], img, [onload], [onerror], [onfocus], [ontoggle], [onmouseover]',
  '[style*="fixed"]',
].join(', ')
/** Characters that a reader does not see, or that turn the text around them. */
const INVISIBLE_CHARACTERS = /\p{Cc}|[\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]/u

/** Nothing of what strangers wrote has become more than text. */
export async function assertHarmless({ page, errors }: Tab, name: string): Promise<void> {
  // Whatever is laid out of sight is on the page as well.
  await page.locator('main details').evaluateAll(unfold)
  assert.deepEqual(errors, [], name)
  assert.equal(await page.evaluate(`window.${PWNED}`), undefined, name)
  assert.deepEqual(await page.locator(FORBIDDEN_ELEMENTS).evaluateAll(outlines), [], name)
  for (const [href, rel] of await page.locator('a[href]').evaluateAll(links)) {
    assert.match(href, /^https?:/, name)
    const isOurs = new URL(href).origin === new URL(page.url()).origin
    if (!isOurs) assert.equal(rel, 'noopener noreferrer', `${name}: ${href}`)
  }
  const seen = await page.locator('body').evaluate((body: any) => body.innerText as string)
  assert.doesNotMatch(seen.replaceAll(/[\n\t]/g, ''), INVISIBLE_CHARACTERS, name)
}

export const unfold = (all: any[]): void => all.forEach((one) => (one.open = true))
const outlines = (all: any[]): string[] => all.map((one) => one.outerHTML.slice(0, 200))
const links = (all: any[]): [string, string][] => all.map((one) => [one.href, one.rel])
