import { cancel as cancelRun } from '../../../presenters/run-actions.ts'
import { runView } from '../../../presenters/view.ts'
import { openContext } from '../../../app/open-context.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck cancel 4f2a91bc', 'unstuck cancel 4f2a91bc --because "wrong city list"'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  options: {
    because: option.text('TEXT', 'why, for the audit trail'),
    dryRun: option.flag('only say what would be done'),
  },

  async run({ args, options, database, settings }) {
    const store = await database.openExisting()
    const run = await findRun(store, args.run)
    const asked = { dryRun: options.dryRun, because: options.because || undefined }
    const done = await cancelRun(await openContext(store, settings), run, asked)
    return {
      data: { run: runView(done.run!), dryRun: options.dryRun },
      print: (writer) => {
        for (const sentence of done.sentences) writer.paragraph(sentence)
        if (done.undo) writer.paragraph(`Undo: \`${done.undo.command}\``)
      },
    }
  },
})
