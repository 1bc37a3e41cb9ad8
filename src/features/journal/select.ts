import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import process from 'node:process'
import type { Database } from '../../contracts/database.ts'
import { NotFoundError, UsageError } from '../../core/model/errors.ts'
import { unstuckCommand } from '../../core/model/shell-command.ts'
import { dataFolder, realFolder } from '../../lib/files/data-folder.ts'
import { listJournals, sourceInName, type JournalFile } from '../../lib/files/journal.ts'
import { readJournal, statJournal } from './reader.ts'

/** The journals that a command is to read. */
export type JournalSelection = {
  /** Returns their files, with those that appeared since the last call. */
  readonly list: () => Promise<string[]>
  /** True: lines are of one worker only. */
  readonly isOneFile: boolean
}

type Request = {
  /** Files, or names of sources. */
  readonly names: readonly string[]
  readonly sources: readonly string[]
  /** Accept a source without a journal: one may appear. */
  readonly canWait?: boolean
}

/** Selects journals by file and by source: all that workers of the source have written on this machine. */
export async function selectJournals(
  database: Database,
  { names, sources, canWait = false }: Request,
): Promise<JournalSelection> {
  const [files, wanted] = [new Set<string>(), new Set(sources)]
  for (const name of names) {
    if (!existsSync(name) && !isFileName(name)) wanted.add(name)
    else {
      await statJournal(name)
      files.add(resolve(name))
    }
  }
  const folder = join(dataFolder(await database.address(), process.cwd()), 'journal')
  const workerSources = new Map<string, string>()
  const listSource = async (source: string): Promise<string[]> => {
    const found: string[] = []
    // No link leads elsewhere.
    if ((await realFolder(join(folder, '..'), 'journal')) === null) return found
    for (const journal of await listJournals(folder))
      if (await isOfSource(journal, source, workerSources)) found.push(resolve(journal.path))
    return found
  }
  if (files.size + wanted.size === 0) throw await nothingGiven(folder)
  for (const source of canWait ? [] : wanted) {
    if ((await listSource(source)).length === 0) throw await noJournals(source, folder)
  }
  return {
    isOneFile: files.size === 1 && wanted.size === 0,
    async list() {
      const listed = await Promise.all([...wanted].map(listSource))
      return [...new Set([...files, ...listed.flat()])]
    },
  }
}

function isFileName(name: string): boolean {
  return /\.jsonl(\.zst)?$/.test(name)
}

const START_WITHIN = 20

/** Journals of earlier versions are named after the worker alone; one of their first events names its source. */
async function isOfSource(
  { path, source }: JournalFile,
  wanted: string,
  known: Map<string, string>,
): Promise<boolean> {
  if (source !== null) return source === sourceInName(wanted)
  const found = known.get(path) ?? (await readSource(path).catch(() => null))
  if (found !== null) known.set(path, found)
  return found === wanted
}

async function readSource(path: string): Promise<string | null> {
  let count = 0
  for await (const { type, source } of readJournal(path)) {
    if (type === 'worker_start' && typeof source === 'string') return source
    if (++count === START_WITHIN) break
  }
  return null
}

async function nothingGiven(folder: string): Promise<UsageError> {
  const example = unstuckCommand('journal read', ['directory'])
  return new UsageError(
    `Which journals? Name files, or a source, as in \`${example}\`. ${await describeFolder(folder)}`,
  )
}

async function noJournals(source: string, folder: string): Promise<NotFoundError> {
  return new NotFoundError(
    `file ${source}, and no journal of a source with this name`,
    await describeFolder(folder),
  )
}

const SOURCES_SHOWN = 10

async function describeFolder(folder: string): Promise<string> {
  const journals = await listJournals(folder)
  const sources = [...new Set(journals.flatMap(({ source }) => source ?? []))].sort()
  if (sources.length === 0)
    return 'Workers keep their journals beside the database, in .unstuck/journal.'
  const more = sources.length > SOURCES_SHOWN ? ', …' : ''
  return `In ${folder} there are journals of: ${sources.slice(0, SOURCES_SHOWN).join(', ')}${more}.`
}
