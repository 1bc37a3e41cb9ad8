import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { shortId } from '../../src/core/model/id.ts'
import { noChromium } from '../../src/testing/chromium.ts'
import { isLong } from '../../src/testing/length.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ENGINES, Stage, until } from '../processes/harness.ts'
import { Browsing, type Tab } from './browser.ts'

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
    let browsing: Browsing
    before(async () => {
      browsing = await Browsing.start()
    })
    after(() => browsing?.[Symbol.asyncDispose]())

    test('a worker is killed: the open page says so, shows what would be done, does it and takes it back', async () => {
      await using stage = await Stage.set(engine)
      const url = await serve(stage)
      const worker = stage.unstuck('work', stage.crawl(CRAWL))
      await stage.marked('second', 4)
      await using tab = await browsing.visit(url)
      const { page } = tab
      await tab.go('/')
      await page.getByText('1 run healthy').waitFor()
      await page.evaluate('window.isTheSame = true')

      worker.signal('SIGKILL')
      await page.getByText('Something is stuck').waitFor()
      await page.getByRole('button', { name: 'Unstick' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('4 things would be done.').waitFor()

      const { verdicts } = await cli(stage, 'recover', '--dry-run')
      const before = await stage.targets()
      assert.deepEqual(verdicts.map(({ action }: any) => action).sort(), [
        'hold',
        'resume',
        'resume',
        'resume',
      ])
      assert.deepEqual(await deeds(tab), verdicts.map(inWords).sort())
      assert.deepEqual(await stage.verdicts(), [], 'a preview changes nothing')

      await dialog.getByRole('button', { name: 'Recover 4' }).click()
      await dialog.getByText('4 things were done.').waitFor()
      assert.deepEqual(await statuses(stage), ['planned', 'planned', 'planned', 'stuck'])
      await dialog.getByRole('button', { name: 'Take it back' }).click()
      await dialog.getByText('Taken back.').waitFor()
      assert.deepEqual(await statuses(stage), ['planned', 'planned', 'planned', 'planned'])
      await dialog.getByRole('button', { name: 'Close' }).last().click()
      for (const { key, page, next } of (await stage.targets()).values()) {
        assert.deepEqual([page, next], [before.get(key)!.page, before.get(key)!.next])
      }
      await page.getByText('Nothing is stuck').waitFor()
      assert.equal(await page.evaluate('window.isTheSame'), true, 'nothing was loaded anew')
      assert.deepEqual(tab.troubles, [])
    })

    test('a run that nobody came back for is cleaned, and is back with one click', async () => {
      await using stage = await Stage.set(engine)
      await cli(stage, 'enqueue', stage.crawl(CRAWL))
      await stage.database.later(25 * HOUR_MS)
      const url = await serve(stage)
      await using tab = await browsing.visit(url)
      const { page } = tab
      await tab.go('/recovery')

      await page.getByRole('button', { name: 'Clean 1 dead run' }).click()
      const dialog = page.getByRole('dialog')
      await dialog.getByText('1 dead run would be marked').waitFor()
      const { dead } = await cli(stage, 'clean', '--dry-run')
      assert.deepEqual(
        await deeds(tab),
        dead.map(({ id }: any) => `clean run ${shortId(id)} of stage`),
      )
      assert.equal((await stage.run()).status, 'queued')

      await dialog.getByRole('button', { name: 'Clean', exact: true }).click()
      await dialog.getByText('1 run is marked').waitFor()
      assert.equal((await stage.run()).status, 'abandoned')
      await dialog.getByRole('button', { name: 'Take it back' }).click()
      await dialog.getByText('Taken back.').waitFor()
      assert.equal((await stage.run()).status, 'queued')
      assert.deepEqual(tab.troubles, [])
    })
  })
}

/** A server that looks after nobody, so that what is stuck stays so until a person comes. */
async function serve(stage: Stage): Promise<string> {
  const server = stage.unstuck('serve', '--no-monitor', '--port', '0')
  return until('its address', () => /serving (http:\S+)\//.exec(server.output)?.[1])
}

async function cli(stage: Stage, ...args: string[]): Promise<any> {
  const program = stage.unstuck(...args, '--json')
  await program.end()
  return JSON.parse(program.output)
}

async function statuses(stage: Stage): Promise<string[]> {
  return [...(await stage.targets()).values()].map(({ status }) => status).sort()
}

/** What the dialog lists: `resume target 91bc4f2a of stage`. */
async function deeds({ page }: Tab): Promise<string[]> {
  const heads = await page.locator('dialog .deed').all()
  const words = heads.map(async (deed) => {
    const word = await deed.locator('.pill').textContent()
    return `${word?.trim()} ${await deed.locator('.deed-what').textContent()}`
  })
  return (await Promise.all(words)).sort()
}

function inWords({ action, target, source }: any): string {
  return `${action} target ${shortId(target)} of ${source}`
}
