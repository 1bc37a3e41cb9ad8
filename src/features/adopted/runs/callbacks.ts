import { setTimeout as sleep } from 'node:timers/promises'
import { messageOf } from '../../../core/model/errors.ts'
import type { Mapping } from '../mapping.ts'
import type { AdoptedRow } from '../table/table.ts'
import { sanitizeLine } from '../sanitize-line.ts'
import type { Stats } from 'node:fs'
import { opendir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Millis } from '../../../core/model/time.ts'

/** The results of the user's functions, and of their files, for a row. */
export type CallbackResults = {
  /** Null: there is no `alive`, or it returned neither true nor false. 'unanswered': it failed. */
  readonly alive: boolean | null | 'unanswered'
  /** Also true if the file could not be read. */
  readonly hasCheckpointFile: boolean
  readonly hasOutput: boolean
  /** When one of these files was last written. */
  readonly filesAt: Millis | null
}

export const NO_RESULTS: CallbackResults = {
  alive: null,
  hasCheckpointFile: false,
  hasOutput: false,
  filesAt: null,
}

/** Limits the calls for all rows together, however many of them hang. */
const ALIVE_TIMEOUT_MS = 2_000
const FILES_CONCURRENCY = 8
const FILES_MAX = 1_000

/** Calls the user's functions for each row. Errors are logged, and no row is changed because of them. */
export async function callUserFunctions(
  mapping: Mapping,
  rows: readonly { readonly row: AdoptedRow; readonly isActive: boolean }[],
  throttle: ErrorThrottle,
): Promise<CallbackResults[]> {
  const { checkpoint, outputDir } = mapping
  const active = rows.filter(({ isActive }) => isActive).map(({ row }) => row)
  const all = rows.map(({ row }) => row)
  const report =
    (name: string) => (keys: readonly string[], failures: readonly CallbackFailure[]) =>
      throttle.report(mapping.name, name, keys, failures)
  const [alive, checkpoints, outputs] = await Promise.all([
    callAlive(mapping, active, report('alive')),
    callForEach(
      checkpoint && ((row) => checkpointFile(checkpoint(row.userRow))),
      all,
      FILES_CONCURRENCY,
      report('checkpoint'),
    ),
    callForEach(
      outputDir && ((row) => newestFile(outputDir(row.userRow))),
      all,
      FILES_CONCURRENCY,
      report('outputDir'),
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

type ReportFailures = (keys: readonly string[], failures: readonly CallbackFailure[]) => void
type ResultsByKey<T> = ReadonlyMap<string, T | 'unanswered'>

/** Calls a function for each row, `concurrency` at a time. Returns the results by key. */
async function callForEach<T>(
  call: ((row: AdoptedRow) => Promise<T> | T) | undefined,
  rows: readonly AdoptedRow[],
  concurrency: number,
  report: ReportFailures,
): Promise<ResultsByKey<T>> {
  const results = new Map<string, T | 'unanswered'>()
  if (!call || rows.length === 0) return results
  const failures: CallbackFailure[] = []
  const queue = rows.values()
  const callNext = async (): Promise<void> => {
    for (const row of queue) {
      try {
        results.set(row.key, await call(row))
      } catch (error) {
        results.set(row.key, 'unanswered')
        failures.push({ key: row.key, error })
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, rows.length) }, callNext))
  report([...results.keys()], failures)
  return results
}

/** Calls `alive` for all rows at once. The order is random, so that a slow row does not always delay the same others. */
async function callAlive(
  { alive }: Mapping,
  rows: readonly AdoptedRow[],
  report: ReportFailures,
): Promise<ResultsByKey<boolean | null>> {
  if (!alive) return new Map()
  const timeout = Promise.withResolvers<never>()
  timeout.promise.catch(() => {})
  const timer = setTimeout(
    () => timeout.reject(new Error(`no result within ${ALIVE_TIMEOUT_MS / 1_000} s`)),
    ALIVE_TIMEOUT_MS,
  )
  const from = Math.floor(Math.random() * rows.length)
  const order = [...rows.slice(from), ...rows.slice(0, from)]
  const call = async ({ userRow }: AdoptedRow): Promise<boolean | null> => {
    const result = await Promise.race([Promise.try(alive, userRow), timeout.promise])
    return typeof result === 'boolean' ? result : null
  }
  try {
    return await callForEach(call, order, Infinity, report)
  } finally {
    clearTimeout(timer)
  }
}

/** Returns when the file was written; null if it is missing or empty. */
async function checkpointFile(path: string | null | undefined): Promise<Millis | null> {
  if (!path) return null
  const found = await statOrNull(path)
  if (found && !found.isFile()) throw new Error(`${path} is not a file`)
  return found && found.size > 0 ? Math.round(found.mtimeMs) : null
}

/** Returns when the newest file of a folder was written, among the first `FILES_MAX`; null if there is none. */
async function newestFile(folder: string | null | undefined): Promise<Millis | null> {
  if (!folder || !(await statOrNull(folder))) return null
  let [newest, seen] = [-1, 0]
  for await (const entry of await opendir(folder)) {
    if (!entry.isFile()) continue
    newest = Math.max(
      newest,
      Math.round((await statOrNull(join(folder, entry.name)))?.mtimeMs ?? -1),
    )
    if (++seen === FILES_MAX) break
  }
  return newest < 0 ? null : newest
}

async function statOrNull(path: string): Promise<Stats | null> {
  try {
    return await stat(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
}

/** An error of a user's function for a row. */
export type CallbackFailure = { readonly key: string; readonly error: unknown }

/** Logs errors of users' functions: each function once, until it works again for the rows that it failed for. */
export class ErrorThrottle {
  readonly #log: (line: string) => void
  /** Failed rows by table and function. */
  readonly #failingRows = new Map<string, Set<string>>()

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  /** Called with all rows of a call, and the failed ones among them. */
  report(
    table: string,
    name: string,
    keys: readonly string[],
    failures: readonly CallbackFailure[],
  ): void {
    const callback = JSON.stringify([table, name])
    const failing = this.#failingRows.get(callback) ?? new Set()
    this.#failingRows.set(callback, failing)
    const isReported = failures.some(({ key }) => failing.has(key))
    for (const key of keys) failing.delete(key)
    for (const { key } of failures) failing.add(key)
    const [first, ...others] = failures
    if (!first || isReported) return
    const rows = others.length === 1 ? 'row' : 'rows'
    const also = others.length > 0 ? ` (and for ${others.length} more ${rows})` : ''
    this.#log(
      `${name}() of row ${sanitizeLine(first.key)} of ${table}: ${messageOf(first.error)}${also}`,
    )
  }
}

const FINISH_TIMEOUT_MS = 10_000

/** Calls of the user's `onResume`. They may take as long as the work itself, so nothing waits for them before the end. */
export class ResumeHooks {
  readonly #log: (line: string) => void
  readonly #running = new Set<Promise<void>>()

  constructor(log: (line: string) => void) {
    this.#log = log
  }

  /** Calls `onResume` for a row that this process put back in the queue. */
  start({ name, onResume }: Mapping, row: AdoptedRow): void {
    if (!onResume) return
    const call = Promise.try(onResume, row.userRow).then(
      () => {},
      (error: unknown) => this.#log(`onResume() of row ${row.key} of ${name}: ${messageOf(error)}`),
    )
    this.#running.add(call)
    void call.then(() => this.#running.delete(call))
  }

  /** Waits for pending calls before the process ends, up to a timeout. */
  async drain(): Promise<void> {
    if (this.#running.size === 0) return
    const timer = new AbortController()
    const { signal } = timer
    const timeout = sleep(FINISH_TIMEOUT_MS, undefined, { signal, ref: false }).catch(() => {})
    await Promise.race([Promise.all(this.#running), timeout])
    timer.abort()
  }
}
