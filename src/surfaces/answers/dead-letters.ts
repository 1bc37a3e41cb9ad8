import { fingerprintOf } from '../../decide/fingerprint.ts'
import { AlreadyRunning, NotFound, Refused, UsageError } from '../../model/errors.ts'
import type { RunId } from '../../model/id.ts'
import { TROUBLED_STATUSES, type Target, type TroubledStatus } from '../../model/target.ts'
import { iso } from '../../model/time.ts'
import type { Door } from '../../runtime/recovery.ts'
import { resetFailed, unpark } from '../../runtime/steering.ts'
import type { Listing, Store, Trouble } from '../../store/store.ts'
import { isAside } from './target-deeds.ts'
import { undoByPark, type Undo } from './undo.ts'

const GROUPS_MAX = 500
const SAMPLE_MAX = 5
const BATCH = 500

/** Failed, held and parked targets, those with the same kind of error together, the largest group first. */
export async function deadLetters(
  store: Store,
  { source }: { readonly source?: string | undefined },
): Promise<{ total: number; groups: LetterGroup[] }> {
  const troubles = await store.troubles({ source })
  const groups = [...Map.groupBy(troubles, ({ error }) => fingerprintOf(error))]
    .map(([fingerprint, all]) => groupView(fingerprint, all))
    .sort((a, b) => b.count - a.count || (a.fingerprint < b.fingerprint ? -1 : 1))
  return { total: await totalOf(store, troubles, source), groups: groups.slice(0, GROUPS_MAX) }
}

/** The store names the largest groups only; the books know all. */
async function totalOf(
  store: Store,
  troubles: readonly Trouble[],
  source: string | undefined,
): Promise<number> {
  if (source !== undefined) return sum(troubles)
  const { targets } = await store.targetTotals()
  return TROUBLED_STATUSES.reduce((total, status) => total + targets[status], 0)
}

export type LetterGroup = ReturnType<typeof groupView>

function groupView(fingerprint: string, all: readonly Trouble[]) {
  const statuses: Partial<Record<TroubledStatus, number>> = {}
  for (const { status, count } of all) statuses[status] = (statuses[status] ?? 0) + count
  // The store has the largest first.
  const [largest] = all
  return {
    fingerprint,
    error: largest!.error || 'No error is known.',
    count: sum(all),
    statuses,
    sources: [...new Set(all.map(({ source }) => source))].sort(),
    firstAt: iso(Math.min(...all.map(({ firstAt }) => firstAt))),
    lastAt: iso(Math.max(...all.map(({ lastAt }) => lastAt))),
    sample: all.slice(0, SAMPLE_MAX).map(({ sample, run, status }) => ({ ...sample, run, status })),
  }
}

function sum(troubles: readonly Trouble[]): number {
  return troubles.reduce((total, { count }) => total + count, 0)
}

/** Which of them. */
export type Letters = {
  readonly fingerprint?: string | undefined
  readonly source?: string | undefined
  readonly statuses?: readonly TroubledStatus[] | undefined
}

/** The targets of a group one by one, by id. */
export async function listDeadLetters(
  store: Store,
  letters: Letters,
  page: { readonly after?: string | undefined; readonly limit: number },
): Promise<Listing<Target>> {
  const { source, statuses } = letters
  const errors = await errorsOf(store, letters)
  if (errors?.length === 0) return { items: [], next: null }
  return store.troubledTargets({ source, statuses, errors, ...page })
}

/** Every error of this kind, word for word; undefined: any. */
async function errorsOf(
  store: Store,
  { fingerprint, source }: Letters,
): Promise<string[] | undefined> {
  if (fingerprint === undefined) return undefined
  const errors = new Set((await store.troubles({ source })).map(({ error }) => error))
  return [...errors].filter((error) => fingerprintOf(error) === fingerprint)
}

type Letter = Pick<Target, 'id' | 'run' | 'status' | 'lastError'>

export type RetriedLetters = {
  targets: number
  runs: { run: RunId; targets: number; refused: string | null }[]
  dryRun: boolean
  undo: Undo | null
}

/** Puts them back in line, run by run and in bounded steps. A run that refuses does not spoil the others. */
export async function retryDeadLetters(
  door: Door,
  letters: Letters,
  { dryRun, signal }: { readonly dryRun: boolean; readonly signal: AbortSignal },
): Promise<RetriedLetters> {
  const all = await collect(door.store, letters)
  const runs: RetriedLetters['runs'] = []
  for (const [run, own] of Map.groupBy(all, (letter) => letter.run)) {
    if (signal.aborted) break
    runs.push({ run, ...(await retryOfRun(door, run, own, dryRun, signal)) })
  }
  const targets = runs.reduce((total, one) => total + one.targets, 0)
  const isWhole = targets === all.length
  return { targets, runs, dryRun, undo: isWhole && !dryRun ? undoByPark(all) : null }
}

async function collect(store: Store, letters: Letters): Promise<Letter[]> {
  const { source, statuses } = letters
  const errors = await errorsOf(store, letters)
  const all: Letter[] = []
  if (errors?.length === 0) return all
  for (let after: string | undefined; ;) {
    const filter = { source, statuses, errors, after, limit: BATCH }
    const { items, next } = await store.troubledTargets(filter)
    for (const { id, run, status, lastError } of items) all.push({ id, run, status, lastError })
    if (next === null) return all
    after = next
  }
}

async function retryOfRun(
  door: Door,
  run: RunId,
  letters: readonly Letter[],
  dryRun: boolean,
  signal: AbortSignal,
): Promise<{ targets: number; refused: string | null }> {
  const aside = letters.filter(isAside)
  const failed = letters.filter((letter) => !isAside(letter))
  let targets = 0
  try {
    for (const [some, putBack] of [...steps(failed, resetFailed), ...steps(aside, unpark)]) {
      if (signal.aborted) break
      targets += (await putBack(door, run, { targets: some, dryRun })).targets
    }
  } catch (error) {
    if (!isRefusal(error)) throw error
    return { targets, refused: error.message }
  }
  return { targets, refused: null }
}

type PutBack = typeof resetFailed | typeof unpark

function steps(letters: readonly Letter[], putBack: PutBack): [string[], PutBack][] {
  const ids = letters.map(({ id }) => id)
  return Array.from({ length: Math.ceil(ids.length / BATCH) }, (_, n) => [
    ids.slice(n * BATCH, (n + 1) * BATCH),
    putBack,
  ])
}

function isRefusal(error: unknown): error is Error {
  return [AlreadyRunning, Refused, UsageError, NotFound].some((kind) => error instanceof kind)
}
