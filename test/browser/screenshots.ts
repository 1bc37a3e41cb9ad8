import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseArgs } from 'node:util'
import type { Route } from 'playwright-core'
import { chromium } from '../../src/testing/chromium.ts'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { BrowserSession, type ViewOptions, type Tab } from './browser.ts'
import { allPages, startShowcaseSite } from './pages.ts'

/**
 * `node test/browser/screenshots.ts OUT [NAME…]`: pictures of the dashboard over the showcase, for the README and for reviews: of every
 * page, at three widths, light and dark, or only those that are named. `--full`: of the whole page instead of what a window shows.
 * Build the dashboard first: `npm run build:dashboard`.
 */

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: { full: { type: 'boolean', default: false } },
})
const [out, ...only] = positionals
if (out === undefined) {
  throw new Error('Usage: node test/browser/screenshots.ts OUT [NAME…] [--full]')
}

const SIZES = {
  wide: { width: 1_440, height: 1_000 },
  tablet: { width: 768, height: 1_000 },
  phone: { width: 360, height: 780 },
} as const satisfies Record<string, ViewOptions>

/** The same letters on every machine: those that come with the browser. */
const FONTS = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>FOLDER</dir>
  <dir>/usr/share/fonts/truetype/dejavu</dir>
  <alias binding="same"><family>system-ui</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>sans-serif</family><prefer><family>Open Sans</family></prefer></alias>
  <alias binding="same"><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`

async function fontsIn(folder: string): Promise<string> {
  const { executable } = await chromium()
  const path = join(folder, 'fonts.conf')
  writeFileSync(path, FONTS.replace('FOLDER', join(dirname(executable), 'fonts', 'fonts')))
  return path
}

/** Hides the path of the temporary folder that the showcase is in. */
async function replaceDatabaseName(route: Route): Promise<void> {
  const response = await route.fetch()
  const session = (await response.json()) as { store: object }
  const store = { ...session.store, where: '.unstuck/unstuck.db' }
  await route.fulfill({ response, json: { ...session, store } })
}

/** Saves a picture of the page, once everything on it has come. */
async function takeScreenshot({ page }: Tab, name: string): Promise<void> {
  // Ages count on and charts are drawn when their numbers are there.
  await page.waitForLoadState('networkidle', { timeout: 1_500 }).catch(() => {})
  await page.screenshot({ path: join(out!, `${name}.png`), fullPage: values.full })
  console.log(name)
}

/** Opens the preview of what recovery would do. */
async function openRecoveryDialog({ page }: Tab): Promise<void> {
  await page
    .getByRole('button', { name: /^Recover/ })
    .first()
    .click()
  const dialog = page.locator('dialog[open]')
  await dialog.waitFor()
  await dialog.getByText('would be applied').first().waitFor()
}

mkdirSync(out, { recursive: true })
using folder = temporaryFolder()
await using session = await BrowserSession.start({ FONTCONFIG_FILE: await fontsIn(folder.path) })
await using site = await startShowcaseSite()
const { showcase } = site
/** What the README calls the run that goes well. */
const pages: Readonly<Record<string, PageToTake>> = {
  ...Object.fromEntries(
    Object.entries(allPages(showcase)).map(([name, path]) => [name.replaceAll(' ', '-'), { path }]),
  ),
  run: { path: `/runs/${showcase.runs.healthy}` },
  'recovery-dialog': { path: '/recovery', prepare: openRecoveryDialog },
}
type PageToTake = { readonly path: string; readonly prepare?: (tab: Tab) => Promise<void> }

for (const [size, look] of Object.entries(SIZES)) {
  for (const theme of ['light', 'dark'] as const) {
    const wanted = Object.entries(pages)
      .map(([page, how]) => ({ ...how, name: nameOf(page, size, theme) }))
      .filter(({ name }) => only.length === 0 || only.includes(name))
    if (wanted.length === 0) continue
    await using tab = await session.open(site.ctx.url, { ...look, theme })
    await tab.page.route('**/api/session', replaceDatabaseName)
    for (const { path, prepare, name } of wanted) {
      await tab.go(path)
      await prepare?.(tab)
      await takeScreenshot(tab, name)
    }
  }
}

/** `overview-dark` on a wide screen, `phone-dark` for the first page on a phone, else all three words. */
function nameOf(page: string, size: string, theme: string): string {
  if (size === 'wide') return `${page}-${theme}`
  return page === 'overview' ? `${size}-${theme}` : `${page}-${size}-${theme}`
}
