import { STATUS_STYLES, type AnyStatus, type Tone } from '../model/status-style.ts'
import { Icon, type IconName } from './icon.tsx'

/** A state as a pill. `why` is the reason, for the pointer; pages also say it in text. */
export function StatusPill({ is, why }: { is: AnyStatus; why?: string | null }) {
  const { label, icon, tone } = STATUS_STYLES[is]
  return <Pill tone={tone} icon={icon} label={label} title={why ?? undefined} />
}

/** A pill for a state that is not one of the product's, such as an action of a verdict. */
export function Pill(props: {
  tone: Tone
  label: string
  icon?: IconName | undefined
  title?: string | undefined
}) {
  return (
    <span class={`pill tone-${props.tone}`} title={props.title}>
      {props.icon && <Icon name={props.icon} size={13} />}
      <span>{props.label}</span>
    </span>
  )
}
