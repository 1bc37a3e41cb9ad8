import assert from 'node:assert/strict'
import {
  chromium as playwright,
  type Browser,
  type BrowserContext,
  type Page,
  type Route,
} from 'playwright-core'
import { chromium } from '../../src/testing/chromium.ts'

export type Look = {
  readonly theme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
  /**
   * The policy that the server sends: `kept` by the browser; `told`, when it only says what it would have refused and
   * refuses nothing; or `off`, for tools that have to get in.
   */
  readonly policy?: 'kept' | 'told' | 'off'
}

/** A page of its own, with everything noted that a good one never does. */
export type Tab = AsyncDisposable & {
  readonly page: Page
  /** Errors, warnings, refused scripts and dialogs, a line each. */
  readonly troubles: string[]
  /** Every call of the page, as `GET /api/runs?status=live`. */
  readonly calls: string[]
  /** Goes there and waits until nothing is being fetched for the first time. */
  go(path: string): Promise<void>
  /** Waits for that after a click. */
  settled(): Promise<void>
}

/** On a busy machine everything takes its time: a limit only ends a test that would never end. */
const PATIENCE_MS = 40_000

/** A real browser. */
export class Browsing implements AsyncDisposable {
  readonly #browser: Browser

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<Browsing> {
    const { executable, env: libraries } = await chromium()
    const browser = await playwright.launch({
      executablePath: executable,
      args: ['--no-sandbox', '--headless=new', '--disable-gpu', '--disable-dev-shm-usage'],
      env: { ...ownEnv(), ...libraries, ...env },
    })
    return new Browsing(browser)
  }

  /** A visitor who was never here before. */
  async visit(url: string, look: Look = {}): Promise<Tab> {
    const { theme = 'light', width = 1_440, height = 900, policy = 'kept' } = look
    const context = await this.#browser.newContext({
      baseURL: url,
      locale: 'en-US',
      timezoneId: 'Europe/Vienna',
      colorScheme: theme,
      viewport: { width, height },
      bypassCSP: policy === 'off',
      reducedMotion: 'reduce',
    })
    context.setDefaultTimeout(PATIENCE_MS)
    if (policy === 'told') await context.route(isPage, onlyTell)
    return openTab(context)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close()
  }
}

/** A tab, with ears on everything it does. */
async function openTab(context: BrowserContext): Promise<Tab> {
  const page = await context.newPage()
  const troubles: string[] = []
  const calls: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) troubles.push(message.text())
  })
  page.on('pageerror', ({ message }) => void troubles.push(`uncaught: ${message}`))
  page.on('dialog', (dialog) => {
    troubles.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const { pathname, search, origin } = new URL(request.url())
    const isOurs = page.url().startsWith(origin) || page.url() === 'about:blank'
    if (!isOurs) troubles.push(`a call of another site: ${request.url()}`)
    calls.push(`${request.method()} ${pathname}${search}`)
  })
  await page.addInitScript(
    `addEventListener('securitypolicyviolation', (event) => console.error('refused: ' + event.violatedDirective))`,
  )
  const settled = async (): Promise<void> => {
    await page.locator('h1').first().waitFor()
    await page.locator('.loading').first().waitFor({ state: 'detached' })
  }
  return {
    page,
    troubles,
    calls,
    settled,
    async go(path) {
      await page.goto(path)
      await settled()
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}

const POLICY = 'content-security-policy'

function isPage({ pathname }: URL): boolean {
  return !/^\/(api|assets)\//.test(pathname)
}

async function onlyTell(route: Route): Promise<void> {
  const response = await route.fetch()
  const { [POLICY]: policy, ...headers } = response.headers()
  assert.match(policy ?? '', /script-src 'self'/)
  await route.fulfill({ response, headers: { ...headers, [`${POLICY}-report-only`]: policy! } })
}

function ownEnv(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  )
}
