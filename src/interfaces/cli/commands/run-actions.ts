import { defineCommand, presentAction } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'
import type { Run } from '../../../core/model/run.ts'
import type { OperatorContext } from '../../../core/recovery/context.ts'
import { actionResultView, type ActionResult } from '../../../presenters/action-result.ts'
import { findRun } from '../../../presenters/find.ts'
import * as actions from '../../../presenters/run-actions.ts'
import { runView } from '../../../presenters/view.ts'

export const cancel = defineRunAction(actions.cancel, [
  'unstuck cancel 4f2a91bc',
  'unstuck cancel 4f2a91bc --because "wrong city list"',
])

export const resume = defineRunAction(
  actions.resume,
  ['unstuck resume 4f2a91bc', 'unstuck resume 4f2a91bc --dry-run'],
  ({ reopened }) => ({ reopened }),
)

export const retry = defineRunAction(
  actions.retry,
  ['unstuck retry 4f2a91bc'],
  ({ next }, old) => ({ retryOf: old.id, run: next && runView(next) }),
)

export const revert = defineRunAction(
  actions.revert,
  ['unstuck revert 4f2a91bc --dry-run', 'unstuck revert 4f2a91bc'],
  ({ undid }) => ({ undid }),
)

/** Defines a command that acts on one run. `more`: what its JSON has besides that of every action. */
function defineRunAction<R extends ActionResult>(
  act: (context: OperatorContext, run: Run, request: actions.ActionRequest) => Promise<R>,
  examples: readonly string[],
  more: (result: R, run: Run) => object = () => ({}),
) {
  return defineCommand({
    examples,
    args: { run: argument.required('the run: its last 8 digits, or its full id') },
    options: {
      because: option.text('TEXT', 'why, for the audit trail'),
      dryRun: option.flag('print what would be done, and change nothing'),
    },

    async run({ args, options: { dryRun, because }, openContext }) {
      const context = await openContext()
      const run = await findRun(context.store, args.run)
      const result = await act(context, run, { dryRun, because: because || undefined })
      return presentAction({ ...actionResultView(result), ...more(result, run) }, result)
    },
  })
}
