import { defineCommand, presentAction } from '../../../contracts/command.ts'
import { argument, SHARED_OPTIONS } from '../../../contracts/options.ts'
import type { Run } from '../../../core/model/run.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import { actionResultView, type ActionResult } from '../../../presenters/action-result.ts'
import { findRunToChange } from '../../../presenters/find.ts'
import * as actions from '../../../presenters/run-actions.ts'
import { runView } from '../../../presenters/view.ts'

export const cancel = defineRunAction('cancel', actions.cancel, [
  'unstuck cancel 4f2a91bc',
  'unstuck cancel 4f2a91bc --because "wrong city list"',
])

export const fail = defineRunAction('fail', actions.fail, [
  'unstuck fail 4711',
  'unstuck fail 4711 --because "the site is gone"',
])

export const resume = defineRunAction(
  'resume',
  actions.resume,
  ['unstuck resume 4f2a91bc', 'unstuck resume 4f2a91bc --dry-run'],
  ({ reopened }) => ({ reopened }),
)

export const retry = defineRunAction(
  'retry',
  actions.retry,
  ['unstuck retry 4f2a91bc'],
  ({ next }, old) => ({ retryOf: old.id, run: next && runView(next) }),
)

export const revert = defineRunAction(
  'revert',
  actions.revert,
  ['unstuck revert 4f2a91bc --dry-run', 'unstuck revert 4f2a91bc'],
  ({ undid }) => ({ undid }),
)

/** Defines a command that acts on one run. `more`: what its JSON has besides that of every action. */
function defineRunAction<R extends ActionResult>(
  verb: string,
  act: (context: OperatorContext, run: Run, request: actions.ActionRequest) => Promise<R>,
  examples: readonly string[],
  more: (result: R, run: Run) => object = () => ({}),
) {
  return defineCommand({
    examples,
    args: {
      run: argument.required(
        `its last 8 digits or full id, or a source: ${verb === 'resume' ? 'its last run that can be resumed' : 'its live run'}`,
      ),
    },
    options: {
      because: SHARED_OPTIONS.because,
      dryRun: SHARED_OPTIONS.dryRun,
      yes: SHARED_OPTIONS.yes,
    },

    async run({ args, options: { dryRun, because }, openContext }) {
      const context = await openContext()
      const run = await findRunToChange(context.store, args.run, verb)
      const result = await act(context, run, { dryRun, because: because || undefined })
      return presentAction({ ...actionResultView(result), ...more(result, run) }, result)
    },
  })
}
