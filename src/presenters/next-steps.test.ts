import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DEFAULT_POLICY, type Policy } from '../core/model/policy.ts'
import { isLive, RUN_STATUSES } from '../core/model/run.ts'
import { TARGET_STATUSES } from '../core/model/target.ts'
import { ACTIONS, type Action } from '../core/model/verdict.ts'
import type { Liveness } from '../core/model/worker.ts'
import { explainNextSteps } from './next-steps.ts'
import { decide, type Snapshot } from '../core/decide/recovery.ts'
import { makeRowTraits, STANDARD_TRAITS } from '../testing/traits.ts'

const NOW = 1_800_000_000_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE

type Case = {
  run?: Partial<Snapshot['run']>
  target?: Partial<NonNullable<Snapshot['target']>>
  owner?: Liveness
  policy?: Partial<Policy>
}

function snapshot({ run = {}, target, owner }: Case): Snapshot {
  return {
    run: {
      status: 'running',
      kind: 'crawl',
      createdAt: NOW - HOUR,
      startedAt: NOW - HOUR,
      resumedAt: null,
      lastActivityAt: NOW - MINUTE,
      retries: 0,
      hasProgress: false,
      isComplete: false,
      isClaimed: true,
      hasWaiting: true,
      isReopened: false,
      isPaused: false,
      traits: STANDARD_TRAITS,
      ...run,
    },
    target: target
      ? {
          status: 'in_progress',
          page: 0,
          hasProgress: false,
          crashesAlone: 0,
          errors: 0,
          lastActivityAt: NOW - MINUTE,
          ...target,
        }
      : null,
    owner: owner ? { liveness: owner, because: `the owner is ${owner}` } : null,
  }
}

const page7 = { page: 7, hasProgress: true }
const old = { createdAt: NOW - 25 * HOUR }

