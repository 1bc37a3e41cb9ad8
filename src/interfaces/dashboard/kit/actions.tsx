import { observable, useObserved } from '../observable.ts'
import { safe } from '../model/format.ts'
import { navigate, useLocation } from '../router.ts'
import { useHasRole } from '../session.ts'
import type { AllowedAction } from '../shapes.ts'
import { mainAction } from './action-state.ts'
import { ActionDialog } from './action-dialog.tsx'
import { Button, type ButtonKind } from './button.tsx'
import type { IconName } from './icon.tsx'

const current = observable<AllowedAction | null>(null)
/** Counts completed actions, so that pages reload what they changed. */
const completedActions = observable(0)

/** Opens the dialog for an action: preview, confirmation, result, undo. */
export function openAction(action: AllowedAction): void {
  current.set(action)
}

/** Changes after each action that was applied or reverted. */
export function useCompletedActions(): number {
  return useObserved(completedActions)
}

/** The one dialog of the app. */
export function ActionHost() {
  const action = useObserved(current)
  const { page } = useLocation()
  if (!action) return null
  return (
    <ActionDialog
      action={action}
      onClose={() => current.set(null)}
      onDone={() => {
        // The page of a deleted run is gone: the list of runs takes its place below the result.
        if (action.name === 'delete' && page.name === 'run') navigate('/runs', { replace: true })
        completedActions.set(completedActions.get() + 1)
      }}
    />
  )
}

const BUTTONS: Readonly<Record<AllowedAction['name'], readonly [IconName, ButtonKind?]>> = {
  resume: ['play'],
  'reset-failed': ['again'],
  unpark: ['play'],
  acknowledge: ['check'],
  retry: ['again'],
  revert: ['undo'],
  fail: ['stop'],
  cancel: ['stop'],
  delete: ['trash', 'danger'],
  reset: ['again'],
  park: ['parked'],
  rewind: ['undo'],
  recover: ['bolt'],
  clean: ['broom'],
  'replan-dead-letters': ['again'],
  enqueue: ['again'],
  pause: ['pause'],
  unpause: ['unpause'],
  'run-now': ['play'],
}

/** The actions that the server lists, as far as the user's role allows them. */
export function ActionButtons(props: {
  actions: readonly AllowedAction[]
  size?: 'small' | 'large'
}) {
  const { actions, size = 'normal' } = props
  const main = mainAction(actions)
  const roles = { operator: useHasRole('operator'), admin: useHasRole('admin') }
  return (
    <>
      {actions
        .filter(({ role }) => roles[role])
        .map((action) => {
          const [icon, ownKind = 'plain'] = BUTTONS[action.name]
          const kind = size !== 'small' && action.name === main ? 'primary' : ownKind
          return (
            <Button
              key={action.title}
              icon={icon}
              kind={kind}
              size={size}
              onClick={() => openAction(action)}
            >
              {safe(action.label)}
            </Button>
          )
        })}
    </>
  )
}
