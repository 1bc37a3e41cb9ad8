import { Icon, type IconName } from './icon.tsx'
import type { Health, Liveness, RunStatus, TargetStatus } from '../shapes.ts'

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

/** Colours of meaning: `busy` moves on, `quiet` is over or not begun. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet'

/** A state is never a colour alone: icon, word and colour say the same. */
type StatusStyle = { readonly label: string; readonly icon: IconName; readonly tone: Tone }

type AnyStatus = RunStatus | TargetStatus | Health | Liveness

export const STATUS_STYLES: Readonly<Record<AnyStatus, StatusStyle>> = {
  // Runs
  queued: { label: 'queued', icon: 'clock', tone: 'quiet' },
  running: { label: 'running', icon: 'play', tone: 'busy' },
  interrupted: { label: 'interrupted', icon: 'pause', tone: 'warn' },
  succeeded: { label: 'succeeded', icon: 'check', tone: 'good' },
  failed: { label: 'failed', icon: 'cross', tone: 'bad' },
  cancelled: { label: 'cancelled', icon: 'stop', tone: 'quiet' },
  abandoned: { label: 'Timeout – auto-cleaned', icon: 'broom', tone: 'quiet' },
  // Targets
  planned: { label: 'planned', icon: 'clock', tone: 'quiet' },
  in_progress: { label: 'in progress', icon: 'play', tone: 'busy' },
  done: { label: 'done', icon: 'check', tone: 'good' },
  stuck: { label: 'stuck', icon: 'hold', tone: 'bad' },
  parked: { label: 'parked', icon: 'parked', tone: 'warn' },
  // Health of a live run
  healthy: { label: 'healthy', icon: 'pulse', tone: 'good' },
  waiting: { label: 'waiting', icon: 'clock', tone: 'quiet' },
  paused: { label: 'paused', icon: 'pause', tone: 'warn' },
  orphaned: { label: 'orphaned', icon: 'unlink', tone: 'bad' },
  stalled: { label: 'stalled', icon: 'warning', tone: 'warn' },
  dead: { label: 'dead', icon: 'cross', tone: 'bad' },
  // Signs of life
  present: { label: 'present', icon: 'pulse', tone: 'good' },
  silent: { label: 'silent', icon: 'dash', tone: 'warn' },
  gone: { label: 'gone', icon: 'cross', tone: 'bad' },
  unknown: { label: 'unknown', icon: 'question', tone: 'quiet' },
}

/** Actions of verdicts and of the audit trail: what they do, at a glance. */
const ACTION_STYLES: Readonly<Record<string, StatusStyle>> = {
  leave: { label: 'leave', icon: 'check', tone: 'good' },
  alert: { label: 'alert', icon: 'bell', tone: 'warn' },
  resume: { label: 'resume', icon: 'play', tone: 'good' },
  replan: { label: 'replan', icon: 'again', tone: 'good' },
  retry: { label: 'retry', icon: 'again', tone: 'busy' },
  park: { label: 'park', icon: 'parked', tone: 'warn' },
  unpark: { label: 'unpark', icon: 'play', tone: 'good' },
  hold: { label: 'hold', icon: 'hold', tone: 'warn' },
  fail: { label: 'fail', icon: 'cross', tone: 'bad' },
  wait: { label: 'wait', icon: 'clock', tone: 'quiet' },
  abandon: { label: 'clean', icon: 'broom', tone: 'quiet' },
  resumable: { label: 'resumable', icon: 'pause', tone: 'good' },
  cancel: { label: 'cancel', icon: 'stop', tone: 'warn' },
  revert: { label: 'revert', icon: 'undo', tone: 'busy' },
  rewind: { label: 'rewind', icon: 'undo', tone: 'busy' },
  delete: { label: 'delete', icon: 'trash', tone: 'bad' },
}

/** An action that nobody drew yet keeps its own word. */
export function actionStyle(action: string): StatusStyle {
  return Object.hasOwn(ACTION_STYLES, action)
    ? ACTION_STYLES[action]!
    : { label: action.replaceAll('_', ' '), icon: 'dot', tone: 'quiet' }
}
