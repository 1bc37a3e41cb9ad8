import { UsageError } from '../../../core/model/errors.ts'
import { rewind as rewindTarget } from '../../../presenters/target-actions.ts'
import { targetView } from '../../../presenters/view.ts'
import { openContext } from '../../../app/open-context.ts'
import { findTarget } from '../../../presenters/find.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck rewind 91bc4f2a --to 0  # from the start',
    'unstuck rewind 91bc4f2a --to 4 --next "https://directory.example/plumbers?page=5"',
  ],
  args: { target: argument.required('the target: its last 8 digits, or its full id') },
  options: {
    to: option.count('PAGE', 'the page that is to count as the last one saved', undefined, {
      min: 0,
    }),
    next: option.text('URL', "the next page's address, where the crawl goes by addresses"),
    cursor: option.text('JSON', "the crawl's own notes as they were there"),
    dryRun: option.flag('print what would be done, and change nothing'),
  },

  async run({ args, options, database, settings }) {
    const { to, next, dryRun } = options
    if (to === undefined) throw new UsageError('To which page? Add --to PAGE; --to 0 is the start.')
    if (next === '') throw new UsageError('--next must be an address.')
    const cursor = readCursor(options.cursor)
    const store = await database.openExisting()
    const context = await openContext(store, settings)
    const before = await findTarget(store, args.target)
    const { target, reopened, sentences } = await rewindTarget(context, before, {
      to,
      next,
      cursor,
      dryRun,
    })
    return {
      data: { target: targetView(target), from: before.page, to, reopened, dryRun },
      print: (writer) => sentences.forEach((sentence) => writer.paragraph(sentence)),
    }
  },
})

function readCursor(text: string | undefined): unknown {
  if (text === undefined) return undefined
  try {
    return JSON.parse(text)
  } catch {
    throw new UsageError(`--cursor must be JSON, not ${JSON.stringify(text)}.`)
  }
}
