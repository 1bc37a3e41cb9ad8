import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { AlreadyRunning, NotFound, Refused, UsageError } from '../core/model/errors.ts'
import type { RunId } from '../core/model/id.ts'
import type { Door } from '../core/recovery/recover.ts'
import { resetFailed, unpark } from '../core/recovery/operator-actions.ts'
import type { DeadLetter, Store } from '../core/store/store.ts'
import { pagesOf, type Letters } from './dead-letters.ts'
import { isAside } from './target-actions.ts'
import { undoByPark, type Undo } from './undo.ts'

/** Those that one retry is about. */
export type ChosenLetters = {
  readonly letters: readonly DeadLetter[]
  /** How many more there are, for another call. */
  readonly left: number
  /** A short name for exactly these, as they are: goes with a preview, so that who confirms that does this and nothing else. */
  readonly plan: string
}

/** In one call. */
export const RETRIED_MAX = 10_000

export async function chooseLetters(
  store: Store,
  which: Letters,
  signal: AbortSignal,
): Promise<ChosenLetters> {
  const letters: DeadLetter[] = []
  let all = 0
  for await (const page of pagesOf(store, which)) {
    signal.throwIfAborted()
    letters.push(...page.slice(0, RETRIED_MAX - letters.length))
    all += page.length
  }
  // They come by id, so that the same ones have the same name.
  const lines = letters.map(({ id, status }) => `${id} ${status}`)
  const plan = hash('sha256', lines.join('\n')).slice(0, 16)
  return { letters, left: all - letters.length, plan }
}

export type RetriedLetters = {
  targets: number
  left: number
  runs: { run: RunId; targets: number; refused: string | null }[]
  dryRun: boolean
  plan: string
  undo: Undo | null
}

/** What a retry of these would do. Only which runs refuse is asked of the store: the rest is counted. */
export async function previewRetry(door: Door, chosen: ChosenLetters): Promise<RetriedLetters> {
  const runs: RetriedLetters['runs'] = []
  for (const [run, own] of byRun(chosen)) {
    const refused = await refusalOf(() => resetFailed(door, run, { targets: [], dryRun: true }))
    runs.push({ run, targets: refused === null ? own.length : 0, refused })
    await setImmediate()
  }
  return answer(chosen, runs, true)
}

/** Puts them back in line, run by run and in bounded steps. A run that refuses does not spoil the others. */
export async function retryLetters(
  door: Door,
  chosen: ChosenLetters,
  signal: AbortSignal,
): Promise<RetriedLetters> {
  const runs: RetriedLetters['runs'] = []
  for (const [run, own] of byRun(chosen)) {
    if (signal.aborted) break
    let targets = 0
    const refused = await refusalOf(async () => {
      for (const [some, putBack] of stepsOf(own)) {
        if (signal.aborted) break
        targets += (await putBack(door, run, { targets: some })).targets
        await setImmediate()
      }
    })
    runs.push({ run, targets, refused })
  }
  return answer(chosen, runs, false)
}

function byRun({ letters }: ChosenLetters): Map<RunId, DeadLetter[]> {
  return Map.groupBy(letters, ({ run }) => run)
}

function answer(
  { letters, left, plan }: ChosenLetters,
  runs: RetriedLetters['runs'],
  dryRun: boolean,
): RetriedLetters {
  const targets = runs.reduce((total, one) => total + one.targets, 0)
  const isWhole = !dryRun && targets === letters.length
  const before = letters.map((letter) => ({ ...letter, lastError: letter.error || null }))
  return { targets, left, runs, dryRun, plan, undo: isWhole ? undoByPark(before) : null }
}

const STEP = 500
type PutBack = typeof resetFailed | typeof unpark

function stepsOf(letters: readonly DeadLetter[]): [string[], PutBack][] {
  const of = (putBack: PutBack, some: readonly DeadLetter[]): [string[], PutBack][] =>
    Array.from({ length: Math.ceil(some.length / STEP) }, (_, n) => [
      some.slice(n * STEP, (n + 1) * STEP).map(({ id }) => id),
      putBack,
    ])
  const failed = letters.filter((letter) => !isAside(letter))
  return [...of(resetFailed, failed), ...of(unpark, letters.filter(isAside))]
}

/** Why a run is left alone; null when it is not. */
async function refusalOf(act: () => Promise<unknown>): Promise<string | null> {
  try {
    await act()
    return null
  } catch (error) {
    const kinds = [AlreadyRunning, Refused, UsageError, NotFound]
    if (error instanceof Error && kinds.some((kind) => error instanceof kind)) return error.message
    throw error
  }
}