/** Seen, decided, and what a person is told of what it hangs on. */
const cases: [string, Case, Action, (keyof Policy)[], RegExp][] = [
  [
    'at work',
    { owner: 'present' },
    'leave',
    ['leaseMs', 'maxSilenceMs', 'maxDurationMs', 'onStalled'],
    /falls silent, after 15 s.*another 14 min, it is stalled, and an alert is raised/s,
  ],
  [
    'at work, by a policy that stops what stands still',
    { owner: 'present', policy: { onStalled: 'resume' } },
    'leave',
    ['leaseMs', 'maxSilenceMs', 'maxDurationMs', 'onStalled'],
    /it is stalled, and `onStalled: 'resume'` applies/,
  ],
  [
    'a target at work counts by its own last page',
    { owner: 'present', target: { lastActivityAt: NOW - 10 * MINUTE } },
    'leave',
    ['leaseMs', 'maxSilenceMs', 'maxDurationMs', 'onStalled'],
    /another 5 min/,
  ],
  [
    'standing still',
    { owner: 'present', target: { lastActivityAt: NOW - HOUR } },
    'alert',
    ['maxSilenceMs', 'maxDurationMs', 'onStalled'],
    /A saved page makes it healthy again.*`onStalled: 'resume'`/s,
  ],
  [
    'worker gone, a page done',
    { owner: 'gone', target: page7 },
    'resume',
    ['leaseMs', 'onCrash', 'maxCrashes'],
    /`unstuck recover` does it now.*After 3 workers lost/s,
  ],
  [
    'worker gone, and what it held is back in the queue already',
    { owner: 'gone', run: { status: 'interrupted', hasProgress: true } },
    'resume',
    ['leaseMs', 'onCrash', 'maxCrashes'],
    /^A worker that starts takes it up\.$/m,
  ],
  [
    'worker gone, nothing done',
    { owner: 'gone', target: {}, policy: { maxCrashes: 5 } },
    'replan',
    ['leaseMs', 'onCrash', 'maxCrashes'],
    /After 5 workers lost/,
  ],
  [
    'worker gone, nothing done, one target',
    { owner: 'gone', target: {}, run: { kind: 'single' } },
    'retry',
    ['leaseMs', 'runRetries'],
    /`unstuck recover` does it now.*a new run is queued/s,
  ],
  [
    'worker gone, by policy fail',
    { owner: 'gone', target: page7, policy: { onCrash: 'fail' } },
    'fail',
    ['onCrash', 'runRetries', 'onStalled', 'staleAfterMs', 'onStale'],
    /Saved items stay\. `unstuck revert`/,
  ],
  [
    'worker gone, by policy hold',
    { owner: 'gone', target: page7, policy: { onCrash: 'hold' } },
    'hold',
    ['maxCrashes', 'onCrash'],
    /`unstuck unpark`/,
  ],
  [
    'worker gone, one too many',
    { owner: 'gone', target: { crashesAlone: 3 } },
    'park',
    ['maxCrashes', 'onCrash'],
    /`unstuck unpark`/,
  ],
  ['no owner, young', {}, 'wait', ['abandonAfterMs'], /counts as dead in 23 h/],
  [
    'interrupted with progress: maxSilence decides when that needs attention',
    { run: { status: 'interrupted', hasProgress: true } },
    'resumable',
    ['maxSilenceMs', 'abandonAfterMs'],
    /never cleaned/,
  ],
  ['queued, old', { run: { ...old, status: 'queued' } }, 'wait', [], /^A worker that starts/],
  [
    'no owner, old',
    { run: old },
    'abandon',
    ['abandonAfterMs', 'autoClean'],
    /`unstuck clean` marks/,
  ],
  [
    'nobody, old, and the policy cleans by itself',
    { run: old, policy: { autoClean: true } },
    'abandon',
    ['abandonAfterMs', 'autoClean'],
    /Its policy has autoClean/,
  ],
  [
    'no owner, with progress',
    { run: { ...old, hasProgress: true } },
    'resumable',
    ['abandonAfterMs'],
    /never cleaned/,
  ],
  [
    'opened again by a person',
    { run: { isReopened: true } },
    'leave',
    [],
    /until a worker has claimed it/,
  ],
  ['ended', { run: { status: 'cancelled' } }, 'leave', [], /^It has ended: only an operator/],
  [
    'ended, after it was opened again',
    { run: { status: 'failed', isReopened: true } },
    'leave',
    [],
    /^It has ended: only an operator/,
  ],
  [
    'ended, while a worker of its source lives',
    { run: { status: 'failed' }, owner: 'present' },
    'leave',
    [],
    /^It has ended: only an operator/,
  ],
  [
    'ended, with a target still in hand',
    { run: { status: 'cancelled' }, owner: 'present', target: {} },
    'leave',
    [],
    /^It has ended/,
  ],
  ['planned', { target: { status: 'planned' } }, 'leave', [], /^A worker claims it when its turn/],
  [
    'planned, of an ended run',
    { target: { status: 'planned' }, run: { status: 'failed' } },
    'leave',
    [],
    /^Its run has ended: `unstuck resume`/,
  ],
  ['done', { target: { status: 'done' } }, 'leave', [], /^It is done\. `unstuck rewind`.*again\.$/],
  [
    'failed',
    { target: { status: 'failed' } },
    'leave',
    [],
    /`unstuck reset-failed` tries it again\.$/,
  ],
  [
    'held',
    { target: { status: 'stuck' } },
    'leave',
    [],
    /`unstuck unpark` puts it back in the queue\.$/,
  ],
  [
    'parked, of an ended run',
    { target: { status: 'parked' }, run: { status: 'failed' } },
    'leave',
    [],
    /`unstuck unpark` puts it back in the queue and opens its run again\.$/,
  ],
]

for (const [title, given, action, policy, changes] of cases) {
  test(`${title}: ${action}`, () => {
    const by = { ...DEFAULT_POLICY, ...given.policy }
    const seen = snapshot(given)
    const decision = decide(seen, by, NOW)
    assert.equal(decision.action, action)
    const view = explainNextSteps(seen, decision, by, NOW)
    assert.deepEqual(view.policy, policy)
    assert.match(view.changes.join('\n'), changes)
  })
}

