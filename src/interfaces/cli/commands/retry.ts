import { retry as retryRun } from '../../../presenters/run-actions.ts'
import { runView } from '../../../presenters/view.ts'
import { openContext } from '../../../app/open-context.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck retry 4f2a91bc'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  options: {
    because: option.text('TEXT', 'why, for the audit trail'),
    dryRun: option.flag('only say what would be done'),
  },

  async run({ args, options, database, settings }) {
    const store = await database.openExisting()
    const old = await findRun(store, args.run)
    const asked = { dryRun: options.dryRun, because: options.because || undefined }
    const { next, sentences, undo, dryRun } = await retryRun(
      await openContext(store, settings),
      old,
      asked,
    )
    return {
      data: { retryOf: old.id, run: next && runView(next), dryRun },
      print: (writer) => {
        for (const sentence of sentences) writer.paragraph(sentence)
        if (undo) writer.paragraph(`Undo: \`${undo.command}\``)
      },
    }
  },
})
