import type { Look } from '../model/status-style.ts'

/** Actions of verdicts and of the audit trail: what they do, at a glance. */
const LOOKS: Readonly<Record<string, Look>> = {
  leave: { word: 'leave', icon: 'check', tone: 'good' },
  alert: { word: 'alert', icon: 'bell', tone: 'warn' },
  resume: { word: 'resume', icon: 'play', tone: 'good' },
  replan: { word: 'replan', icon: 'again', tone: 'good' },
  retry: { word: 'retry', icon: 'again', tone: 'busy' },
  park: { word: 'park', icon: 'parked', tone: 'warn' },
  unpark: { word: 'unpark', icon: 'play', tone: 'good' },
  hold: { word: 'hold', icon: 'hold', tone: 'warn' },
  fail: { word: 'fail', icon: 'cross', tone: 'bad' },
  wait: { word: 'wait', icon: 'clock', tone: 'quiet' },
  abandon: { word: 'clean', icon: 'broom', tone: 'quiet' },
  resumable: { word: 'resumable', icon: 'pause', tone: 'good' },
  cancel: { word: 'cancel', icon: 'stop', tone: 'warn' },
  revert: { word: 'revert', icon: 'undo', tone: 'busy' },
  rewind: { word: 'rewind', icon: 'undo', tone: 'busy' },
  delete: { word: 'delete', icon: 'trash', tone: 'bad' },
}

/** An action that nobody drew yet keeps its own word. */
export function lookOfAction(action: string): Look {
  return Object.hasOwn(LOOKS, action)
    ? LOOKS[action]!
    : { word: action.replaceAll('_', ' '), icon: 'dot', tone: 'quiet' }
}
