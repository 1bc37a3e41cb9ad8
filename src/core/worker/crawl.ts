import type { Policy } from '../model/policy.ts'
import type { StandardSchema } from '../model/standard-schema.ts'
import type {
  Awaitable,
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
}
