import { dataFolder } from '../../../lib/files/data-folder.ts'
import { readTokens, tokensPath } from '../../../app/tokens.ts'
import { formatAgo } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'

export const command = defineCommand({
  examples: ['unstuck tokens list', 'unstuck tokens list --json'],

  async run({ database }) {
    const path = tokensPath(dataFolder(await database.address(), process.cwd()))
    const items = readTokens(path).map(({ name, role, createdAt }) => ({ name, role, createdAt }))
    return {
      data: { items, next: null },
      print: (writer) => {
        if (items.length === 0) {
          writer.paragraph('There is no token yet. Make one with `unstuck tokens add NAME`.')
          return
        }
        writer.table(
          [{ header: 'NAME', flex: true }, { header: 'ROLE' }, { header: 'MADE', align: 'right' }],
          items.map(({ name, role, createdAt }) => [
            name,
            role,
            formatAgo(Date.parse(createdAt), Date.now()),
          ]),
        )
      },
    }
  },
})
