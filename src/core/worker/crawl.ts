import type { InTransaction } from '../model/checkpoint.ts'
import { closest } from '../model/closest.ts'
import { UsageError } from '../model/errors.ts'
import type { NewItem } from '../model/item.ts'
import { DEFAULT_POLICY, makePolicy, type Policy, type PolicyOptions } from '../model/policy.ts'
import { sourceMistake } from '../model/source.ts'
import type { NewTarget } from '../model/target.ts'

export type CrawlOptions = {
  /** What is crawled. At most one run of it is live at a time. */
  source: string
  /** Asked when a new run starts, and again when planning was cut short. The same key twice is one target. */
  targets(): AsyncIterable<NewTarget> | Iterable<NewTarget>
  /** One page. Everything it returns is committed together; a page that throws commits nothing. */
  page(context: PageContext): Promise<PageResult>
  /** Pages in flight per process. */
  concurrency?: number
  policy?: PolicyOptions
  /** A browser, a pool: once per process. */
  setup?(): Promise<void> | void
  teardown?(): Promise<void> | void
}

export type PageContext = {
  target: { id: string; key: string; group: string | null; url: string | null }
  /** Where this page is: what the last one returned as `next`, or the target's own address. */
  url: string
  /** Counts from 1. */
  page: number
  /** What the last page returned as `cursor`; null at first. */
  cursor: unknown
  lastItemId: string | null
  /** Fires when the worker must stop now or the target is no longer ours. Hand it to `fetch`. */
  signal: AbortSignal
  log(message: string): void
}

export type PageResult = {
  items?: readonly NewItem[]
  /** The next page's address; null when this was the last one. */
  next: string | null
  pageTarget?: number
  skipped?: number
  lastItemId?: string
  cursor?: unknown
  /** The user's own tables, in the page's transaction: all of it or nothing. */
  inTransaction?: InTransaction
}

/** Options with defaults in place and every mistake already found. */
export type Crawl = Required<Omit<CrawlOptions, 'policy'>> & {
  readonly policy: Policy
  /** As written, so that the config can have its word on top. */
  readonly policyOptions: PolicyOptions
  readonly isCrawl: true
}

const KNOWN_OPTIONS = ['source', 'targets', 'page', 'concurrency', 'policy', 'setup', 'teardown']
const CONCURRENCY_MAX = 1_000

/** Describes a crawl. Nothing runs until `unstuck work` takes it. */
export function defineCrawl(options: CrawlOptions): Crawl {
  const mistakes: string[] = []
  const given: Partial<CrawlOptions> = options ?? {}
  for (const name of Object.keys(given)) {
    if (KNOWN_OPTIONS.includes(name)) continue
    const hint = closest(name, KNOWN_OPTIONS)
    mistakes.push(`there is no ${name}${hint ? `; did you mean ${hint}?` : ''}`)
  }
  const { source, targets, page, concurrency = 1, setup = () => {}, teardown = () => {} } = given
  const sourceError = sourceMistake(source)
  if (sourceError) mistakes.push(`source ${sourceError}`)
  for (const [name, value] of Object.entries({ targets, page, setup, teardown })) {
    if (typeof value !== 'function') mistakes.push(`${name} must be a function`)
  }
  if (!Number.isInteger(concurrency) || concurrency < 1 || concurrency > CONCURRENCY_MAX) {
    mistakes.push(`concurrency must be a whole number from 1 to ${CONCURRENCY_MAX}`)
  }
  const { policy, mistakes: policyMistakes } = makePolicy(given.policy, DEFAULT_POLICY)
  mistakes.push(...policyMistakes)
  if (mistakes.length > 0) {
    throw new UsageError(`This crawl cannot be run:\n${mistakes.map((m) => `  - ${m}`).join('\n')}`)
  }
  return {
    source: source!,
    targets: targets!,
    page: page!,
    concurrency,
    setup,
    teardown,
    policy,
    policyOptions: given.policy ?? {},
    isCrawl: true,
  }
}
