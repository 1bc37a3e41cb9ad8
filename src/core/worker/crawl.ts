import type { InTransaction } from '../model/checkpoint.ts'
import { closest } from '../model/closest.ts'
import { UsageError } from '../model/errors.ts'
import type { NewItem } from '../model/item.ts'
import { DEFAULT_POLICY, makePolicy, type Policy, type PolicyOptions } from '../model/policy.ts'
import { sourceMistake } from '../model/source.ts'
import type { NewTarget } from '../model/target.ts'

export type CrawlOptions = {
  /** Names what is crawled. A source has at most one live run. */
  source: string
  /** Called when a run starts, and again if planning was interrupted. The same key is the same target. */
  targets(): AsyncIterable<NewTarget> | Iterable<NewTarget>
  /** Fetches one page. Everything it returns is committed in one transaction; a page that throws commits nothing. */
  page(context: PageContext): Promise<PageResult>
  /** Pages in progress per process; 1 by default. */
  concurrency?: number
  policy?: PolicyOptions
  /** Called once per process before the first page, for example to start a browser. */
  setup?(): Promise<void> | void
  teardown?(): Promise<void> | void
}

export type PageContext = {
  target: { id: string; key: string; group: string | null; url: string | null }
  /** Address of this page: `next` of the previous page, or the target's own `url`. */
  url: string
  /** Page number, from 1. */
  page: number
  /** `cursor` of the previous page; null at first. */
  cursor: unknown
  lastItemId: string | null
  /** Fires when the page must end now: the deadline has come, or the claim was lost. Pass it to `fetch`. */
  signal: AbortSignal
  log(message: string): void
}

export type PageResult = {
  items?: readonly NewItem[]
  /** Address of the next page; null after the last one. */
  next: string | null
  pageTarget?: number
  skipped?: number
  lastItemId?: string
  cursor?: unknown
  /** Writes to your own tables, in the transaction of the page. */
  inTransaction?: InTransaction
}

/** A validated crawl, with defaults. */
export type Crawl = Required<Omit<CrawlOptions, 'policy'>> & {
  readonly policy: Policy
  /** As written in the module: the config's policies are applied on top of it. */
  readonly policyOptions: PolicyOptions
  readonly isCrawl: true
}

const KNOWN_OPTIONS = ['source', 'targets', 'page', 'concurrency', 'policy', 'setup', 'teardown']
const CONCURRENCY_MAX = 1_000

/** Defines a crawl. Nothing runs until `unstuck work` loads it. */
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
