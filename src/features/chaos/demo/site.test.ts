import assert from 'node:assert/strict'
import { test } from 'node:test'
import { canonicalUrl } from '../../../core/model/url.ts'
import { makeDirectory, Site, type SitePage } from './site.ts'

const directory = makeDirectory(7, 3)

test('the same seed makes the same directory, another seed another one', () => {
  assert.deepEqual(makeDirectory(7, 3), directory)
  assert.notDeepEqual(makeDirectory(8, 3), directory)
})

test('every listing is a business under one right address, and each business is listed', () => {
  const listed = directory.targets.flatMap(({ pages }) => pages.flat())
  const keys = listed.map(({ url }) => canonicalUrl(url))
  assert.deepEqual(new Set(keys), new Set(directory.businesses.keys()))
  for (const { url, ...business } of listed) {
    assert.deepEqual(business, directory.businesses.get(canonicalUrl(url)!))
  }
})

test('the last page waits for release', async () => {
  const site = await Site.open(makeDirectory(7, 1), { slowdown: 0.01, holdsLastPage: true })
  try {
    const { key, pages } = makeDirectory(7, 1).targets[0]!
    await fetchPage(`${site.address}/${key}?page=1`)
    const last = fetchPage(`${site.address}/${key}?page=${pages.length}`)
    while (site.remainingMs(key) !== Infinity) await new Promise((resolve) => setImmediate(resolve))
    site.release()
    assert.equal((await last).next, null)
  } finally {
    await site.close()
  }
})

test('more sections than there are cities and trades have keys of their own', () => {
  const { targets } = makeDirectory(7, 460)
  assert.equal(new Set(targets.map(({ key }) => key)).size, 460)
  const few = makeDirectory(7, 20).targets
  assert.deepEqual(targets.slice(0, 20), few)
})

test('some addresses come in several spellings, and some businesses on two pages', () => {
  const { targets, businesses } = makeDirectory(7, 40)
  const listed = targets.flatMap(({ pages }) => pages.flat())
  assert.ok(listed.length > businesses.size)
  assert.ok(new Set(listed.map(({ url }) => url)).size > businesses.size)
})

test('every page can be reached from its section, however often the site fails at first', async () => {
  const site = await Site.open(directory, { slowdown: 0.01 })
  try {
    const sections = (await (await fetch(`${site.address}/sections`)).json()) as { url: string }[]
    const seen = await Promise.all(sections.map(({ url }) => countPages(url)))
    assert.deepEqual(
      seen,
      directory.targets.map(({ pages }) => pages.length),
    )
    assert.equal(site.stats.served, directory.pages)
    assert.equal(site.stats.refetched, 0)
  } finally {
    await site.close()
  }
})

test('a page fetched twice is noticed, one that was refused before is not', async () => {
  const site = await Site.open(directory, { slowdown: 0.01 })
  try {
    const url = `${site.address}/${directory.targets[0]!.key}`
    await fetchPage(url)
    assert.equal(site.stats.refetched, 0)
    await fetchPage(url)
    assert.equal(site.stats.refetched, 1)
  } finally {
    await site.close()
  }
})

async function countPages(first: string): Promise<number> {
  let count = 0
  for (let url: string | null = first; url !== null; count++) url = (await fetchPage(url)).next
  return count
}

async function fetchPage(url: string): Promise<SitePage> {
  for (;;) {
    const response = await fetch(url)
    const body = await response.json()
    if (response.ok) return body as SitePage
    assert.ok(response.status === 500 || response.headers.has('retry-after'))
  }
}
