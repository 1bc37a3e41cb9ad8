import type { RunDetail } from '../shapes.ts'

/** What `revert` takes back: what ended a run, or set targets aside. */
const ENDS: readonly string[] = ['cancel', 'abandon', 'fail', 'retry']
const SETS_ASIDE: readonly string[] = ['park', 'hold', 'fail', 'retry']

/** Which actions make sense for a run now. The server decides; this only spares people buttons that would be refused. */
export function fitting({ run, counts, audit }: Pick<RunDetail, 'run' | 'counts' | 'audit'>) {
  // Only a live run has a health.
  const live = run.health !== null
  const canGoOn = !live && run.status !== 'succeeded'
  // No row is ever added to a table of the user's own, or taken from it.
  const isOurs = run.adopted === null
  const done = audit.slice(audit.findLastIndex(({ action }) => action === 'revert') + 1)
  return {
    cancel: live,
    resume: canGoOn,
    retry: canGoOn && isOurs,
    revert: done.some(({ action, target }) =>
      target === null ? !live && ENDS.includes(action) : SETS_ASIDE.includes(action),
    ),
    resetFailed: counts.failed > 0,
    unpark: counts.parked + counts.stuck > 0,
    delete: !live && isOurs,
  }
}
