import { cancelHint } from '../core/decide/cancel.ts'
import { UsageError } from '../core/model/errors.ts'
import { shortId, type RunId } from '../core/model/id.ts'
import { isLive, type Run } from '../core/model/run.ts'
import type { Verdict } from '../core/model/verdict.ts'
import type { ClassifiedRuns } from '../core/recovery/clean.ts'
import { assessedRunView, verdictView } from './view.ts'

/** What `summary` answers. */
export function summaryView({ severity, total, active, resumable, dead }: ClassifiedRuns) {
  return {
    severity,
    total,
    active: active.map(assessedRunView),
    resumable: resumable.map(assessedRunView),
    dead: dead.map(assessedRunView),
  }
}

/** What `clean` answers. */
export function cleaningView(
  classified: ClassifiedRuns,
  cleaned: readonly Verdict[],
  dryRun: boolean,
) {
  return { ...summaryView(classified), cleaned: cleaned.map(verdictView), dryRun }
}

export type CleanSelection = {
  /** Of the named runs, those that are dead. */
  readonly classified: ClassifiedRuns
  /** Of the named runs, those that have ended. */
  readonly ended: readonly Run[]
}

/** Only the named runs. One that is neither dead nor, for deleting, ended is refused with the reason. */
export function selectRuns(
  classified: ClassifiedRuns,
  runs: readonly Run[],
  isDelete: boolean,
): CleanSelection {
  const named = new Map<RunId, Run>()
  for (const run of runs) {
    throwUnlessDead(run, classified, isDelete)
    named.set(run.id, run)
  }
  const dead = classified.dead.filter(({ run }) => named.has(run.id))
  const ended = [...named.values()].filter(({ status }) => !isLive(status))
  return {
    classified: { ...classified, total: dead.length, active: [], resumable: [], dead },
    ended,
  }
}

function throwUnlessDead(named: Run, classified: ClassifiedRuns, isDelete: boolean): void {
  const { id, status } = named
  const short = shortId(id)
  if (classified.dead.some(({ run }) => run.id === id) || (isDelete && !isLive(status))) return
  if (!isLive(status)) throw new UsageError(`Run ${short} is ${status}: there is nothing to clean.`)
  const assessed = [...classified.active, ...classified.resumable].find(({ run }) => run.id === id)
  throw new UsageError(
    `Run ${short} is not dead${assessed ? `: ${assessed.decision.because}` : ''}. ` +
      `More: \`unstuck explain ${short}\`; ${cancelHint(named)}.`,
  )
}
