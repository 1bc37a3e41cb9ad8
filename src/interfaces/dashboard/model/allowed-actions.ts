import type { RunDetail, Target } from '../shapes.ts'

type AdoptedRun = Pick<RunDetail['run'], 'adopted'>
type RowAction = NonNullable<AdoptedRun['adopted']>['can'][number]

/** What `revert` takes back: what ended a run, or set targets aside. */
const ENDING_ACTIONS: readonly string[] = ['cancel', 'abandon', 'fail', 'retry']
const PARKING_ACTIONS: readonly string[] = ['park', 'hold', 'fail', 'retry']

/** Which actions make sense for a run now. The server decides; this only spares people buttons that would be refused. */
export function allowedActions({
  run,
  counts,
  audit,
}: Pick<RunDetail, 'run' | 'counts' | 'audit'>) {
  // Only a live run has a health.
  const live = run.health !== null
  const canContinue = !live && run.status !== 'succeeded'
  // No row is ever added to a table of the user's own, or taken from it; and only its own words are written there.
  const isOwn = run.adopted === null
  const can = (action: RowAction): boolean => isAllowed(run, action)
  const done = audit.slice(audit.findLastIndex(({ action }) => action === 'revert') + 1)
  return {
    cancel: live && can('cancel'),
    resume: canContinue && can('resume'),
    retry: canContinue && isOwn,
    revert: done.some(({ action, target }) =>
      target === null ? !live && ENDING_ACTIONS.includes(action) : PARKING_ACTIONS.includes(action),
    ),
    // A row that is a run has no targets of its own: it is resumed.
    resetFailed: counts.failed > 0 && can('resume') && !isRow(run),
    unpark: counts.parked + counts.stuck > 0 && can('resume'),
    delete: !live && isOwn,
  }
}

/** The same for one target of a run. */
export function allowedTargetActions(
  { status, page }: Pick<Target, 'status' | 'page'>,
  run: AdoptedRun,
) {
  const can = (action: RowAction): boolean => isAllowed(run, action)
  const isOpen = status === 'planned' || status === 'in_progress' || status === 'failed'
  return {
    reset: status === 'failed' && can('resume'),
    unpark: (status === 'parked' || status === 'stuck') && can('resume'),
    park: isOpen && can('park'),
    rewind: page > 0 && run.adopted === null,
  }
}

/** Whether a run is a row of a table of the user's own: then it has no targets, whatever is counted for it. */
export function isRow({ adopted }: AdoptedRun): boolean {
  return adopted !== null && adopted.key !== ''
}

function isAllowed({ adopted }: AdoptedRun, action: RowAction): boolean {
  return adopted === null || adopted.can.includes(action)
}
