import type { Policy } from '../model/policy.ts'
import { inWords, type Millis } from '../model/time.ts'
import type { Decision } from '../model/verdict.ts'
import type { Snapshot } from './recovery.ts'

export type Outlook = {
  /** The settings that led to the verdict, or will to the next one. */
  readonly policy: readonly (keyof Policy)[]
  /** What would change the verdict, in sentences. */
  readonly changes: readonly string[]
}

/** What a verdict hangs on: for the person who asks why, and what comes next. Reads only its arguments. */
export function outlook(
  { run, target, owner }: Snapshot,
  { action }: Decision,
  policy: Policy,
  now: Millis,
): Outlook {
  const idle = now - (target ?? run).lastActivityAt
  switch (action) {
    case 'leave':
      return owner ? whileAlive(policy, idle) : { policy: [], changes: leftAlone(run) }
    case 'alert':
      return {
        policy: ['maxSilenceMs', 'maxDurationMs', 'onStalled'],
        changes: [
          'A saved page makes it well again.',
          "With `onStalled: 'resume'` or `'fail'` in its policy it would be stopped by itself; as it is, people are told.",
        ],
      }
    case 'resume':
    case 'replan':
      return {
        policy: ['leaseMs', 'onCrash', 'maxCrashes'],
        changes: [
          'Any worker that runs takes it back within a second; `unstuck recover` does it now.',
          `After ${policy.maxCrashes} workers lost on a target alone, without a page in between, it is parked instead.`,
        ],
      }
    case 'retry':
      return {
        policy: ['leaseMs', 'maxRetries'],
        changes: [
          'It becomes failed and a new run is queued in its place; a page saved before would have made it go on instead.',
        ],
      }
    case 'fail':
      return {
        policy: ['onCrash', 'maxRetries', 'onStalled', 'staleAfterMs', 'onStale'],
        changes: [
          'What was saved is kept. `unstuck revert` takes it back, `unstuck resume` opens it again.',
        ],
      }
    case 'park':
    case 'hold':
      return {
        policy: ['maxCrashes', 'onCrash'],
        changes: [
          'Nothing happens to it by itself any more: `unstuck unpark` puts it back in line.',
        ],
      }
    case 'wait': {
      const left = policy.abandonAfterMs - (now - run.createdAt)
      return {
        policy: ['abandonAfterMs'],
        changes: [
          'A worker that starts takes it up.',
          `If nobody does, it counts as dead in ${inWords(left)}.`,
        ],
      }
    }
    case 'abandon':
      return {
        policy: ['abandonAfterMs', 'autoClean'],
        changes: [
          'A worker that starts may still take it up; a saved page would keep it for ever.',
          policy.autoClean
            ? 'Its policy says autoClean: any worker that runs marks it within a minute.'
            : '`unstuck clean` marks it as “Timeout – auto-cleaned”; nothing is deleted, and `unstuck revert` takes it back.',
        ],
      }
    case 'resumable':
      return {
        policy: ['abandonAfterMs'],
        changes: ['It is never cleaned. A worker that starts goes on from its last saved pages.'],
      }
  }
}

function whileAlive(policy: Policy, idle: number): Outlook {
  const left = policy.maxSilenceMs - idle
  const then =
    policy.onStalled === 'alert' ? 'people are told' : `the policy says ${policy.onStalled}`
  return {
    policy: ['leaseMs', 'maxSilenceMs', 'maxDurationMs', 'onStalled'],
    changes: [
      `If its worker dies, that is known within a second on this host; if it falls silent, after ${inWords(policy.leaseMs)}.`,
      left > 0
        ? `If it saves nothing for another ${inWords(left)}, it is stalled, and ${then}.`
        : `It has saved nothing for ${inWords(idle)}: ${then}.`,
    ],
  }
}

function leftAlone(run: Snapshot['run']): string[] {
  return run.reverted
    ? ['Nothing automatic ends it until a worker has had it again.']
    : ['It has ended: only a person opens it again (`unstuck resume`, `unstuck retry`).']
}
