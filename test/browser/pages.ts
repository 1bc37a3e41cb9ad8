import {
  createHttpTestContext,
  type HttpTestContext,
  type HttpTestOptions,
} from '../../src/testing/http-test-context.ts'
import { fillShowcase, type Showcase } from '../../src/testing/showcase.ts'

/** The dashboard over something of everything. */
export type ShowcaseSite = AsyncDisposable & {
  readonly ctx: HttpTestContext
  readonly showcase: Showcase
}

export async function startShowcaseSite(
  options: HttpTestOptions & { readonly hostile?: boolean } = {},
): Promise<ShowcaseSite> {
  const ctx = await createHttpTestContext({ tokens: false, ...options })
  const { url } = ctx.database
  const { hostile = false } = options
  const showcase = await fillShowcase(ctx.store, { url, hostile, folder: ctx.folder })
  return {
    ctx,
    showcase,
    async [Symbol.asyncDispose]() {
      await showcase[Symbol.asyncDispose]()
      await ctx[Symbol.asyncDispose]()
    },
  }
}

/** Each page of the dashboard, by a name. */
export function allPages({ runs, targets }: Showcase): Readonly<Record<string, string>> {
  return {
    overview: '/',
    runs: '/runs',
    'no runs': '/runs?q=nothing-is-called-so',
    'healthy run': `/runs/${runs.healthy}`,
    'orphaned run': `/runs/${runs.orphaned}`,
    'failed run': `/runs/${runs.failed}?status=failed`,
    'interrupted run': `/runs/${runs.interrupted}`,
    'run of a command': `/runs/${runs.command}`,
    target: `/targets/${targets.inProgress}`,
    'failed target': `/targets/${targets.failed}`,
    'held target': `/targets/${targets.stuck}`,
    workers: '/workers',
    recovery: '/recovery',
    'dead letters': '/dead-letters',
    history: '/history',
    'what people did': '/history?tab=operations',
    login: '/login',
    nowhere: '/nowhere',
  }
}
