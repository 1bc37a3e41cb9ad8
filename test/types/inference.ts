/** Compiled by `npm run types`, never run: what is inferred, and what must not compile. */

import {
  defineCrawl,
  UnstuckError,
  type Crawl,
  type Duration,
  type ItemData,
} from '../../src/index.ts'
import * as v from 'valibot'

type Eq<A, B> = (<X>() => X extends A ? 1 : 2) extends <X>() => X extends B ? 1 : 2 ? true : false
function is<_T extends true>() {}

// 1. plain
const a = defineCrawl({
  source: 'directory',
  async *targets() {
    for (const city of ['a', 'b']) yield { key: `p/${city}`, group: city, url: `https://x/${city}` }
  },
  async page({ url, signal, cursor, target, page }) {
    is<Eq<typeof cursor, unknown>>()
    is<Eq<typeof target.data, undefined>>()
    const response = await fetch(url, { signal })
    const { companies, next } = (await response.json()) as {
      companies: { url: string; name: string }[]
      next: string | null
    }
    return { items: companies.map(({ url, name }) => ({ url, data: { name, page } })), next }
  },
})
is<Eq<ItemData<typeof a>, { name: string; page: number }>>()

// 2. with target data, cursor, resources
const b = defineCrawl({
  source: 'x',
  initialCursor: { offset: 0, token: null as string | null },
  async *targets() {
    yield { key: 'a', data: { city: 'miami', state: 'FL' } }
  },
  setup: async () => ({ browser: new Map<string, number>() }),
  async page({ cursor, target, resources }) {
    is<Eq<typeof cursor, { offset: number; token: string | null }>>()
    is<Eq<typeof target.data, { city: string; state: string }>>()
    is<Eq<typeof resources, { browser: Map<string, number> }>>()
    return {
      items: [{ key: 'k', data: { n: cursor.offset } }],
      cursor: { offset: cursor.offset + 10, token: null },
      done: false,
    }
  },
  teardown({ browser }) {
    browser.clear()
  },
})
is<Eq<ItemData<typeof b>, { n: number }>>()

// 3. A schema that converts
const c = defineCrawl({
  source: 'x',
  schema: {
    item: v.object({
      name: v.string(),
      price: v.pipe(v.union([v.string(), v.number()]), v.transform(Number)),
    }),
  },
  targets: ['https://a.example/', new URL('https://b.example/')],
  async page({ url, target }) {
    is<Eq<typeof target.data, undefined>>()
    return { items: [{ url, data: { name: 'x', price: '12' } }], next: null }
  },
})
is<Eq<ItemData<typeof c>, { name: string; price: number }>>()

// 4. Schemas of item and target
const d = defineCrawl({
  source: 'x',
  schema: { item: v.object({ name: v.string() }), target: v.object({ id: v.number() }) },
  *targets() {
    yield { key: '1', data: { id: 1 } }
  },
  page({ target }) {
    is<Eq<typeof target.data, { id: number }>>()
    return { items: [{ key: 'x', data: { name: 'n' } }], next: null }
  },
})
is<Eq<ItemData<typeof d>, { name: string }>>()

// 5. targets with context param
const e = defineCrawl({
  source: 'x',
  async *targets({ signal, input }) {
    void signal
    void input
    yield { key: 'a', data: { depth: 1 } }
  },
  async page({ target }) {
    is<Eq<typeof target.data, { depth: number }>>()
    return { next: null }
  },
})
void e

// 6. no items at all
const f = defineCrawl({ source: 'x', targets: ['https://x'], page: async () => ({ next: null }) })
is<Eq<ItemData<typeof f>, unknown>>()

// What must not compile
defineCrawl({
  source: 'x',
  schema: { item: v.object({ name: v.string() }) },
  targets: ['https://x'],
  // @ts-expect-error wrong item
  async page() {
    return { items: [{ key: 'x', data: { nam: 'n' } }], next: null }
  },
})
defineCrawl({
  source: 'x',
  targets: ['https://x'],
  page: async () => ({ next: null }),
  // @ts-expect-error unknown option
  concurency: 5,
})
// @ts-expect-error next missing
defineCrawl({ source: 'x', targets: ['https://x'], page: async () => ({ items: [] }) })
defineCrawl({
  source: 'x',
  initialCursor: { offset: 0 },
  targets: ['https://x'],
  // @ts-expect-error cursor of another type
  page: async () => ({ cursor: 'x', next: null }),
})
defineCrawl({
  source: 'x',
  *targets() {
    yield { key: 'a', data: { id: 1 } }
    yield { key: 'b' }
  },
  page: async ({ target }) => {
    // @ts-expect-error one target has no data
    void target.data.id
    return { next: null }
  },
})
const sec = 5 as number
const du: Duration[] = ['5s', `${sec}s`, '1.5h']
// @ts-expect-error words
const bad: Duration = '5 minutes'
// @ts-expect-error number
const bad2: Duration = 5000
void du
void bad
void bad2

is<Eq<typeof a, Crawl<{ name: string; page: number }, unknown, undefined>>>()
declare const error: unknown
if (UnstuckError.is(error, 'E_ALREADY_DONE')) is<Eq<typeof error.data.finishedAt, string>>()
// @ts-expect-error no such code
UnstuckError.is(error, 'E_ALREADY_DON')
