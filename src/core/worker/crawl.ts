import { UsageError } from '../model/errors.ts'
import type { Problem } from '../model/error-data.ts'
import {
  ANYTHING,
  FUNCTION,
  integerBetween,
  optional,
  problemsIn,
  type Field,
  type Fields,
} from '../model/fields.ts'
import { DEFAULT_POLICY, makePolicy, type Policy, type PolicyOptions } from '../model/policy.ts'
import { sourceMistake } from '../model/source.ts'
import { isSchema, type StandardSchema } from '../model/standard-schema.ts'
import type {
  Awaitable,
  Crawl,
  CrawlOptions,
  ErrorDecision,
  PageContext,
  PageFailure,
  PageResult,
  PlanningContext,
  SetupContext,
  Targets,
} from './crawl-options.ts'

type AnyContext = PageContext<unknown, unknown, unknown>

/** A crawl as the worker uses it: defaults in place, checked, its types erased. */
export type CrawlDefinition = {
  readonly isCrawl: true
  readonly source: string
  readonly schema: {
    readonly item?: StandardSchema
    readonly cursor?: StandardSchema
    readonly target?: StandardSchema
  }
  readonly initialCursor: unknown
  targets(context: PlanningContext): Targets<unknown>
  page(context: AnyContext): Awaitable<PageResult>
  setup(context: SetupContext): unknown
  teardown(resources: unknown): unknown
  readonly onError:
    | ((failure: PageFailure<unknown, unknown, unknown>) => Awaitable<ErrorDecision | undefined>)
    | null
  readonly concurrency: number
  readonly policy: Policy
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
  const made: CrawlDefinition = {
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
