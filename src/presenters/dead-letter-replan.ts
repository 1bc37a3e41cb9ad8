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
import { resetFailed, unpark } from '../operator/actions.ts'
import type { DeadLetter, Store } from '../core/store/store.ts'
import { FROM_PAGE } from './allowed-actions.ts'
import { acknowledgeDeadLettersAction, replanDeadLettersAction } from './bulk-actions.ts'
import { readDeadLetters, type DeadLetterGroups, type DeadLetterSelection } from './dead-letters.ts'
import { isParkedOrStuck } from '../operator/refusals.ts'
import { firstSentences, plainText } from '../lib/text/sentence.ts'
import { plural } from './format.ts'
import type { DeadLetterReplan, DeadLetters } from './responses.ts'
import { undoByPark } from './action-result.ts'

/** Groups of dead letters with the actions that apply to them. `source`: the only one that was asked for. */
export function deadLettersView(
  { total, isPartial, groups }: DeadLetterGroups,
  { source, acknowledged = false }: Pick<DeadLetterSelection, 'source' | 'acknowledged'>,
): DeadLetters {
  const isAtLeast = isPartial ? 'at least ' : ''
  const actionsOn = (fingerprint: string | undefined, count: number, label: string) => {
    const what = `${fingerprint ? isAtLeast : ''}${plural(count, 'dead letter')}`
    const selection = { fingerprint, source }
    const mark = acknowledgeDeadLettersAction(selection, { what, isAcknowledged: acknowledged })
    return acknowledged ? [mark] : [replanDeadLettersAction(selection, { label, what }), mark]
  }
  return {
    total,
    isPartial,
    actions: total === 0 ? [] : actionsOn(undefined, total, `Plan all ${total} again`),
    groups: groups.map((group) => {
      const { fingerprint, count } = group
      const label = isPartial ? 'Plan all again' : `Plan ${count} again`
      return { ...group, actions: actionsOn(fingerprint, count, label) }
    }),
  }
}

/** The dead letters of one call. */
export type SelectedDeadLetters = {
  readonly letters: readonly DeadLetter[]
  /** How many more there are, for another call. */
  readonly left: number
  /**
   * A hash of exactly these dead letters. A preview carries it, so that a confirmed call does this and nothing
   * else.
   */
  readonly plan: string
}

/** In one call. */
export const REPLAN_MAX = 10_000

export async function selectDeadLetters(
  store: Store,
  selection: DeadLetterSelection,
  signal: AbortSignal,
): Promise<SelectedDeadLetters> {
  const letters: DeadLetter[] = []
  let all = 0
  for await (const page of readDeadLetters(store, selection)) {
    signal.throwIfAborted()
    letters.push(...page.slice(0, REPLAN_MAX - letters.length))
    all += page.length
  }
  // Sorted by id, so that the same ones have the same hash.
  const lines = letters.map(({ id, status }) => `${id} ${status}`)
  const plan = hash('sha256', lines.join('\n')).slice(0, 16)
  return { letters, left: all - letters.length, plan }
}

/** What planning these again would do. Only which runs refuse is asked of the store: the rest is counted. */
export async function previewReplan(
  context: ActionContext,
  selected: SelectedDeadLetters,
): Promise<DeadLetterReplan> {
  const runs: DeadLetterReplan['runs'][number][] = []
  for (const [run, own] of byRun(selected)) {
    const refused = await refusalReason(() =>
      resetFailed(context, run, { targets: [], dryRun: true }),
    )
    runs.push({ run, targets: refused === null ? own.length : 0, refused })
    await setImmediate()
  }
  return toReplanResult(selected, runs, true)
}

/** What was done or would be done, which runs refuse it, and how many targets are left. */
function replanSentences(
  { targets, left, runs, dryRun }: Pick<DeadLetterReplan, 'targets' | 'left' | 'runs' | 'dryRun'>,
  canRevert: boolean,
): string[] {
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
    ...(dryRun && targets > 0 && !canRevert ? ['This cannot be reverted.'] : []),
    ...(left > 0 ? [`${plural(left, 'more target')} left for another call.`] : []),
  ]
}

/** The question before it; null if no target can be planned again. */
export function replanQuestion({ targets }: DeadLetterReplan): string | null {
  return targets > 0 ? `Put ${plural(targets, 'target')} back in the queue?` : null
}

/** Puts them back in the queue, run by run and in bounded steps. A run that refuses does not affect the others. */
export async function replanDeadLetters(
  context: ActionContext,
  selected: SelectedDeadLetters,
  signal: AbortSignal,
): Promise<DeadLetterReplan> {
  const runs: DeadLetterReplan['runs'][number][] = []
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
  return toReplanResult(selected, runs, false)
}

function byRun({ letters }: SelectedDeadLetters): Map<RunId, DeadLetter[]> {
  return Map.groupBy(letters, ({ run }) => run)
}

function toReplanResult(
  { letters, left, plan }: SelectedDeadLetters,
  runs: DeadLetterReplan['runs'],
  dryRun: boolean,
): DeadLetterReplan {
  const targets = runs.reduce((total, one) => total + one.targets, 0)
  const before = letters.map((letter) => ({ ...letter, lastError: letter.error || null }))
  const undo = targets === letters.length ? undoByPark(before) : null
  return {
    targets,
    left,
    runs,
    count: targets,
    summary: replanSentences({ targets, left, runs, dryRun }, undo !== null).join(' '),
    dryRun,
    plan,
    undo: dryRun ? null : undo,
    // The command line has `reset-failed` and `unpark`, run by run.
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
