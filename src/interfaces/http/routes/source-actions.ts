import * as v from 'valibot'
import { defineRoute } from '../../../contracts/route.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import { actionResultView, type ActionResult } from '../../../presenters/action-result.ts'
import type { SourcePolicies } from '../../../presenters/policy-settings.ts'
import type { ActionRequest } from '../../../presenters/run-actions.ts'
import { enqueue, pause, runNow, unpause } from '../../../presenters/source-actions.ts'
import { because, source } from '../request-fields.ts'

/** Operator actions on one source. None of them starts a process. */
export const SOURCE_ACTION_ROUTES = [
  sourceActionRoute(
    pause,
    'pause',
    'Pause a source: nothing of it is started or claimed. Pages in progress are finished.',
  ),
  sourceActionRoute(unpause, 'unpause', 'End the pause of a source.'),
  sourceActionRoute(enqueue, 'enqueue', 'Queue a run of a source like its last one.'),
  sourceActionRoute(
    runNow,
    'run-now',
    'Have the supervisor that waits for the next start of a source start it now.',
  ),
]

function sourceActionRoute(
  act: (
    context: OperatorContext & { readonly settings: SourcePolicies },
    source: string,
    request: ActionRequest,
  ) => Promise<ActionResult>,
  verb: string,
  summary: string,
) {
  return defineRoute(`POST /api/sources/:source/${verb}`, {
    summary,
    params: v.strictObject({ source }),
    body: v.strictObject({ dryRun: v.optional(v.boolean(), false), because }),
    response: 'actionResult',
    handle: async ({ params, body, context, server: { settings } }) =>
      actionResultView(await act({ ...context, settings }, params.source, body)),
  })
}
