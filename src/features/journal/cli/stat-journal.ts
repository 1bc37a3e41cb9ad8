import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { messageOf, NotFoundError, UsageError } from '../../../core/model/errors.ts'

/** Refuses, with advice, what cannot be read as a journal. Answers the file's facts. */
export async function statJournal(path: string): Promise<{ size: number; mtimeMs: number }> {
  try {
    const { size, mtimeMs, ...facts } = await stat(path)
    if (facts.mode !== undefined && (facts.mode & constants.S_IFMT) === constants.S_IFDIR) {
      throw new UsageError(
        `${path} is a folder. Give the journal of one worker, such as ${path}/WORKER.jsonl.`,
      )
    }
    await access(path, constants.R_OK)
    return { size, mtimeMs }
  } catch (error) {
    if (error instanceof UsageError) throw error
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') {
      throw new NotFoundError(
        `file ${path}`,
        'Workers keep their journals beside the database, in .unstuck/journal.',
      )
    }
    throw new UsageError(`${path} cannot be read: ${messageOf(error)}.`, { cause: error })
  }
}
