import { addToken, readTokens, removeToken, tokensPath } from '../../../app/tokens.ts'
import { defineCommand } from '../../../contracts/command.ts'
import type { Database } from '../../../contracts/database.ts'
import { argument, option } from '../../../contracts/options.ts'
import { NotFoundError } from '../../../core/model/errors.ts'
import { ROLES } from '../../../lib/http/role.ts'
import { dataFolder } from '../../../lib/files/data-folder.ts'
import { formatAgo } from '../../../presenters/format.ts'

export const add = defineCommand({
  examples: [
    'unstuck tokens add maria --role operator',
    'unstuck tokens add prometheus               # a viewer: it reads, and changes nothing',
  ],
  args: { name: argument.required('its name, also in the audit trail') },
  options: {
    role: option.choice(
      ROLES,
      'viewer reads, operator acts and undoes, admin also deletes',
      'viewer',
    ),
  },

  async run({ args: { name }, options: { role }, database }) {
    const token = addToken(await pathOf(database), name, role)
    return {
      data: { name, role, token },
      print: (writer) => {
        writer.paragraph(token)
        writer.paragraph({
          text: `The token of ${name} (${role}). It is shown this once: only its hash is kept.`,
          style: 'dim',
        })
      },
    }
  },
})

export const list = defineCommand({
  examples: ['unstuck tokens list', 'unstuck tokens list --json'],

  async run({ database }) {
    const tokens = readTokens(await pathOf(database))
    const items = tokens.map(({ name, role, createdAt }) => ({ name, role, createdAt }))
    return {
      data: { items, next: null },
      print: (writer) => {
        if (items.length === 0)
          return writer.paragraph('There is no token yet. Make one with `unstuck tokens add NAME`.')
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

export const remove = defineCommand({
  examples: ['unstuck tokens remove maria'],
  args: { name: argument.required('the name of the token') },

  async run({ args: { name }, database }) {
    if (!removeToken(await pathOf(database), name))
      throw new NotFoundError(`token ${name}`, '`unstuck tokens list` lists them.')
    return {
      data: { name },
      print: (writer) =>
        writer.paragraph(
          `The token of ${name} is no longer valid, nor is a session that was started with it.`,
        ),
    }
  },
})

async function pathOf(database: Database): Promise<string> {
  return tokensPath(dataFolder(await database.address(), process.cwd()))
}
