import type { StatusStyle } from '../model/status-style.ts'

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