const moment = fc.integer({ min: NOW - 400 * HOUR, max: NOW + HOUR })
const anySnapshot: fc.Arbitrary<Snapshot> = fc.record({
  run: fc.record({
    status: fc.constantFrom(...RUN_STATUSES),
    kind: fc.constantFrom('crawl' as const, 'single' as const),
    createdAt: moment,
    startedAt: fc.option(moment),
    resumedAt: fc.option(moment),
    lastActivityAt: moment,
    retries: fc.nat(5),
    hasProgress: fc.boolean(),
    isComplete: fc.constant(false),
    isClaimed: fc.boolean(),
    hasWaiting: fc.boolean(),
    isReopened: fc.boolean(),
    isPaused: fc.constant(false),
    traits: fc.constantFrom(STANDARD_TRAITS, makeRowTraits()),
  }),
  target: fc.option(
    fc.record({
      status: fc.constantFrom(...TARGET_STATUSES),
      page: fc.nat(100),
      hasProgress: fc.boolean(),
      crashesAlone: fc.nat(6),
      errors: fc.nat(5),
      lastActivityAt: moment,
    }),
  ),
  owner: fc.option(
    fc.record({
      liveness: fc.constantFrom<Liveness>('present', 'gone', 'silent', 'stalled', 'unknown'),
      because: fc.string(),
    }),
  ),
})

test('an adopted row is not described as handled by a worker', () => {
  for (const owner of ['present', 'gone', undefined] as const) {
    for (const status of ['running', 'interrupted', 'failed'] as const) {
      for (const run of [{}, old, { hasProgress: true }, { isReopened: true }]) {
        const seen = snapshot({
          run: { ...run, status, traits: makeRowTraits(), kind: 'single' },
          owner,
        })
        const { changes } = explainNextSteps(
          seen,
          decide(seen, DEFAULT_POLICY, NOW),
          DEFAULT_POLICY,
          NOW,
        )
        assert.doesNotMatch(
          changes.join(),
          /[Aa]ny worker|A worker|a worker|workers lost|auto-cleaned|unstuck (retry|resume)/,
        )
      }
    }
  }
})

test('a run without a known owner shows when it becomes stale, if that comes first', () => {
  const policy = { ...DEFAULT_POLICY, staleAfterMs: 5 * MINUTE, onStale: 'fail' as const }
  const seen = snapshot({ run: { traits: makeRowTraits(), kind: 'single' } })
  const told = explainNextSteps(seen, decide(seen, policy, NOW), policy, NOW)
  assert.match(told.changes[1]!, /for another 4 min, it is failed/)
  assert.deepEqual(told.policy.slice(0, 2), ['staleAfterMs', 'onStale'])
})

test('always: every action has next steps, in whole sentences, naming existing settings', () => {
  const action = fc.constantFrom(...ACTIONS)
  fc.assert(
    fc.property(anySnapshot, action, (seen, action) => {
      const { policy, changes } = explainNextSteps(
        seen,
        { action, because: 'x' },
        DEFAULT_POLICY,
        NOW,
      )
      assert.ok(changes.length > 0)
      for (const change of changes) assert.match(change, /^[A-Z`].*\.$/)
      for (const field of policy) assert.ok(field in DEFAULT_POLICY, field)
      assert.equal(new Set(policy).size, policy.length)
    }),
    { numRuns: 2_000 },
  )
})

test('always: an ended run does not describe what happens if its worker dies', () => {
  fc.assert(
    fc.property(anySnapshot, (seen) => {
      const isOpen =
        isLive(seen.run.status) && (seen.target?.status ?? 'in_progress') === 'in_progress'
      if (isOpen) return
      const view = explainNextSteps(seen, decide(seen, DEFAULT_POLICY, NOW), DEFAULT_POLICY, NOW)
      assert.deepEqual(view.policy, [])
      assert.doesNotMatch(view.changes.join(), /dies|saves nothing/)
    }),
    { numRuns: 2_000 },
  )
})
