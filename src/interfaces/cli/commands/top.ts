import process from 'node:process'
import { UsageError } from '../../../core/model/errors.ts'
import { Top } from '../../top/top.ts'
import { defineCommand, type Output } from '../../../contracts/command.ts'
import { SHARED_OPTIONS } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck top', 'unstuck top --read-only  # no key changes anything'],
  options: { readOnly: SHARED_OPTIONS.readOnly },

  async run({ options, openContext, settings, output, json }) {
    if (json)
      throw new UsageError('top is an interactive screen. For scripts: unstuck status --json')
    if (!output.isTerminal || !process.stdin.isTTY || process.env['TERM'] === 'dumb') {
      throw new UsageError(
        'top needs a terminal that can draw, and a keyboard. Without one: unstuck status --watch',
      )
    }
    const context = { operator: await openContext(), settings: await settings() }
    await new Top(context, { readonly: options.readOnly, colour: isColoured(output) }).run()
  },
})

/** The writer combines --color, NO_COLOR and the terminal. */
function isColoured(output: Output): boolean {
  const writer = output.makeWriter(1)
  writer.line({ text: 'x', style: 'strong' })
  return writer.toString() !== 'x\n'
}
