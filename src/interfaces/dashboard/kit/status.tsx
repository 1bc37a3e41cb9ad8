import { formatNumber, toneOfHealth, type Tone } from '../model/format.ts'
import type { ListedRun } from '../shapes.ts'
import { Icon, type IconName } from './icon.tsx'
import { Link } from './link.tsx'

/** A status, a health, a liveness or an action as a pill. `why` is the reason, for the pointer; pages also have it in text. */
export function StatusPill(props: {
  is: string
  why?: string | null
  count?: number
  /** Of a health: it has the colour of its severity. */
  severity?: ListedRun['severity']
}) {
  const { icon, tone } = styleOf(props.is)
  const label = labelOf(props.is)
  return (
    <Pill
      tone={toneOfHealth(props.severity, tone)}
      icon={icon}
      label={props.count === undefined ? label : `${formatNumber(props.count)} ${label}`}
      title={props.why ?? undefined}
    />
  )
}

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

/** Nothing is a colour alone: icon, label and colour mean the same. */
const STYLES: Readonly<Record<string, readonly [IconName, Tone, label?: string]>> = {
  // Runs
  queued: ['clock', 'quiet'],
  running: ['play', 'busy'],
  interrupted: ['pause', 'warn'],
  succeeded: ['check', 'good'],
  failed: ['cross', 'bad'],
  cancelled: ['stop', 'quiet'],
  abandoned: ['broom', 'quiet', 'Timeout – auto-cleaned'],
  // Targets
  planned: ['clock', 'quiet'],
  in_progress: ['play', 'busy'],
  done: ['check', 'good'],
  stuck: ['hold', 'bad'],
  parked: ['parked', 'warn'],
  // Health of a live run
  healthy: ['pulse', 'good'],
  waiting: ['clock', 'quiet'],
  paused: ['pause', 'quiet'],
  orphaned: ['unlink', 'bad'],
  stalled: ['warning', 'warn'],
  dead: ['cross', 'bad'],
  // Liveness
  present: ['pulse', 'good'],
  silent: ['dash', 'warn'],
  gone: ['cross', 'bad'],
  unknown: ['question', 'quiet'],
  // Actions of verdicts and of the audit trail
  leave: ['check', 'good'],
  alert: ['bell', 'warn'],
  resume: ['play', 'good'],
  replan: ['again', 'good'],
  retry: ['again', 'busy'],
  park: ['parked', 'warn'],
  unpark: ['play', 'good'],
  hold: ['hold', 'warn'],
  fail: ['cross', 'bad'],
  wait: ['clock', 'quiet'],
  abandon: ['broom', 'quiet', 'clean'],
  resumable: ['pause', 'good'],
  cancel: ['stop', 'warn'],
  revert: ['undo', 'busy'],
  rewind: ['undo', 'busy'],
  delete: ['trash', 'bad'],
  acknowledge: ['check', 'quiet'],
  acknowledged: ['check', 'quiet'],
  'reset-failed': ['again', 'busy'],
  pause: ['pause', 'quiet'],
  unpause: ['unpause', 'good'],
}

export function styleOf(name: string): { readonly icon: IconName; readonly tone: Tone } {
  const [icon, tone] = (Object.hasOwn(STYLES, name) && STYLES[name]) || (['dot', 'quiet'] as const)
  return { icon, tone }
}

export function labelOf(name: string): string {
  return (Object.hasOwn(STYLES, name) && STYLES[name]?.[2]) || name.replaceAll('_', ' ')
}

/** Big numbers by state, each a link: the state stands for `*` in `to`. */
export function Totals(props: {
  of: readonly (readonly [state: string, count: number])[]
  to: string
  /** Shown if there is nothing to count. */
  none?: string
}) {
  if (props.of.length === 0) return <p class="pad faint">{props.none}</p>
  return (
    <ul class="totals">
      {props.of.map(([state, count]) => (
        <li key={state}>
          <Link to={props.to.replace('*', encodeURIComponent(state))} class="big">
            {formatNumber(count)}
          </Link>
          <StatusPill is={state} />
        </li>
      ))}
    </ul>
  )
}
