import { UsageError } from '../../../core/model/errors.ts'
import { humanizeDuration } from '../../../core/model/time.ts'
import { unstuckCommand } from '../../../core/model/shell-command.ts'
import { compressJournal } from '../compress.ts'
import { statJournal } from '../reader.ts'
import { defineCommand } from '../../../contracts/command.ts'
import { argument, option } from '../../../contracts/options.ts'

/** A worker that lives writes at least its heartbeat. */
const IDLE_MS = 60_000

export const command = defineCommand({
  examples: [
    'unstuck journal compress worker.jsonl  # makes worker.jsonl.zst, and removes worker.jsonl when it is proven equal',
  ],
  args: { file: argument.required('a .jsonl file') },
  options: { recent: option.flag('even if it was written to in the last minute') },

  async run({ args, options }) {
    const { file } = args
    const { mtimeMs } = await statJournal(file)
    if (file.endsWith('.zst')) throw new UsageError(`${file} is compressed already.`)
    const quietMs = Date.now() - mtimeMs
    if (quietMs < IDLE_MS && !options.recent) {
      throw new UsageError(
        `${file} was written to ${humanizeDuration(quietMs)} ago: its worker may still live. ` +
          'Stop it first, wait a minute, or add --recent.',
      )
    }
    const { path, before, after } = await compressJournal(file)
    return {
      data: { path, bytesBefore: before, bytesAfter: after },
      print: (writer) =>
        writer.paragraph(
          `${path}: ${after} bytes, from ${before}. Read it with \`${unstuckCommand('journal read', [path])}\`.`,
        ),
    }
  },
})
