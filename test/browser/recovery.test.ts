import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shortId } from '../../src/core/model/id.ts'
import { noChromium } from '../../src/testing/chromium.ts'
import { enqueueInterrupted } from '../../src/testing/fixtures.ts'
import { isLong } from '../../src/testing/long-tests.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ENGINES, ProcessTestContext, waitFor } from '../processes/harness.ts'
import { BrowserSession, type Tab } from './browser.ts'

const HOUR_MS = 3_600_000

/** Its second pages take for ever. Those of Texas are held for a person when their worker dies. */
const CRAWL = `
  *targets() { for (const n of [1, 2, 3]) yield { key: 'CA/' + n, group: 'CA' }; yield { key: 'TX/1', group: 'TX' } },
  async page({ target, page }) {
    if (page > 1) { mark('second', target.key); await opened('never') }
    return { items: [{ key: target.key, data: {} }], next: 'more' }
  },
  concurrency: 4,
  policy: { groups: { TX: { onCrash: 'hold' } } },
`

for (const engine of isLong ? ENGINES : [sqliteEngine]) {
  describe(`a night on ${engine.name}`, { skip: noChromium }, () => {
    let session: BrowserSession
    before(async () => {
      session = await BrowserSession.start()
    })
    after(() => session?.[Symbol.asyncDispose]())

    test('a worker is killed: the open page shows it, previews the recovery, applies it and reverts it', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      const url = await serve(ctx)
      const worker = ctx.unstuck('work', ctx.crawl(CRAWL))
      await ctx.waitForMarks('second', 4)
      await using tab = await session.open(url)
      const { page } = tab
      await tab.go('/')
      await page.getByText('1 run healthy').waitFor()
      await page.evaluate('window.isTheSame = true')

      worker.signal('SIGKILL')
      await page.getByText('Something is stuck').waitFor()
      await page.getByRole('button', { name: 'Recover' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('4 verdicts would be applied.').waitFor()

      const { verdicts } = await cli(ctx, 'recover', '--dry-run')
      const before = await ctx.targets()
      assert.deepEqual(verdicts.map(({ action }: any) => action).sort(), [
        'hold',
        'resume',
        'resume',
        'resume',
      ])
      assert.deepEqual(await listedActions(tab), verdicts.map(describeVerdict).sort())
      assert.deepEqual(await ctx.verdicts(), [], 'a preview changes nothing')

      await dialog.getByRole('button', { name: 'Recover 4' }).click()
      await dialog.getByText('4 verdicts applied.').waitFor()
      assert.deepEqual(await statuses(ctx), ['planned', 'planned', 'planned', 'stuck'])
      await dialog.getByRole('button', { name: 'Revert' }).click()
      await dialog.getByText('Reverted.').waitFor()
      assert.deepEqual(await statuses(ctx), ['planned', 'planned', 'planned', 'planned'])
      await dialog.getByRole('button', { name: 'Close' }).last().click()
      for (const { key, page, next } of (await ctx.targets()).values()) {
        assert.deepEqual([page, next], [before.get(key)!.page, before.get(key)!.next])
      }
      await page.getByText('Nothing is stuck').waitFor()
      assert.equal(await page.evaluate('window.isTheSame'), true, 'nothing was loaded anew')
      assert.deepEqual(tab.errors, [])
    })

    test('an abandoned run is cleaned, and restored with one click', async () => {
      await using ctx = await ProcessTestContext.create(engine)
      await enqueueInterrupted(await ctx.store(), 1, { source: 'stage' })
      await ctx.database.advanceClock(25 * HOUR_MS)
      const url = await serve(ctx)
      await using tab = await session.open(url)
      const { page } = tab
      await tab.go('/recovery')

      await page.getByRole('button', { name: 'Clean 1 dead run' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('1 dead run would be marked').waitFor()
      const { dead } = await cli(ctx, 'clean', '--dry-run')
      assert.deepEqual(
        await listedActions(tab),
        dead.map(({ id }: any) => `clean run ${shortId(id)} of stage`),
      )
      assert.equal((await ctx.run()).status, 'interrupted')

      await dialog.getByRole('button', { name: 'Clean', exact: true }).click()
      await dialog.getByText('1 run marked').waitFor()
      assert.equal((await ctx.run()).status, 'abandoned')
      await dialog.getByRole('button', { name: 'Revert' }).click()
      await dialog.getByText('Reverted.').waitFor()
      assert.equal((await ctx.run()).status, 'interrupted')
      assert.deepEqual(tab.errors, [])
    })
  })
}

/** A server without background recovery, so that what is stuck stays so until it is recovered by hand. */
async function serve(ctx: ProcessTestContext): Promise<string> {
  const server = ctx.unstuck('serve', '--no-monitor', '--port', '0')
  return waitFor('its address', () => /serving (http:\S+)\//.exec(server.output)?.[1])
}

async function cli(ctx: ProcessTestContext, ...args: string[]): Promise<any> {
  const program = ctx.unstuck(...args, '--json')
  await program.waitForExit()
  return JSON.parse(program.output)
}

async function statuses(ctx: ProcessTestContext): Promise<string[]> {
  return [...(await ctx.targets()).values()].map(({ status }) => status).sort()
}

/** What the dialog lists: `resume target CA/1 (91bc4f2a) of stage`. */
async function listedActions({ page }: Tab): Promise<string[]> {
  const heads = await page.locator('dialog .entry').all()
  const words = heads.map(async (entry) => {
    const word = await entry.locator('.pill').textContent()
    return `${word?.trim()} ${await entry.locator('.entry-what').textContent()}`
  })
  return (await Promise.all(words)).sort()
}

function describeVerdict({ action, target, key, source }: any): string {
  return `${action} target ${key} (${shortId(target)}) of ${source}`
}
