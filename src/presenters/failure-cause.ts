import { runName } from '../core/model/traits.ts'
import type { Run } from '../core/model/run.ts'
import { DEAD_LETTER_STATUSES } from '../core/model/target.ts'
import { loadRevertFacts } from '../operator/actions.ts'
import type { Store } from '../core/store/store.ts'
import { unstuckCommand } from '../core/model/shell-command.ts'
import { describeStep, runActions } from './allowed-actions.ts'
import { describeFailures } from './attention.ts'
import { lastExecution } from './continuation.ts'
import { fingerprintOf } from './fingerprint.ts'

/** Targets that are read for the cause of one run: one walk along an index per status. */
const TARGETS_MAX = 500
/** Kinds of errors that are named. */
const KINDS_MAX = 2
const ERROR_MAX = 200
const REVERT_AUDIT_MAX = 50

/** Returns why a run failed, by kind of error: `3 targets failed, all with: HTTP 500`. Null for any other run. */
export async function loadFailureCause(store: Store, run: Run): Promise<string | null> {
  const what = run.status === 'failed' ? describeFailures(run) : null
  if (what === null) return null
  const { failed, parked, stuck } = run.counts.targets
  const all = failed + parked + stuck
  if (!run.traits.hasTargets || all <= 1) {
    const error = run.error === null ? 'no error is known' : firstLine(run.error)
    return `${all === 1 && run.traits.hasTargets ? what : 'the run failed'} with: ${error}`
  }
  const statuses = DEAD_LETTER_STATUSES
  const { items } = await store.targets(run.id, { statuses, limit: TARGETS_MAX })
  const kinds = Map.groupBy(items, ({ lastError }) => fingerprintOf(lastError ?? ''))
  const [first, ...others] = [...kinds.values()]
    .sort((a, b) => b.length - a.length)
    .map((kind) => ({ count: kind.length, error: firstLine(kind[0]!.lastError ?? '') }))
  if (first === undefined) return what
  const isPart = items.length < all
  if (others.length === 0 && !isPart) return `${what}, all with: ${first.error}`
  const named = [first, ...others].slice(0, KINDS_MAX)
  const left = items.length - named.reduce((sum, { count }) => sum + count, 0)
  const parts = [
    ...named.map(({ count, error }) => `${count} of them with: ${error}`),
    ...(left > 0 ? [`${left} with other errors`] : []),
  ]
  return `${what}${isPart ? `; of the first ${items.length}` : ''}: ${parts.join('; ')}`
}

function firstLine(error: string): string {
  const line = error.trimStart().split('\n', 1)[0]!.trimEnd().replace(/\.$/, '')
  if (line === '') return 'no error is known'
  return line.length > ERROR_MAX ? `${line.slice(0, ERROR_MAX).toWellFormed()} …` : line
}

/** What starts a failed run again, and where its output is. Empty where its actions are refused. */
export async function stepsAfterFailure(store: Store, run: Run): Promise<string[]> {
  const actions = runActions({
    ...(await loadRevertFacts(store, run, REVERT_AUDIT_MAX)),
    isDead: false,
    isStuck: false,
    acknowledged: 0,
  })
  const isOffered = (name: string): boolean => actions.some((action) => action.name === name)
  const again = ['reset-failed', 'unpark'].filter(isOffered)
  const names = [...(again.length > 0 ? again : ['resume']), 'retry']
  const steps = actions
    .filter(({ name }) => names.includes(name))
    .sort((a, b) => names.indexOf(a.name) - names.indexOf(b.name))
    .map(describeStep)
  const log = unstuckCommand('logs', [runName(run)])
  return (await lastExecution(store, run)) ? [...steps, `\`${log}\`: its output.`] : steps
}
