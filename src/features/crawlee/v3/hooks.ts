import { createRequire } from 'node:module'
import { join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { bindToTask, currentTask } from '../claimed-request.ts'
import type { CrawleeSession, StoppableCrawler } from '../session.ts'
import { RequestQueue } from './request-queue.ts'

/**
 * Crawlee does not report to a storage which request the current code works on, which crawlers exist, and that a batch of new
 * requests is incomplete. The hooks add that to its crawlers and queues, once per copy of Crawlee in the process; crawlers on
 * another storage are left as they are.
 */

/** The modules of Crawlee that are hooked. */
export type CrawleeModules = {
  /** `await import('@crawlee/core')` */
  readonly core: unknown
  /** `await import('@crawlee/basic')` */
  readonly basic: unknown
}

type Method = (this: unknown, ...args: unknown[]) => Promise<unknown>
type Crawler = StoppableCrawler & {
  readonly maxRequestsPerCrawl?: number
  readonly handledRequestsCount: number
  readonly requestQueue?: { readonly name?: string }
  readonly config: { getStorageClient(): unknown; get(option: 'purgeOnStart'): unknown }
  readonly stats: { resetStore(): Promise<void> }
}
type Queue = { readonly client: unknown }

/** A storage whose crawlers and queues are hooked. */
export type HookOwner = { readonly client: unknown; readonly session: CrawleeSession }

const owners = new Set<HookOwner>()
const patched = new WeakSet<object>()

/** What is wrapped, and where it is. */
const PATCHED_METHODS = {
  basic: { class: 'BasicCrawler', methods: ['_init', '_runTaskFunction', 'pushData', 'teardown'] },
  core: { class: 'RequestProvider', methods: ['addRequestsBatched'] },
} as const

/** Describes the methods that these modules lack; null if none. */
export function findMissing(modules: unknown): string | null {
  const given = (modules ?? {}) as Partial<CrawleeModules>
  for (const [name, wanted] of Object.entries(PATCHED_METHODS)) {
    const found = prototypeOf(given[name as keyof CrawleeModules], wanted.class)
    const missing = found
      ? wanted.methods.find((method) => typeof found[method] !== 'function')
      : ''
    if (missing !== undefined) return `${name}.${wanted.class}${missing && `.prototype.${missing}`}`
  }
  return null
}

/** Wraps Crawlee's methods for this storage. Returns why it cannot; null on success. */
export function installHooks(owner: HookOwner, given: CrawleeModules | undefined): string | null {
  owners.add(owner)
  const copies = given ? [given] : findCrawlee()
  if (copies.length === 0) return 'no Crawlee was found to work with'
  let problem: string | null = null
  for (const copy of copies) {
    const missing = findMissing(copy)
    if (missing !== null) problem = `the Crawlee that was found has no ${missing}`
    else patch(copy)
  }
  return problem
}

export function removeHooks(owner: HookOwner): void {
  owners.delete(owner)
}

function patch({ core, basic }: CrawleeModules): void {
  patchCrawler(prototypeOf(basic, PATCHED_METHODS.basic.class)!)
  patchQueue(prototypeOf(core, PATCHED_METHODS.core.class)!)
}

function patchCrawler(crawler: Record<string, unknown>): void {
  if (patched.has(crawler)) return
  patched.add(crawler)
  const [init, runTask] = [crawler['_init'] as Method, crawler['_runTaskFunction'] as Method]
  const teardown = crawler['teardown'] as Method
  crawler['_init'] = async function (this: Crawler, ...args: unknown[]) {
    await init.apply(this, args)
    ownerOf(this)?.session.crawlerStarted(this)
  }
  crawler['_runTaskFunction'] = function (this: Crawler, ...args: unknown[]) {
    return currentTask.run({ request: null }, () => runTask.apply(this, args))
  }
  crawler['pushData'] = bindPerTask(crawler['pushData'] as Method)
  crawler['teardown'] = async function (this: Crawler, ...args: unknown[]) {
    const owner = ownerOf(this)
    // On a queue with a name the next start continues.
    const startsAnew = isAtLimit(this) && this.requestQueue?.name === DEFAULT_QUEUE
    owner?.session.crawlerEnded(this, startsAnew ? LIMIT_OPTION : null)
    await teardown.apply(this, args)
    // Crawlee keeps the count with the queue: with it, the next start would be over its limit at once.
    if (owner && isAtLimit(this)) await this.stats.resetStore()
  }
}

/**
 * Crawlee binds it to the crawler once per request, for its handler. What that is called with belongs to the request, also when
 * a queue of jobs, a timer or a browser calls it in the asynchronous context of another.
 */
function bindPerTask(method: Method): Method {
  const plain: Method = function (...args) {
    return method.apply(this, args)
  }
  const bind = (crawler: unknown): Method => bindToTask(method.bind(crawler))
  return Object.assign(plain, { bind })
}

function ownerOf(crawler: Crawler): HookOwner | undefined {
  const client = crawler.config.getStorageClient()
  return [...owners].find((owner) => owner.client === client)
}

/** Crawlee waits for the first thousand only, and pauses between the others: a kill would lose them. */
function patchQueue(queue: Record<string, unknown>): void {
  if (patched.has(queue)) return
  patched.add(queue)
  const addBatched = queue['addRequestsBatched'] as Method
  queue['addRequestsBatched'] = function (this: Queue, requests: unknown, options: object = {}) {
    const { client } = this
    const isOurs =
      client instanceof RequestQueue && [...owners].some(({ session }) => client.belongsTo(session))
    const allAtOnce = { waitBetweenBatchesMillis: 0, ...options, waitForAllRequestsToBeAdded: true }
    return addBatched.call(this, requests, isOurs ? allAtOnce : options)
  }
}

function prototypeOf(module: unknown, name: string): Record<string, unknown> | null {
  const found = (module as Record<string, { prototype?: object } | undefined> | null)?.[name]
  return (found?.prototype as Record<string, unknown> | undefined) ?? null
}

/** The packages that bring them along. */
const CRAWLEE_PACKAGES = [
  'crawlee',
  ...['cheerio', 'playwright', 'puppeteer', 'http', 'jsdom', 'linkedom', 'basic'].map(
    (name) => `@crawlee/${name}`,
  ),
]

/** The copies that are loaded, which is nearly always one; else what the program would load. */
function findCrawlee(): CrawleeModules[] {
  const require = createRequire(import.meta.url)
  const loaded = Object.keys(require.cache).filter((path) =>
    /[\\/]@crawlee[\\/]basic[\\/]index\.js$/.test(path),
  )
  const paths = loaded.length > 0 ? loaded : resolveCrawlee()
  return paths.flatMap((path) => {
    try {
      const from = createRequire(path)
      return [{ basic: from(path) as unknown, core: from('@crawlee/core') as unknown }]
    } catch {
      return []
    }
  })
}

function resolveCrawlee(): string[] {
  const program = process.argv[1]
  const paths = [...(program ? [program] : []), join(process.cwd(), 'index.js')]
  for (const from of paths) {
    for (const name of CRAWLEE_PACKAGES) {
      try {
        const path = createRequire(pathToFileURL(from)).resolve(name)
        return [createRequire(path).resolve('@crawlee/basic')]
      } catch {
        // Not here.
      }
    }
  }
  return []
}

const LIMIT_OPTION = 'maxRequestsPerCrawl'
const DEFAULT_QUEUE = 'default'

/** Whether it has handled as many requests as allowed, and its next start counts from zero, as it does in Crawlee. */
function isAtLimit({ maxRequestsPerCrawl, handledRequestsCount, config }: Crawler): boolean {
  if (!maxRequestsPerCrawl || config.get('purgeOnStart') === false) return false
  return handledRequestsCount >= maxRequestsPerCrawl
}
