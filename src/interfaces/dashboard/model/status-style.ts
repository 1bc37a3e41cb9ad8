import type { IconName } from '../kit/icon.tsx'
import type { Health, RunStatus, Liveness, TargetStatus } from '../shapes.ts'

/** Colours of meaning: `busy` moves on, `quiet` is over or not begun. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet'

/** A state is never a colour alone: icon, word and colour say the same. */
export type StatusStyle = { readonly label: string; readonly icon: IconName; readonly tone: Tone }

export type AnyStatus = RunStatus | TargetStatus | Health | Liveness

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
