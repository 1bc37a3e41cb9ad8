import type { IconName } from '../kit/icon.tsx'
import type { Health, RunStatus, Sign, TargetStatus } from '../shapes.ts'

/** Colours of meaning: `busy` moves on, `quiet` is over or not begun. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'quiet'

/** A state is never a colour alone: icon, word and colour say the same. */
export type Look = { readonly word: string; readonly icon: IconName; readonly tone: Tone }

export type AnyStatus = RunStatus | TargetStatus | Health | Sign

export const LOOKS: Readonly<Record<AnyStatus, Look>> = {
  // Runs
  queued: { word: 'queued', icon: 'clock', tone: 'quiet' },
  running: { word: 'running', icon: 'play', tone: 'busy' },
  interrupted: { word: 'interrupted', icon: 'pause', tone: 'warn' },
  succeeded: { word: 'succeeded', icon: 'check', tone: 'good' },
  failed: { word: 'failed', icon: 'cross', tone: 'bad' },
  cancelled: { word: 'cancelled', icon: 'stop', tone: 'quiet' },
  abandoned: { word: 'Timeout – auto-cleaned', icon: 'broom', tone: 'quiet' },
  // Targets
  planned: { word: 'planned', icon: 'clock', tone: 'quiet' },
  in_progress: { word: 'in progress', icon: 'play', tone: 'busy' },
  done: { word: 'done', icon: 'check', tone: 'good' },
  stuck: { word: 'stuck', icon: 'hold', tone: 'bad' },
  parked: { word: 'parked', icon: 'parked', tone: 'warn' },
  // Health of a live run
  healthy: { word: 'healthy', icon: 'pulse', tone: 'good' },
  waiting: { word: 'waiting', icon: 'clock', tone: 'quiet' },
  orphaned: { word: 'orphaned', icon: 'unlink', tone: 'bad' },
  stalled: { word: 'stalled', icon: 'warning', tone: 'warn' },
  dead: { word: 'dead', icon: 'cross', tone: 'bad' },
  // Signs of life
  present: { word: 'present', icon: 'pulse', tone: 'good' },
  silent: { word: 'silent', icon: 'dash', tone: 'warn' },
  gone: { word: 'gone', icon: 'cross', tone: 'bad' },
  unknown: { word: 'unknown', icon: 'question', tone: 'quiet' },
}
