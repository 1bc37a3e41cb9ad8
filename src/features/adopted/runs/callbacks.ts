import type { Stats } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Millis } from '../../../core/model/time.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow } from '../table/table.ts'
import type { Complaints, Trouble } from './error-throttle.ts'

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

/** For all rows together: however many of them hang, who looks waits no longer. */
const ALIVE_MS = 2_000
const FILES_AT_ONCE = 8
const FILES_MAX = 1_000

/** Asks for each row what there is to ask. What goes wrong is complained of, and nothing is done because of it. */
export async function askAll(
  mapping: Mapping,
  rows: readonly { readonly row: AdoptedRow; readonly isActive: boolean }[],
  complaints: Complaints,
): Promise<Told[]> {
  const { checkpoint, outputDir } = mapping
  const active = rows.filter(({ isActive }) => isActive).map(({ row }) => row)
  const all = rows.map(({ row }) => row)
  const hear = (name: string) => (asked: readonly string[], troubles: readonly Trouble[]) =>
    complaints.hear(mapping.name, name, asked, troubles)
  const [alive, checkpoints, outputs] = await Promise.all([
    askAlive(mapping, active, hear('alive')),
    askEach(
      checkpoint && ((row) => checkpointFile(checkpoint(row.user))),
      all,
      FILES_AT_ONCE,
      hear('checkpoint'),
    ),
    askEach(
      outputDir && ((row) => newestFile(outputDir(row.user))),
      all,
      FILES_AT_ONCE,
      hear('outputDir'),
    ),
  ])
  return all.map(({ key }) => {
    const files = [checkpoints.get(key) ?? null, outputs.get(key) ?? null] as const
    const times = files.filter((at) => typeof at === 'number')
    return {
      alive: alive.get(key) ?? null,
      hasCheckpointFile: files[0] !== null,
      hasOutput: files[1] !== null,
      filesAt: times.length > 0 ? Math.max(...times) : null,
    }
  })
}

type Hear = (asked: readonly string[], troubles: readonly Trouble[]) => void
type Answers<T> = ReadonlyMap<string, T | 'unanswered'>

/** What a question about each row is answered with, by its key; so many are asked at once. */
async function askEach<T>(
  question: ((row: AdoptedRow) => Promise<T> | T) | undefined,
  rows: readonly AdoptedRow[],
  atOnce: number,
  hear: Hear,
): Promise<Answers<T>> {
  const answers = new Map<string, T | 'unanswered'>()
  if (!question || rows.length === 0) return answers
  const troubles: Trouble[] = []
  const waiting = rows.values()
  const askNext = async (): Promise<void> => {
    for (const row of waiting) {
      try {
        answers.set(row.key, await question(row))
      } catch (error) {
        answers.set(row.key, 'unanswered')
        troubles.push({ key: row.key, error })
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, rows.length) }, askNext))
  hear([...answers.keys()], troubles)
  return answers
}

/** All side by side. Who was not heard in time is left alone, and may be the first to be asked next time. */
async function askAlive(
  { alive }: Mapping,
  rows: readonly AdoptedRow[],
  hear: Hear,
): Promise<Answers<boolean | null>> {
  if (!alive) return new Map()
  const late = Promise.withResolvers<never>()
  late.promise.catch(() => {})
  const timer = setTimeout(
    () => late.reject(new Error(`no answer within ${ALIVE_MS / 1_000} s`)),
    ALIVE_MS,
  )
  const from = Math.floor(Math.random() * rows.length)
  const order = [...rows.slice(from), ...rows.slice(0, from)]
  const question = async ({ user }: AdoptedRow): Promise<boolean | null> => {
    const answer = await Promise.race([Promise.try(alive, user), late.promise])
    return typeof answer === 'boolean' ? answer : null
  }
  try {
    return await askEach(question, order, Infinity, hear)
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
