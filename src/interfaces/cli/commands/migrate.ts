import { assertKnown } from '../../../core/store/schema-version.ts'
import type { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { plural } from '../../../presenters/format.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { SHARED_OPTIONS } from '../../../contracts/options.ts'
import {
  readDatabaseInfo,
  type DatabaseInfo,
} from '../../../features/inspection/store/database-info.ts'

/** The data of `migrate --json`. */
type Migration = {
  where: string
  /** The version that was found; 0 where there was nothing of ours. */
  from: number
  /** The version it has now, or would have without `--dry-run`. */
  to: number
  applied: readonly string[]
  pending: readonly string[]
}

export const command = defineCommand({
  examples: [
    'unstuck migrate --dry-run  # what is pending; nothing is changed',
    'unstuck migrate  # before the new version starts anywhere',
  ],
  options: {
    dryRun: SHARED_OPTIONS.dryRun,
  },

  async run({ options, database }) {
    const address = await database.address()
    const before = await readDatabaseInfo(address)
    assertKnown(before.version, before.known)
    const after = options.dryRun ? before : await probeAfterOpening(() => database.open(), address)
    const data: Migration = {
      where: before.where,
      from: before.version,
      to: before.known,
      applied: before.pending.filter((name) => !after.pending.includes(name)),
      pending: after.pending,
    }
    const isNew = before.engine === null
    return { data, print: (writer) => print(writer, data, { isNew, dryRun: options.dryRun }) }
  },
})

/** Opening brings the schema up to date: there is no second way, so a migration by hand is no other than that. */
async function probeAfterOpening(
  open: () => Promise<unknown>,
  address: string,
): Promise<DatabaseInfo> {
  await open()
  return readDatabaseInfo(address)
}

function print(
  writer: TextWriter,
  { where, from, to, applied, pending }: Migration,
  { isNew, dryRun }: { isNew: boolean; dryRun: boolean },
): void {
  if (isNew) {
    const verb = dryRun ? 'There is no database yet, and one would be made' : 'Made a database'
    writer.paragraph(`${verb}: ${where}`)
  }
  if (dryRun && pending.length > 0) {
    writer.paragraph(
      `${plural(pending.length, 'migration')} pending, from schema version ${from} to ${to}; nothing was changed.`,
    )
  } else if (applied.length > 0) {
    writer.paragraph(`Migrated ${where} from schema version ${from} to ${to}.`)
  } else {
    writer.paragraph(`${where} is up to date: schema version ${to}.`)
  }
  for (const name of dryRun ? pending : applied) writer.paragraph(`- ${name}`)
}
