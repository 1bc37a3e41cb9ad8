import type { ComponentChildren, Ref } from 'preact'
import { Icon, type IconName } from './icon.tsx'

/** `primary`: the one thing to do here. `danger`: cannot be reverted. `quiet`: without a border. */
export type ButtonKind = 'plain' | 'primary' | 'danger' | 'quiet'

export function Button(props: {
  children?: ComponentChildren
  onClick?: (event: MouseEvent) => void
  kind?: ButtonKind
  icon?: IconName
  /** Needed when there is only an icon. */
  label?: string
  title?: string
  size?: 'small' | 'normal' | 'large'
  type?: 'button' | 'submit'
  isDisabled?: boolean
  /** Something is under way: it cannot be pressed twice. */
  isBusy?: boolean
  isPressed?: boolean
  buttonRef?: Ref<HTMLButtonElement>
}) {
  const { kind = 'plain', size = 'normal', isBusy = false } = props
  return (
    <button
      ref={props.buttonRef}
      type={props.type ?? 'button'}
      class={`button button-${kind} button-${size}`}
      onClick={props.onClick}
      disabled={(props.isDisabled ?? false) || isBusy}
      aria-busy={isBusy || undefined}
      aria-label={props.label}
      aria-pressed={props.isPressed}
      title={props.title ?? props.label}
    >
      {isBusy ? (
        <span class="spinner" aria-hidden="true" />
      ) : (
        props.icon && <Icon name={props.icon} />
      )}
      {props.children !== undefined && <span>{props.children}</span>}
    </button>
  )
}
