import { LOOKS, type AnyStatus, type Tone } from '../model/status-style.ts'
import { Icon, type IconName } from './icon.tsx'

/** A state as a pill. `why` is the reason, for the pointer; pages also say it in text. */
export function Status({ is, why }: { is: AnyStatus; why?: string | null }) {
  const { word, icon, tone } = LOOKS[is]
  return <Pill tone={tone} icon={icon} word={word} title={why ?? undefined} />
}

/** A pill for a state that is not one of the product's, such as an action of a verdict. */
export function Pill(props: {
  tone: Tone
  word: string
  icon?: IconName | undefined
  title?: string | undefined
}) {
  return (
    <span class={`pill tone-${props.tone}`} title={props.title}>
      {props.icon && <Icon name={props.icon} size={13} />}
      <span>{props.word}</span>
    </span>
  )
}
