import { sayEnding } from '../core/decide/cancelling.ts'
import { UsageError } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import type { Verdict } from '../core/model/verdict.ts'
import type { Summed } from '../core/recovery/clean.ts'
import { judgedView, verdictView } from './view.ts'

/** What `summary` answers. */
export function summaryView({ total, active, resumable, dead }: Summed) {
  return {
    total,
    active: active.map(judgedView),
    resumable: resumable.map(judgedView),
    dead: dead.map(judgedView),
  }
}

/** What `clean` answers. */
export function cleaningView(summed: Summed, cleaned: readonly Verdict[], dryRun: boolean) {
  return { ...summaryView(summed), cleaned: cleaned.map(verdictView), dryRun }
}

export type Chosen = {
  /** Of the named runs, those that are dead. */
  readonly summed: Summed
  /** Of the named runs, those that have ended. */
  readonly ended: readonly Run[]
}

/** Only the named runs. One that is neither dead nor, for deleting, ended is refused with the reason. */
export function onlyThese(summed: Summed, runs: readonly Run[], deletes: boolean): Chosen {
  const named = new Map<RunId, Run>()
  for (const run of runs) {
    refuseUnlessDead(run, summed, deletes)
    named.set(run.id, run)
  }
  const dead = summed.dead.filter(({ run }) => named.has(run.id))
  const ended = [...named.values()].filter(({ status }) => !isLive(status))
  return { summed: { total: dead.length, active: [], resumable: [], dead }, ended }
}

function refuseUnlessDead(named: Run, summed: Summed, deletes: boolean): void {
  const { id, status } = named
  const short = shortId(id)
  if (summed.dead.some(({ run }) => run.id === id) || (deletes && !isLive(status))) return
  if (!isLive(status)) throw new UsageError(`Run ${short} is ${status}: there is nothing to clean.`)
  const judged = [...summed.active, ...summed.resumable].find(({ run }) => run.id === id)
  throw new UsageError(
    `Run ${short} is not dead${judged ? `: ${judged.decision.because}` : ''}. ` +
      `More: \`unstuck explain ${short}\`; ${sayEnding(named)}.`,
  )
}
