import assert from 'node:assert/strict'
import {
  chromium as playwright,
  type Browser,
  type BrowserContext,
  type Page,
  type Route,
} from 'playwright-core'
import { chromium } from '../../src/testing/chromium.ts'

export type ViewOptions = {
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
  readonly errors: string[]
  /** Every call of the page, as `GET /api/runs?status=live`. */
  readonly calls: string[]
  /** Goes there and waits until nothing is being fetched for the first time. */
  go(path: string): Promise<void>
  /** Waits for that after a click. */
  waitUntilSettled(): Promise<void>
}

/** On a busy machine everything takes its time: a limit only ends a test that would never end. */
const TIMEOUT_MS = 150_000

/** A real browser. */
export class BrowserSession implements AsyncDisposable {
  readonly #browser: Browser

  private constructor(browser: Browser) {
    this.#browser = browser
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<BrowserSession> {
    const { executable, env: libraries } = await chromium()
    const browser = await playwright.launch({
      executablePath: executable,
      args: ['--no-sandbox', '--headless=new', '--disable-gpu', '--disable-dev-shm-usage'],
      env: { ...currentEnv(), ...libraries, ...env },
      timeout: TIMEOUT_MS,
    })
    return new BrowserSession(browser)
  }

  /** A browser without a session or settings. */
  async open(url: string, look: ViewOptions = {}): Promise<Tab> {
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
    context.setDefaultTimeout(TIMEOUT_MS)
    if (policy === 'told') await context.route(isPage, reportOnly)
    return openTab(context)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#browser.close()
  }
}

/** A tab, with ears on everything it does. */
async function openTab(context: BrowserContext): Promise<Tab> {
  const page = await context.newPage()
  const errors: string[] = []
  const calls: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) errors.push(message.text())
  })
  page.on('pageerror', ({ message }) => void errors.push(`uncaught: ${message}`))
  page.on('dialog', (dialog) => {
    errors.push(`dialog: ${dialog.message()}`)
    void dialog.dismiss()
  })
  page.on('request', (request) => {
    const { pathname, search, origin } = new URL(request.url())
    const isOurs = page.url().startsWith(origin) || page.url() === 'about:blank'
    if (!isOurs) errors.push(`a call of another site: ${request.url()}`)
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
    errors,
    calls,
    waitUntilSettled: settled,
    async go(path) {
      await page.goto(path)
      await settled()
    },
    [Symbol.asyncDispose]: () => context.close(),
  }
}

const CSP_HEADER = 'content-security-policy'

function isPage({ pathname }: URL): boolean {
  return !/^\/(api|assets)\//.test(pathname)
}

async function reportOnly(route: Route): Promise<void> {
  const response = await route.fetch()
  const { [CSP_HEADER]: policy, ...headers } = response.headers()
  assert.match(policy ?? '', /script-src 'self'/)
  await route.fulfill({ response, headers: { ...headers, [`${CSP_HEADER}-report-only`]: policy! } })
}

function currentEnv(): Record<string, string> {
  return Object.fromEntries(
    Object.entries(process.env).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value]],
    ),
  )
}
