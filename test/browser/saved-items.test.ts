import assert from 'node:assert/strict'
import { test } from 'node:test'
import { noChromium } from '../../src/testing/chromium.ts'
import { beginOne, registerWorker, savePage } from '../../src/testing/fixtures.ts'
import { HOSTILE_TEXTS } from '../../src/testing/hostile-text.ts'
import { createHttpTestContext } from '../../src/testing/http-test-context.ts'
import { assertHarmless } from './assert-harmless.ts'
import { BrowserSession } from './browser.ts'

test(
  'S9 the page of a run shows its latest items as text, with links to http(s) addresses only',
  { skip: noChromium },
  async () => {
    await using session = await BrowserSession.start()
    await using http = await createHttpTestContext({ tokens: false })
    const { store } = http
    const worker = await registerWorker(store, { source: 'shop', leaseMs: 600_000 })
    const begun = await beginOne(store, worker, { source: 'shop' })
    const hostile = Object.fromEntries(HOSTILE_TEXTS.map((text, n) => [`${n} ${text}`, text]))
    await savePage(store, begun, { items: [{ key: 'a', data: hostile }] })
    const data = {
      name: 'Acme <b>Ltd</b>',
      site: 'https://acme.example/about',
      bad: 'javascript:alert(1)',
      price: 12.5,
      tags: ['new'],
    }
    const items = [{ url: 'https://shop.example/acme', data }]
    await savePage(store, begun, { page: 2, expectedSeq: 1, items })
    await using tab = await session.open(http.url)
    await tab.go(`/runs/${begun.run}`)

    const section = tab.page.getByRole('region', { name: 'Saved items' })
    await section.getByText('Acme <b>Ltd</b>').waitFor()

    const hrefs = await section
      .locator('li a')
      .evaluateAll((all: any[]) => all.map(({ href }) => href as string))
    assert.deepEqual(hrefs.slice(0, 2), ['https://shop.example/acme', 'https://acme.example/about'])
    await section.getByText('javascript:alert(1)', { exact: true }).first().waitFor()
    await section.getByText('["new"]').waitFor()
    await section.getByText(/and \d+ more fields/).waitFor()
    await assertHarmless(tab, 'saved items')
    const csv = await section.getByRole('link', { name: 'CSV' }).getAttribute('href')
    const heard = await fetch(new URL(csv!, http.url))
    assert.match(await heard.text(), /^key,url,run,.*\n"?https:|\na,/)
  },
)
