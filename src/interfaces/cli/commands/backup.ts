import { resolve } from 'node:path'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, SHARED_OPTIONS } from '../../../contracts/options.ts'
import { exitCodeOf, ok, worst, type Finding } from '../../../contracts/finding.ts'
import { NotFoundError, UsageError } from '../../../core/model/errors.ts'
import { humanizeDuration } from '../../../core/model/time.ts'
import { guaranteeFindings } from '../../../features/inspection/guarantees.ts'
import { readDatabaseInfo } from '../../../features/inspection/store/database-info.ts'
import { backUpSqlite } from '../../../features/inspection/store/sqlite-backup.ts'
import { docPath } from '../../../lib/files/doc-path.ts'
import { toConnectionString } from '../../../lib/files/database-address.ts'
import { shellWord } from '../../../core/model/shell-command.ts'
import { formatBytes } from '../doctor/storage.ts'
import { printFindings } from './doctor.ts'

const PROGRESS_EVERY_MS = 1_000

export const command = defineCommand({
  examples: [
    'unstuck backup /var/backups/unstuck.db  # while workers go on',
    'unstuck backup "/var/backups/unstuck-$(date +%F).db"',
    'unstuck backup nightly.db --force --json',
  ],
  args: { file: argument.required('the file to write; it must not exist') },
  options: { force: SHARED_OPTIONS.force },

  async run({ args, options: { force }, database, output }) {
    const address = await database.address()
    const file = resolve(args.file)
    if (!address.startsWith('sqlite:')) throw ofServer(address, file)
    const { engine, version, known, where } = await readDatabaseInfo(address)
    if (engine?.name !== 'sqlite') throw new NotFoundError(`database at ${where} yet`, '')
    const startedAt = performance.now()
    let notedAt = startedAt
    const { bytes, inspection } = await backUpSqlite({
      from: engine.path,
      to: file,
      force,
      isCurrent: version === known,
      onProgress(copied, total) {
        if (!output.isTerminal || performance.now() - notedAt < PROGRESS_EVERY_MS) return
        notedAt = performance.now()
        output.note(`${Math.floor((copied / total) * 100)} % copied`)
      },
    })
    const durationMs = Math.round(performance.now() - startedAt)
    const checks: Finding[] = [
      ok('integrity', 'SQLite finds no damage in the copy.'),
      ...(inspection === null ? [] : guaranteeFindings(inspection)),
    ]
    return {
      data: { from: engine.path, file, bytes, durationMs, schema: version, checks },
      print: (writer) => {
        const took = humanizeDuration(Math.max(1, durationMs))
        writer.paragraph(`Copied ${engine.path} to ${file}: ${formatBytes(bytes)} in ${took}.`)
        if (worst(checks) === 'ok')
          writer.paragraph(`The copy was checked: ${checks.map(({ check }) => check).join(', ')}.`)
        else printFindings(writer, checks)
        writer.paragraph(
          `Logs, journals and tokens are files beside the database and not in it: ${docPath('guides/backup.md')} lists them.`,
        )
      },
      exitCode: exitCodeOf(checks),
    }
  },
})

/** A server is copied by its own programs. */
function ofServer(address: string, file: string): UsageError {
  const dump = `pg_dump --format=custom --schema=unstuck --file=${shellWord(file)} --dbname=${shellWord(toConnectionString(address))}`
  return new UsageError(
    'A database on a PostgreSQL server is copied with its own programs, which need no stop either:\n' +
      `  ${dump}\n` +
      `It asks for the password, or takes it from ~/.pgpass or PGPASSWORD. The way back: ${docPath('guides/backup.md')}`,
  )
}
