import { createRequire } from 'node:module'
import { join } from 'node:path'
import process from 'node:process'
import { pathToFileURL } from 'node:url'
import { boundToTask, currentTask } from '../claimed-request.ts'
import type { StoppableCrawler } from '../session.ts'
import { forgetCount, limitOf, type LimitedCrawler } from './limit.ts'

/**
 * What Crawlee tells no storage: which request the code at hand works on, which crawlers there are, and that a batch of new
 * requests is only half in. Its crawlers and queues are taught to, once per copy of Crawlee in the process; those on another storage
 * are left as they are.
 */
export type CrawleeModules = { readonly core: unknown; readonly basic: unknown }

type Method = (this: unknown, ...args: unknown[]) => Promise<unknown>
type Crawler = StoppableCrawler &
  LimitedCrawler & { readonly config: { getStorageClient(): unknown } }
type Queue = { readonly client: unknown }

/** Whose crawlers and queues these are. */
export interface Owner {
  /** Whether it is the storage of a crawler. */
  isStorage(client: unknown): boolean
  /** Whether it is one of its queues. */
  isQueue(client: unknown): boolean
  begins(crawler: StoppableCrawler): void
  ends(crawler: StoppableCrawler, limit: string | null): void
}

const owners = new Set<Owner>()
const taught = new WeakSet<object>()

/** What is wrapped, and where it is. */
const METHODS = {
  basic: { class: 'BasicCrawler', methods: ['_init', '_runTaskFunction', 'pushData', 'teardown'] },
  core: { class: 'RequestProvider', methods: ['addRequestsBatched'] },
} as const

/** What these modules lack of what is wrapped, in words; null when nothing. */
export function whatIsMissing(modules: unknown): string | null {
  const given = (modules ?? {}) as Partial<CrawleeModules>
  for (const [name, wanted] of Object.entries(METHODS)) {
    const found = prototypeOf(given[name as keyof CrawleeModules], wanted.class)
    const missing = found
      ? wanted.methods.find((method) => typeof found[method] !== 'function')
      : ''
    if (missing !== undefined) return `${name}.${wanted.class}${missing && `.prototype.${missing}`}`
  }
  return null
}

/** From here on this storage hears of its crawlers. Answers why it does not, in words; null when it does. */
export function hook(owner: Owner, given: CrawleeModules | undefined): string | null {
  owners.add(owner)
  const copies = given ? [given] : findCrawlee()
  if (copies.length === 0) return 'no Crawlee was found to work with'
  let trouble: string | null = null
  for (const copy of copies) {
    const missing = whatIsMissing(copy)
    if (missing !== null) trouble = `the Crawlee that was found has no ${missing}`
    else teach(copy)
  }
  return trouble
}

export function unhook(owner: Owner): void {
  owners.delete(owner)
}

function teach({ core, basic }: CrawleeModules): void {
  teachCrawler(prototypeOf(basic, METHODS.basic.class)!)
  teachQueue(prototypeOf(core, METHODS.core.class)!)
}

function teachCrawler(crawler: Record<string, unknown>): void {
  if (taught.has(crawler)) return
  taught.add(crawler)
  const [init, runTask] = [crawler['_init'] as Method, crawler['_runTaskFunction'] as Method]
  const teardown = crawler['teardown'] as Method
  crawler['_init'] = async function (this: Crawler, ...args: unknown[]) {
    await init.apply(this, args)
    ownerOf(this)?.begins(this)
  }
  crawler['_runTaskFunction'] = function (this: Crawler, ...args: unknown[]) {
    return currentTask.run({ request: null }, () => runTask.apply(this, args))
  }
  crawler['pushData'] = boundPerTask(crawler['pushData'] as Method)
  crawler['teardown'] = async function (this: Crawler, ...args: unknown[]) {
    const owner = ownerOf(this)
    owner?.ends(this, limitOf(this))
    await teardown.apply(this, args)
    if (owner) await forgetCount(this)
  }
}

/**
 * Crawlee binds it to the crawler once per request, for its handler. What that is called with belongs to the request, also when
 * a queue of jobs, a timer or a browser calls it in the asynchronous context of another.
 */
function boundPerTask(method: Method): Method {
  const plain: Method = function (...args) {
    return method.apply(this, args)
  }
  const bind = (crawler: unknown): Method => boundToTask(method.bind(crawler))
  return Object.assign(plain, { bind })
}

function ownerOf(crawler: Crawler): Owner | undefined {
  const client = crawler.config.getStorageClient()
  return [...owners].find((owner) => owner.isStorage(client))
}

/** Crawlee waits for the first thousand only, and pauses between the others: a kill would lose them. */
function teachQueue(queue: Record<string, unknown>): void {
  if (taught.has(queue)) return
  taught.add(queue)
  const addBatched = queue['addRequestsBatched'] as Method
  queue['addRequestsBatched'] = function (this: Queue, requests: unknown, options: object = {}) {
    const isOurs = [...owners].some((owner) => owner.isQueue(this.client))
    const whole = { waitBetweenBatchesMillis: 0, ...options, waitForAllRequestsToBeAdded: true }
    return addBatched.call(this, requests, isOurs ? whole : options)
  }
}

function prototypeOf(module: unknown, name: string): Record<string, unknown> | null {
  const found = (module as Record<string, { prototype?: object } | undefined> | null)?.[name]
  return (found?.prototype as Record<string, unknown> | undefined) ?? null
}

/** The packages that bring them along. */
const CARRIERS = [
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
  const paths = loaded.length > 0 ? loaded : whatWouldBeLoaded()
  return paths.flatMap((path) => {
    try {
      const from = createRequire(path)
      return [{ basic: from(path) as unknown, core: from('@crawlee/core') as unknown }]
    } catch {
      return []
    }
  })
}

function whatWouldBeLoaded(): string[] {
  const program = process.argv[1]
  const places = [...(program ? [program] : []), join(process.cwd(), 'index.js')]
  for (const place of places) {
    for (const carrier of CARRIERS) {
      try {
        const path = createRequire(pathToFileURL(place)).resolve(carrier)
        return [createRequire(path).resolve('@crawlee/basic')]
      } catch {
        // Not here.
      }
    }
  }
  return []
}
