import type { Stats } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { messageOf } from '../../model/errors.ts'
import type { Millis } from '../../model/time.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow } from '../table/table.ts'
import { inOneLine } from '../in-one-line.ts'

/** What the user's functions and files say of a row. */
export type Told = {
  /** Null: there is no `alive`, or it does not know. Not the same as one that could not be asked. */
  readonly alive: boolean | null | 'unanswered'
  /** Or there may be one: it could not be looked at. */
  readonly hasCheckpointFile: boolean
  readonly hasOutput: boolean
  /** When one of these files was last written. */
  readonly filesAt: Millis | null
}

export const NOTHING_TOLD: Told = {
  alive: null,
  hasCheckpointFile: false,
  hasOutput: false,
  filesAt: null,
}

type Log = (line: string) => void

const ALIVE_MS = 2_000
const AT_ONCE = 8
const FILES_MAX = 1_000

/** Asks for each row what there is to ask, a few at a time. What goes wrong is logged, and nothing is done because of it. */
export async function askAll(
  mapping: Mapping,
  rows: readonly { readonly row: AdoptedRow; readonly isActive: boolean }[],
  log: Log,
): Promise<Told[]> {
  if (!mapping.alive && !mapping.checkpoint && !mapping.outputDir)
    return rows.map(() => NOTHING_TOLD)
  const told: Told[] = []
  const waiting = rows.entries()
  const askNext = async (): Promise<void> => {
    for (const [at, { row, isActive }] of waiting) told[at] = await ask(mapping, row, isActive, log)
  }
  await Promise.all(Array.from({ length: AT_ONCE }, askNext))
  return told
}

async function ask(mapping: Mapping, row: AdoptedRow, isActive: boolean, log: Log): Promise<Told> {
  const about = `row ${inOneLine(row.key)} of ${mapping.name}`
  const quietly = async <T>(
    name: string,
    question: () => Promise<T> | T,
  ): Promise<T | 'unanswered'> => {
    try {
      return await question()
    } catch (error) {
      log(`${name}() of ${about}: ${messageOf(error)}`)
      return 'unanswered'
    }
  }
  const [alive, checkpoint, output] = await Promise.all([
    isActive ? quietly('alive', () => askAlive(mapping, row)) : null,
    quietly('checkpoint', () => checkpointFile(mapping.checkpoint?.(row.user))),
    quietly('outputDir', () => newestFile(mapping.outputDir?.(row.user))),
  ])
  const times = [checkpoint, output].filter((at) => typeof at === 'number')
  return {
    alive,
    hasCheckpointFile: checkpoint !== null,
    hasOutput: output !== null,
    filesAt: times.length > 0 ? Math.max(...times) : null,
  }
}

async function askAlive({ alive }: Mapping, { user }: AdoptedRow): Promise<boolean | null> {
  if (!alive) return null
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new Error(`no answer within ${ALIVE_MS / 1_000} s`)),
    ALIVE_MS,
  )
  try {
    const answer = await Promise.race([Promise.try(alive, user), late.promise])
    return typeof answer === 'boolean' ? answer : null
  } finally {
    clearTimeout(timer)
  }
}

/** When it was written, if it is a file with something in it. */
async function checkpointFile(path: string | null | undefined): Promise<Millis | null> {
  if (!path) return null
  const found = await statIfAny(path)
  if (found && !found.isFile()) throw new Error(`${path} is not a file`)
  return found && found.size > 0 ? Math.round(found.mtimeMs) : null
}

/** When the newest file in a folder was written; null when there is none. Of very many, the first count. */
async function newestFile(folder: string | null | undefined): Promise<Millis | null> {
  if (!folder || !(await statIfAny(folder))) return null
  let [newest, seen] = [-1, 0]
  for await (const entry of await opendir(folder)) {
    if (!entry.isFile()) continue
    newest = Math.max(
      newest,
      Math.round((await statIfAny(join(folder, entry.name)))?.mtimeMs ?? -1),
    )
    if (++seen === FILES_MAX) break
  }
  return newest < 0 ? null : newest
}

async function statIfAny(path: string): Promise<Stats | null> {
  try {
    return await stat(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}
