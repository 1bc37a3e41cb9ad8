import { defineCommand, presentAction } from '../../../contracts/command.ts'
import { argument, SHARED_OPTIONS } from '../../../contracts/options.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import { checkSource } from '../../../lib/validate/source.ts'
import { actionResultView, type ActionResult } from '../../../presenters/action-result.ts'
import type { ActionRequest } from '../../../presenters/run-actions.ts'
import * as actions from '../../../presenters/source-actions.ts'

export const pause = defineSourceAction(actions.pause, [
  'unstuck pause portal-a --because "their site is down"',
  'unstuck pause portal-a --dry-run',
])

export const unpause = defineSourceAction(actions.unpause, ['unstuck unpause portal-a'])

const runNow = defineSourceAction(actions.runNow, [
  'unstuck run-now portal-a  # of `unstuck run portal-a --cron …`, which waits',
])
export { runNow as 'run-now' }

/** Defines a command that acts on a source. */
function defineSourceAction(
  act: (context: OperatorContext, source: string, request: ActionRequest) => Promise<ActionResult>,
  examples: readonly string[],
) {
  return defineCommand({
    examples,
    args: { source: argument.required('its name') },
    options: {
      because: SHARED_OPTIONS.because,
      dryRun: SHARED_OPTIONS.dryRun,
      yes: SHARED_OPTIONS.yes,
    },

    async run({ args: { source }, options: { dryRun, because }, openContext }) {
      checkSource(source)
      const context = await openContext()
      const result = await act(context, source, { dryRun, because: because || undefined })
      return presentAction({ source, ...actionResultView(result) }, result)
    },
  })
}
