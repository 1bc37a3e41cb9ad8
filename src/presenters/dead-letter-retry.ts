import { hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import {
  AlreadyRunningError,
  NotFoundError,
  RefusedError,
  UsageError,
} from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import type { ActionContext } from '../core/recovery/context.ts'
import { resetFailed, unpark } from '../core/recovery/operator-actions.ts'
import type { DeadLetter, Store } from '../core/store/store.ts'
import { FROM_PAGE } from './allowed-actions.ts'
import { retryDeadLettersAction } from './bulk-actions.ts'
import { readDeadLetters, type DeadLetterGroups, type DeadLetterSelection } from './dead-letters.ts'
import { isParkedOrStuck } from '../core/decide/allowed-actions.ts'
import { firstSentences, plainText } from '../lib/text/sentence.ts'
import { plural } from './format.ts'
import type { DeadLetterRetry, DeadLetters } from './responses.ts'
import { undoByPark } from './action-result.ts'

/** Groups of dead letters with the actions that apply to them. `source`: the only one that was asked for. */
export function deadLettersView(
  { total, isPartial, groups }: DeadLetterGroups,
  { source }: { readonly source?: string | undefined },
): DeadLetters {
  const isAtLeast = isPartial ? 'at least ' : ''
  return {
    total,
    isPartial,
    actions:
      total === 0
        ? []
        : [
            retryDeadLettersAction(
              { source },
              { label: `Retry all ${total}`, what: plural(total, 'dead letter') },
            ),
          ],
    groups: groups.map((group) => {
      const { fingerprint, count } = group
      const label = isPartial ? 'Retry all' : `Retry ${count}`
      const what = `${isAtLeast}${plural(count, 'dead letter')}`
      return {
        ...group,
        actions: [retryDeadLettersAction({ fingerprint, source }, { label, what })],
      }
    }),
  }
}

/** The dead letters of one retry. */
export type SelectedDeadLetters = {
  readonly letters: readonly DeadLetter[]
  /** How many more there are, for another call. */
  readonly left: number
  /**
   * A hash of exactly these dead letters. A preview carries it, so that a confirmed retry does this and nothing
   * else.
   */
  readonly plan: string
}

/** In one call. */
export const RETRY_MAX = 10_000

export async function selectDeadLetters(
  store: Store,
  selection: DeadLetterSelection,
  signal: AbortSignal,
): Promise<SelectedDeadLetters> {
  const letters: DeadLetter[] = []
  let all = 0
  for await (const page of readDeadLetters(store, selection)) {
    signal.throwIfAborted()
    letters.push(...page.slice(0, RETRY_MAX - letters.length))
    all += page.length
  }
  // Sorted by id, so that the same ones have the same hash.
  const lines = letters.map(({ id, status }) => `${id} ${status}`)
  const plan = hash('sha256', lines.join('\n')).slice(0, 16)
  return { letters, left: all - letters.length, plan }
}

/** What a retry of these would do. Only which runs refuse is asked of the store: the rest is counted. */
export async function previewRetry(
  context: ActionContext,
  selected: SelectedDeadLetters,
): Promise<DeadLetterRetry> {
  const runs: DeadLetterRetry['runs'][number][] = []
  for (const [run, own] of byRun(selected)) {
    const refused = await refusalReason(() =>
      resetFailed(context, run, { targets: [], dryRun: true }),
    )
    runs.push({ run, targets: refused === null ? own.length : 0, refused })
    await setImmediate()
  }
  return toRetryResult(selected, runs, true)
}

/** What a retry did or would do, which runs refuse it, and how many targets are left. */
export function retrySentences({
  targets,
  left,
  runs,
  dryRun,
}: Pick<DeadLetterRetry, 'targets' | 'left' | 'runs' | 'dryRun'>): string[] {
  const refused = runs.filter((one) => one.refused !== null)
  const what = `${plural(targets, 'target')} in ${plural(runs.length - refused.length, 'run')}`
  return [
    dryRun
      ? `${what} would be put back in the queue, each ${FROM_PAGE}.`
      : `${what} put back in the queue.`,
    ...firstSentences(
      refused.map(({ run, refused }) => [`Run ${shortId(run)} refused: ${refused}`]),
      '`runs` has the others',
    ).map(plainText),
    ...(left > 0 ? [`${plural(left, 'more target')} left for another call.`] : []),
  ]
}

/** The question before a retry; null if no target can be retried. */
export function retryQuestion({ targets }: DeadLetterRetry): string | null {
  return targets > 0 ? `Put ${plural(targets, 'target')} back in the queue?` : null
}

/** Puts them back in the queue, run by run and in bounded steps. A run that refuses does not affect the others. */
export async function retryDeadLetters(
  context: ActionContext,
  selected: SelectedDeadLetters,
  signal: AbortSignal,
): Promise<DeadLetterRetry> {
  const runs: DeadLetterRetry['runs'][number][] = []
  for (const [run, own] of byRun(selected)) {
    if (signal.aborted) break
    let targets = 0
    const refused = await refusalReason(async () => {
      for (const [some, replan] of batchesOf(own)) {
        if (signal.aborted) break
        targets += (await replan(context, run, { targets: some })).targets
        await setImmediate()
      }
    })
    runs.push({ run, targets, refused })
  }
  return toRetryResult(selected, runs, false)
}

function byRun({ letters }: SelectedDeadLetters): Map<RunId, DeadLetter[]> {
  return Map.groupBy(letters, ({ run }) => run)
}

function toRetryResult(
  { letters, left, plan }: SelectedDeadLetters,
  runs: DeadLetterRetry['runs'],
  dryRun: boolean,
): DeadLetterRetry {
  const targets = runs.reduce((total, one) => total + one.targets, 0)
  const isWhole = !dryRun && targets === letters.length
  const before = letters.map((letter) => ({ ...letter, lastError: letter.error || null }))
  return {
    targets,
    left,
    runs,
    count: targets,
    summary: retrySentences({ targets, left, runs, dryRun }).join(' '),
    dryRun,
    plan,
    undo: isWhole ? undoByPark(before) : null,
    // The command line retries run by run.
    command: '',
  }
}

const BATCH_SIZE = 500
type ReplanAction = typeof resetFailed | typeof unpark

function batchesOf(letters: readonly DeadLetter[]): [string[], ReplanAction][] {
  const of = (replan: ReplanAction, some: readonly DeadLetter[]): [string[], ReplanAction][] =>
    Array.from({ length: Math.ceil(some.length / BATCH_SIZE) }, (_, n) => [
      some.slice(n * BATCH_SIZE, (n + 1) * BATCH_SIZE).map(({ id }) => id),
      replan,
    ])
  const failed = letters.filter((letter) => !isParkedOrStuck(letter))
  return [...of(resetFailed, failed), ...of(unpark, letters.filter(isParkedOrStuck))]
}

/** Returns why a run is unchanged; null if it is not. */
async function refusalReason(act: () => Promise<unknown>): Promise<string | null> {
  try {
    await act()
    return null
  } catch (error) {
    const kinds = [AlreadyRunningError, RefusedError, UsageError, NotFoundError]
    if (error instanceof Error && kinds.some((kind) => error instanceof kind)) return error.message
    throw error
  }
}
