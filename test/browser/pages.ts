import { httpStage, type HttpStage, type StageOptions } from '../../src/testing/http-context.ts'
import { fillShowcase, type Showcase } from '../../src/testing/showcase.ts'

/** The dashboard over something of everything. */
export type ShownSite = AsyncDisposable & { readonly stage: HttpStage; readonly showcase: Showcase }

export async function showSite(
  options: StageOptions & { readonly hostile?: boolean } = {},
): Promise<ShownSite> {
  const stage = await httpStage({ tokens: false, ...options })
  const { url } = stage.database
  const showcase = await fillShowcase(stage.store, { url, hostile: options.hostile ?? false })
  return {
    stage,
    showcase,
    async [Symbol.asyncDispose]() {
      await showcase[Symbol.asyncDispose]()
      await stage[Symbol.asyncDispose]()
    },
  }
}

/** Each page of the dashboard, by a name. */
export function everyPage({ runs, targets }: Showcase): Readonly<Record<string, string>> {
  return {
    overview: '/',
    runs: '/runs',
    'no runs': '/runs?q=nothing-is-called-so',
    'healthy run': `/runs/${runs.healthy}`,
    'orphaned run': `/runs/${runs.orphaned}`,
    'failed run': `/runs/${runs.failed}?status=failed`,
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
