import type { Problem } from '../core/model/error-data.ts'
import { UsageError } from '../core/model/errors.ts'
import {
  ANYTHING,
  FUNCTION,
  integerBetween,
  optional,
  problemsIn,
  type Field,
  type Fields,
} from '../core/model/fields.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { makePolicy, type PolicyOptions } from '../lib/validate/policy-options.ts'
import { sourceMistake } from '../lib/validate/source.ts'
import { isSchema, type StandardSchema } from '../core/model/standard-schema.ts'
import type { CrawlDefinition } from '../core/worker/crawl.ts'
import type {
  Awaitable,
  ErrorDecision,
  PageContext,
  PageFailure,
  PageResult,
  PlanningContext,
  SetupContext,
  Targets,
} from '../core/worker/crawl-options.ts'

/**
 * What `defineCrawl` takes. `In`: data that a page returns, `C`: cursor, `T`: data of a target, `R`: resources, `S`: what
 * `schema.item` accepts, `D`: data as saved. All are inferred.
 */
export type CrawlOptions<In, C, T, R, S, D> = {
  /** What is crawled. At most one run of a source is live at a time. */
  source: string
  /** Checks data at run time. @default none */
  schema?: CrawlSchemas<C, T, S, D> | undefined
  /** The cursor of a target's first page; gives `cursor` its type. @default null */
  initialCursor?: C
  /**
   * A list, or a function that is called when a new run starts, and again if planning was interrupted. The same key is the
   * same target.
   */
  targets: Targets<T> | ((context: PlanningContext) => Targets<T>)
  /** Fetches one page. All it returns is saved in one transaction; if it throws, nothing is saved and the page is retried. */
  page(
    context: PageContext<C, T, R>,
  ): Awaitable<PageResult<[S] extends [never] ? In : NoInfer<S>, NoInfer<C>>>
  /**
   * Called once per process, before the first page. Its result is `context.resources`; a disposable one is disposed at the
   * end. @default nothing
   */
  setup?(context: SetupContext): Awaitable<R>
  /** Called once per process, after the last page. @default nothing */
  teardown?(resources: R): unknown
  /** Decides about an error of a page; `undefined`: the policy decides. @default the policy decides */
  onError?(failure: PageFailure<C, T, R>): Awaitable<ErrorDecision | undefined>
  /** Pages in flight per process, 1 to 1,000. @default 1 */
  concurrency?: number | undefined
  /** For this crawl; the config's `policies[source]` wins. @default {} */
  policy?: PolicyOptions | undefined
}

/** Standard Schemas (Zod, Valibot, ArkType …) of a crawl. */
export type CrawlSchemas<C, T, S, D> = {
  /** Checks and converts the data of each item before it is saved. A page that does not fit is retried. @default none */
  item?: StandardSchema<S, D>
  /** Checks a cursor that was stored, perhaps by an older version of the crawl. @default none */
  cursor?: StandardSchema<unknown, C>
  /** Checks the data of a target, perhaps planned by an older version of the crawl. @default none */
  target?: StandardSchema<unknown, T>
}

/** A crawl, as `defineCrawl` returns it: the default export of the file that `unstuck work` runs. */
export type Crawl<D = unknown, C = unknown, T = unknown> = {
  /** What is crawled. */
  readonly source: string
  /** Carries the inferred types; not there at run time. */
  readonly '~types'?: CrawlTypes<D, C, T> | undefined
}

/** The inferred types of a crawl. */
export type CrawlTypes<D, C, T> = {
  /** Data of an item as saved. */
  readonly item: D
  /** The cursor. */
  readonly cursor: C
  /** Data of a target. */
  readonly target: T
}

/** The type of the data that a crawl saves: `ItemData<typeof crawl>`. */
export type ItemData<X extends Crawl> = NonNullable<X['~types']>['item']

/** A crawl as `unstuck work` loads it. */
export type DefinedCrawl = CrawlDefinition & {
  /** As written, so that the config can override it. */
  readonly policyOptions: PolicyOptions
}

const CONCURRENCY_MAX = 1_000

const SCHEMA: Field = { rule: 'a Standard Schema, as of Zod or Valibot', isValid: isSchema }
const SCHEMA_FIELDS: Fields = {
  item: optional(SCHEMA),
  cursor: optional(SCHEMA),
  target: optional(SCHEMA),
}
const FIELDS: Fields = {
  source: ANYTHING,
  schema: optional(ANYTHING),
  initialCursor: optional(ANYTHING),
  targets: { rule: 'a list or a function that returns one', isValid: isTargets },
  page: FUNCTION,
  setup: optional(FUNCTION),
  teardown: optional(FUNCTION),
  onError: optional(FUNCTION),
  concurrency: optional(integerBetween(1, CONCURRENCY_MAX)),
  policy: optional(ANYTHING),
}

function isTargets(value: unknown): boolean {
  if (typeof value === 'function') return true
  if (typeof value !== 'object' || value === null) return false
  return Symbol.iterator in value || Symbol.asyncIterator in value
}

/**
 * Describes a crawl. Nothing runs until `unstuck work FILE` takes it. Claims, checkpoints, retries, resuming after a crash
 * and stopping are done for you. Types are inferred: do not write generics.
 * @throws {UsageError} with every problem at once, for example a mistyped option.
 * @example export default defineCrawl({ source: 'news', targets: ['https://news.example/'], page: async ({ url }) => ({ items: await scrape(url), next: null }) })
 */
export function defineCrawl<
  In,
  C = unknown,
  T = undefined,
  R = undefined,
  S = never,
  D = [S] extends [never] ? In : S,
>(options: CrawlOptions<In, C, T, R, S, D>): Crawl<D, C, T> {
  const given = (options ?? {}) as unknown as Partial<CrawlDefinition> & { policy?: PolicyOptions }
  const { policy, mistakes } = makePolicy(given.policy, DEFAULT_POLICY)
  const sourceError = sourceMistake(given.source)
  const problems: Problem[] = [
    ...problemsIn(given, FIELDS, 'the crawl').filter(({ path }) => path !== 'source'),
    ...(sourceError ? [{ path: 'source', message: `source ${sourceError}`, hint: null }] : []),
    ...(given.schema === undefined
      ? []
      : problemsIn(given.schema, SCHEMA_FIELDS, 'schema', 'schema')),
    ...mistakes.map((message) => ({ path: 'policy', message, hint: null })),
  ]
  if (problems.length > 0) {
    const list = problems.map(({ message }) => `  - ${message}`).join('\n')
    throw new UsageError(`This crawl cannot be run:\n${list}`, { problems })
  }
  const targets: unknown = given.targets
  const made: DefinedCrawl = {
    source: given.source!,
    schema: given.schema ?? {},
    initialCursor: given.initialCursor ?? null,
    targets: typeof targets === 'function' ? given.targets! : () => targets as Targets<unknown>,
    page: given.page!,
    setup: given.setup ?? (() => {}),
    teardown: given.teardown ?? (() => {}),
    onError: given.onError ?? null,
    concurrency: given.concurrency ?? 1,
    policy,
    policyOptions: given.policy ?? {},
    isCrawl: true,
  }
  return made
}
