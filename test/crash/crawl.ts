import { defineCrawl } from '../../src/index.ts'

const site = process.env['CRASH_SITE']!
const targets = Number(process.env['CRASH_TARGETS'])
const [p1, p2] = process.env['CRASH_DB']!.startsWith('postgres') ? ['$1', '$2'] : ['?', '?']

/** The crawl of the crash tests. Its ledger has no unique key: work done twice shows. */
export default defineCrawl({
  source: 'crash',
  *targets() {
    for (let n = 0; n < targets; n++)
      yield { key: `t${n}`, group: `g${n % 3}`, url: `${site}/t/${n}` }
  },
  async page({ target, url, page, signal }) {
    const response = await fetch(url, { signal, headers: { 'x-pid': String(process.pid) } })
    const { items, next } = (await response.json()) as {
      items: { url: string; data: unknown }[]
      next: string | null
    }
    return {
      items,
      next: next === null ? null : site + next,
      inTransaction: (tx) =>
        tx.query(`INSERT INTO ledger (target, page) VALUES (${p1}, ${p2})`, [target.key, page]),
    }
  },
  concurrency: 1,
  policy: { retries: 100, backoff: '50ms' },
})
