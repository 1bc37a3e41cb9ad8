import { observable, useObserved } from '../observable.ts'
import { ActionDialog } from './action-dialog.tsx'
import type { Action } from './actions.ts'

const current = observable<Action | null>(null)
/** Counts what was carried out, so that pages can ask again for what it changed. */
const completedActions = observable(0)

/** Opens the dialog for an action: preview, confirm, result, undo. From any button: `act(cancelRun(run))`. */
export function openAction(action: Action): void {
  current.set(action)
}

/** Another number after each action that was carried out or taken back. */
export function useCompletedActions(): number {
  return useObserved(completedActions)
}

/** The one dialog of the app. */
export function ActionHost() {
  const action = useObserved(current)
  if (!action) return null
  return (
    <ActionDialog
      action={action}
      onClose={() => current.set(null)}
      onDone={() => completedActions.set(completedActions.get() + 1)}
    />
  )
}
