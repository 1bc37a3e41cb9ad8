import { resume as resumeRun } from '../../../presenters/run-actions.ts'
import { runView } from '../../../presenters/view.ts'
import { openContext } from '../../../app/open-context.ts'
import { findRun } from '../../../presenters/find.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck resume 4f2a91bc', 'unstuck resume 4f2a91bc --dry-run'],
  args: { run: argument.required('the run: its last 8 digits, or its full id') },
  options: {
    because: option.text('TEXT', 'why, for the audit trail'),
    dryRun: option.flag('only say what would be done'),
  },

  async run({ args, options, database, settings }) {
    const store = await database.openExisting()
    const found = await findRun(store, args.run)
    const asked = { dryRun: options.dryRun, because: options.because || undefined }
    const done = await resumeRun(await openContext(store, settings), found, asked)
    const { run, targets, reopened, dryRun } = done
    return {
      data: { run: runView(run), targets, reopened, dryRun },
      print: (writer) => done.sentences.forEach((sentence) => writer.paragraph(sentence)),
    }
  },
})
