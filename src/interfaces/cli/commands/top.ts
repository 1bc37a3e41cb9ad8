import process from 'node:process'
import { UsageError } from '../../../core/model/errors.ts'
import { Top } from '../../top/top.ts'
import { openContext } from '../../../app/open-context.ts'
import { defineCommand, type Output } from '../../../contracts/command.ts'
import { option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck top', 'unstuck top --readonly  # no key changes anything'],
  options: { readonly: option.flag('only look: no key changes anything') },

  async run({ options, database, settings, output, json }) {
    if (json) throw new UsageError('top is a screen for people. For scripts: unstuck status --json')
    if (!output.isTerminal || !process.stdin.isTTY || process.env['TERM'] === 'dumb') {
      throw new UsageError(
        'top needs a terminal that can draw, and a keyboard. Without one: unstuck status --watch',
      )
    }
    const store = await database.openExisting()
    const context = { operator: await openContext(store, settings), settings: await settings() }
    await new Top(context, { readonly: options.readonly, colour: isColoured(output) }).run()
  },
})

/** Only paper knows what --color, NO_COLOR and the terminal make of each other. */
function isColoured(output: Output): boolean {
  const writer = output.makeWriter(1)
  writer.line({ text: 'x', style: 'strong' })
  return writer.toString() !== 'x\n'
}
