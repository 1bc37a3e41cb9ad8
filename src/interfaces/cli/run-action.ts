import { openContext } from '../../app/open-context.ts'
import { defineCommand } from '../../contracts/command.ts'
import { argument, option } from '../../contracts/options.ts'
import type { Run } from '../../core/model/run.ts'
import type { OperatorContext } from '../../core/recovery/context.ts'
import { actionResultView, type ActionResult } from '../../presenters/action-result.ts'
import { findRun } from '../../presenters/find.ts'
import type { ActionRequest } from '../../presenters/run-actions.ts'

type RunAction<R> = (context: OperatorContext, run: Run, request: ActionRequest) => Promise<R>

/** Defines a command that acts on one run. `more`: what its JSON has besides that of every action. */
export function defineRunAction<R extends ActionResult>(
  act: RunAction<R>,
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

    async run({ args, options: { dryRun, because }, database, settings }) {
      const store = await database.openExisting()
      const run = await findRun(store, args.run)
      const request = { dryRun, because: because || undefined }
      const result = await act(await openContext(store, settings), run, request)
      const { sentences, undo } = result
      const isUndoShown = sentences.some((sentence) => sentence.includes(undo?.command ?? ''))
      return {
        data: { ...actionResultView(result), ...more(result, run) },
        print: (writer) => {
          for (const sentence of sentences) writer.paragraph(sentence)
          if (undo && !isUndoShown) writer.paragraph(`Undo: \`${undo.command}\``)
        },
      }
    },
  })
}
