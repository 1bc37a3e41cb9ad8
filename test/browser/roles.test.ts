import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { noChromium } from '../../src/testing/chromium.ts'
import {
  createHttpTestContext,
  type HttpTestContext,
  type HttpTestOptions,
} from '../../src/testing/http-test-context.ts'
import type { User } from '../../src/interfaces/http/auth.ts'
import { BrowserSession, type Tab } from './browser.ts'
import { startShowcaseSite, type ShowcaseSite } from './pages.ts'

/** Everything that changes something starts with one of these. */
const ACTION_LABELS =
  /^(Recover|Clean|Retry|Plan|Acknowledge|Cancel|Resume|Reset|Unpark|Park|Rewind|Revert|Delete)\b/

describe('users see what their role allows', { skip: noChromium }, () => {
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

  /** Another server on the same database. */
  const door = (options: HttpTestOptions): Promise<HttpTestContext> =>
    createHttpTestContext({ ...options, app: { open: async () => site.ctx.store } })

  const everywhere = (): string[] => {
    const { runs, targets } = site.showcase
    const pages = ['/', '/recovery', '/workers', '/dead-letters']
    return [...pages, `/runs/${runs.failed}`, `/runs/${runs.healthy}`, `/targets/${targets.parked}`]
  }

  /** The buttons on these pages that would change something. */
  const actions = async (tab: Tab, paths = everywhere()): Promise<string[]> => {
    const seen: string[] = []
    for (const path of paths) {
      await tab.go(path)
      const buttons = await tab.page.getByRole('button').allTextContents()
      seen.push(...buttons.map((name) => name.trim()).filter((name) => ACTION_LABELS.test(name)))
    }
    return seen
  }

  test('a token opens it where one wanted to go, and logging out shuts it again', async () => {
    await using ctx = await door({})
    await using tab = await session.open(ctx.url)
    const { page } = tab
    await page.goto('/runs?status=failed')
    await page.waitForURL(/\/login\?next=/)
    await logIn(tab, 'unstuck_not_a_token')
    await page.getByRole('alert').getByText('does not know this token').waitFor()

    await logIn(tab, ctx.tokens.operator)
    await page.waitForURL('/runs?status=failed')
    await page.getByRole('link', { name: site.showcase.sources.flights }).first().waitFor()
    assert.equal(await page.evaluate('document.cookie + localStorage.length'), '0')
    const copy = await page.context().cookies()
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.waitForURL(/\/login/)
    assert.deepEqual(await page.context().cookies(), [])
    // A copy of the cookie is of no use after that.
    await page.context().addCookies(copy)
    await page.goto('/runs')
    await page.waitForURL(/\/login/)
  })

  test('whom an application rejects gets its login, and no word about tokens', async () => {
    let user: User | null = null
    const auth = { tokens: null, isPrivate: false, access: () => user, loginUrl: '/sign-in' }
    await using ctx = await door({ tokens: false, auth })
    await using tab = await session.open(ctx.url)
    const { page } = tab
    await page.goto('/runs')
    await page.waitForURL(/\/login\?next=/)
    await page.getByText('decides who may use it').waitFor()
    assert.doesNotMatch(await page.locator('main').innerText(), /token/i)
    const link = page.getByRole('link', { name: 'Log in' })
    assert.equal(await link.getAttribute('href'), '/sign-in')
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.getByRole('alert').getByText('still not let in').waitFor()

    user = { name: 'maria', role: 'viewer' }
    await page.getByRole('button', { name: 'Try again' }).click()
    await page.waitForURL(/\/runs$/)
    await page.getByRole('link', { name: site.showcase.sources.flights }).first().waitFor()
  })

  test('two servers on one host have a session each', async () => {
    await using first = await door({})
    await using second = await door({})
    await using tab = await session.open(first.url)
    const { page } = tab
    for (const { url, tokens } of [first, second]) {
      await page.goto(`${url}/login`)
      await logIn(tab, tokens.operator)
      await page.waitForURL(`${url}/`)
    }
    await page.getByRole('button', { name: 'Log out' }).click()
    await page.waitForURL(/\/login/)
    await page.goto(`${first.url}/workers`)
    await page.getByRole('button', { name: 'Log out' }).waitFor()
    assert.equal(new URL(page.url()).pathname, '/workers')
  })

  test('an operator acts and does not delete; an admin does both', async () => {
    await using ctx = await door({})
    await using tab = await session.open(ctx.url)
    await tab.page.goto('/login')
    await logIn(tab, ctx.tokens.operator)
    await tab.page.waitForURL('/')
    const paths = ['/', `/runs/${site.showcase.runs.failed}`]
    const theirs = await actions(tab, paths)
    assert.ok(theirs.includes('Recover') && theirs.includes('Reset failed'), theirs.join(', '))
    await using other = await session.open(site.ctx.url)
    assert.deepEqual(await actions(other, paths), [...theirs, 'Delete'])
  })

  test('a viewer finds no button that would be refused', async () => {
    await using ctx = await door({})
    await using tab = await session.open(ctx.url)
    await tab.page.goto('/login')
    await logIn(tab, ctx.tokens.viewer)
    await tab.page.waitForURL('/')
    assert.deepEqual(await actions(tab), [])
    await tab.go('/')
    await tab.page.getByText('Something is stuck').waitFor()
    await tab.page.getByRole('link', { name: 'What would be recovered' }).waitFor()
  })

  test('nor does any role on a read-only server', async () => {
    await using ctx = await door({ tokens: false, auth: { readOnly: true } })
    await using tab = await session.open(ctx.url)
    assert.deepEqual(await actions(tab), [])
    await tab.page.getByText('read-only').first().waitFor()
    assert.deepEqual(tab.errors, [])
  })
})

async function logIn({ page }: Tab, token: string): Promise<void> {
  await page.getByLabel('Token').fill(token)
  await page.getByRole('button', { name: 'Log in' }).click()
}
