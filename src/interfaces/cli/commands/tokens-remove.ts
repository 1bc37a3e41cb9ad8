import { NotFoundError } from '../../../core/model/errors.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import { removeToken, tokensPath } from '../../../app/tokens.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument } from '../../../contracts/options.ts'

export const command = defineCommand({
  examples: ['unstuck tokens remove maria'],
  args: { name: argument.required('whose token') },

  async run({ args, database }) {
    const path = tokensPath(dataFolder(await database.address(), process.cwd()))
    if (!removeToken(path, args.name))
      throw new NotFoundError(`token ${args.name}`, '`unstuck tokens list` lists them.')
    return {
      data: { name: args.name },
      print: (writer) =>
        writer.paragraph(
          `The token of ${args.name} no longer counts, nor does a session that came from it.`,
        ),
    }
  },
})
