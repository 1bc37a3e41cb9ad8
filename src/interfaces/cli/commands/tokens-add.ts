import { dataFolder } from '../../../lib/files/data-folder.ts'
import { ROLES } from '../../../core/model/role.ts'
import { addToken, tokensPath } from '../../../app/tokens.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: [
    'unstuck tokens add maria --role operator',
    'unstuck tokens add prometheus               # a viewer: it may look, and change nothing',
  ],
  args: { name: argument.required('who has it; the audit trail names them so') },
  options: {
    role: option.choice(
      ROLES,
      'viewer looks, operator acts and undoes, admin also deletes',
      'viewer',
    ),
  },

  async run({ args, options, database }) {
    const path = tokensPath(dataFolder(await database.address(), process.cwd()))
    const token = addToken(path, args.name, options.role)
    return {
      data: { name: args.name, role: options.role, token },
      print: (writer) => {
        writer.paragraph(token)
        writer.paragraph({
          text: `The token of ${args.name} (${options.role}). It is shown this once: only its hash is kept.`,
          style: 'dim',
        })
      },
    }
  },
})
