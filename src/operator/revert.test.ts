import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { iso } from '../core/model/time.ts'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { isLive, LIVE_STATUSES, RUN_STATUSES, type Run, type RunStatus } from '../core/model/run.ts'
import { TARGET_STATUSES, type Target, type TargetStatus } from '../core/model/target.ts'
import { RUN_TRANSITIONS, TARGET_TRANSITIONS } from '../testing/transitions.ts'
import { TARGET_STATUS_AFTER } from '../core/model/verdict.ts'
import {
  decideRevert,
  isUnchanged,
  type AuditedAction,
  type RevertDecision,
  type RevertFacts,
} from './revert.ts'
import { makeRowTraits, STANDARD_TRAITS } from '../testing/traits.ts'

const NOW = 1_800_000_000_000
const RUN = '00000000-0000-7000-8000-0000000000a1'
const RETRY = '00000000-0000-7000-8000-0000000000b2'
const NEWER = '00000000-0000-7000-8000-0000000000c3'

function aRun(status: RunStatus, more: Partial<Run> = {}): Run {
  return {
    id: RUN,
    source: 'shop',
    kind: 'crawl',
    status,
    createdAt: NOW,
    startedAt: NOW,
    resumedAt: null,
    reopenedAt: null,
    paused: null,
    plannedAt: NOW,
    finishedAt: isLive(status) ? null : NOW,
    acknowledgedAt: null,
    lastActivityAt: NOW,
    counts: {
      targets: { planned: 0, in_progress: 0, done: 0, failed: 0, stuck: 0, parked: 0 },
      pages: 0,
      itemsNew: 0,
      itemsUpdated: 0,
      itemsUnchanged: 0,
      skipped: 0,
      errors: 0,
      refused: 0,
    },
    progress: null,
    resumes: 0,
    retries: 0,
    input: null,
    artifacts: 0,
    retryOf: null,
    error: null,
    owner: null,
    policy: DEFAULT_POLICY,
    traits: STANDARD_TRAITS,
    ...more,
  }
}

function aTarget(id: string, status: TargetStatus, seq = 0): Target {
  return {
    id,
    run: RUN,
    key: id,
    group: null,
    url: null,
    status,
    seq,
    page: seq,
    pageTarget: null,
    next: null,
    lastItemId: null,
    cursor: null,
    epoch: 1,
    claimId: null,
    worker: null,
    claimedAt: null,
    attempts: 1,
    errors: 0,
    crashes: 0,
    crashesAlone: 0,
    lastActivityAt: NOW,
    lastError: null,
    finishedAt: null,
    acknowledgedAt: null,
  }
}

// Entries as the stores write them.
const onRun = (action: string, before: RunStatus, after: RunStatus): AuditedAction => ({
  action,
  target: null,
  before: { status: before },
  after: { status: after },
})
const onTarget = (
  action: string,
  target: string,
  after: TargetStatus,
  before: TargetStatus = 'in_progress',
): AuditedAction => ({
  action,
  target,
  before: { status: before, epoch: 1, worker: 'w', page: 0 },
  after: { status: after },
})
const replanned = (
  action: string,
  before: RunStatus,
  target: string | null = null,
): AuditedAction => ({
  action,
  target,
  before: { status: before, targets: { failed: 1 } },
  after: { status: 'interrupted', targets: { planned: 1 } },
})
const rewound = (target: string): AuditedAction => ({
  action: 'rewind',
  target,
  before: { status: 'done', page: 3 },
  after: { status: 'planned', page: 0 },
})
const reverted = (before: RunStatus): AuditedAction => ({
  action: 'revert',
  target: null,
  before: { status: before },
  after: { status: 'interrupted', undoes: 'cancel', targets: 0 },
})
const retriedRun = (before: RunStatus, after: RunStatus): AuditedAction => ({
  ...onRun('retry', before, after),
  after: { status: after, newRun: RETRY },
})
const retriedTarget: AuditedAction = {
  ...onTarget('retry', 't', 'failed'),
  after: { status: 'failed', newRun: RETRY },
}
const theRetry = (more: Partial<Run> = {}): Run =>
  aRun('queued', { id: RETRY, startedAt: null, ...more })

type ExpectedRevert = Partial<Omit<Extract<RevertDecision, { action: 'revert' }>, 'action'>>

/** What was done, and the way back. */
const reversible: [string, Partial<RevertFacts> & { run: Run }, ExpectedRevert][] = [
  [
    'a clean of a queued run: queued again',
    { run: aRun('abandoned'), trail: [onRun('abandon', 'queued', 'abandoned')] },
    { undoes: 'abandon', to: 'queued', targets: [], cancel: null },
  ],
  [
    'a clean of an interrupted run',
    { run: aRun('abandoned'), trail: [onRun('abandon', 'interrupted', 'abandoned')] },
    { undoes: 'abandon', to: 'interrupted' },
  ],
  [
    'a cancel of a running one: it has no worker now',
    { run: aRun('cancelled'), trail: [onRun('cancel', 'running', 'cancelled')] },
    { undoes: 'cancel', to: 'interrupted' },
  ],
  [
    'a fail by age or time',
    { run: aRun('failed'), trail: [onRun('fail', 'running', 'failed')] },
    { undoes: 'fail', to: 'interrupted' },
  ],
  [
    'a retry of a live run that has not begun: it is cancelled',
    { run: aRun('failed'), trail: [retriedRun('queued', 'failed')], otherLive: theRetry() },
    { undoes: 'retry', to: 'queued', cancel: RETRY },
  ],
  [
    'a retry of a live run, cancelled since',
    { run: aRun('failed'), trail: [retriedRun('running', 'failed')] },
    { undoes: 'retry', to: 'interrupted', cancel: null },
  ],
  [
    "recovery's retry: the target is back in the queue, and the new run goes",
    {
      run: aRun('failed', { kind: 'single' }),
      trail: [retriedTarget],
      targets: [aTarget('t', 'failed')],
      otherLive: theRetry(),
    },
    {
      undoes: 'retry',
      to: 'interrupted',
      targets: [{ id: 't', status: 'failed', seq: 0 }],
      cancel: RETRY,
    },
  ],
  [
    'a hold that ended the run',
    {
      run: aRun('failed', { kind: 'single' }),
      trail: [onTarget('hold', 't', 'stuck')],
      targets: [aTarget('t', 'stuck', 4)],
    },
    { undoes: 'hold', to: 'interrupted', targets: [{ id: 't', status: 'stuck', seq: 4 }] },
  ],
  [
    'what recovery set aside in a run that goes on',
    {
      run: aRun('running'),
      trail: [onTarget('park', 't', 'parked'), onTarget('fail', 'u', 'failed')],
      targets: [aTarget('t', 'parked'), aTarget('u', 'failed', 2)],
    },
    {
      undoes: 'park',
      to: 'running',
      targets: [
        { id: 't', status: 'parked', seq: 0 },
        { id: 'u', status: 'failed', seq: 2 },
      ],
    },
  ],
  [
    'of those only what is still aside',
    {
      run: aRun('running'),
      trail: [
        onTarget('park', 't', 'parked'),
        onTarget('resume', 'u', 'planned'),
        onTarget('fail', 'u', 'failed'),
        onTarget('hold', 'gone', 'stuck'),
      ],
      targets: [aTarget('t', 'parked'), aTarget('u', 'done')],
    },
    { undoes: 'park', targets: [{ id: 't', status: 'parked', seq: 0 }] },
  ],
  [
    'a cancel, and what had been set aside before stays so',
    {
      run: aRun('cancelled'),
      trail: [onRun('cancel', 'running', 'cancelled'), onTarget('park', 't', 'parked')],
      targets: [aTarget('t', 'parked')],
    },
    { undoes: 'cancel', targets: [] },
  ],
  [
    'a cancel after an earlier one was taken back',
    {
      run: aRun('cancelled'),
      trail: [
        onRun('cancel', 'interrupted', 'cancelled'),
        reverted('cancelled'),
        onRun('cancel', 'queued', 'cancelled'),
      ],
    },
    { undoes: 'cancel', to: 'interrupted' },
  ],
  [
    'a park, though another target was put back in the queue since',
    {
      run: aRun('running'),
      trail: [replanned('unpark', 'running', 'u'), rewound('v'), onTarget('park', 't', 'parked')],
      targets: [aTarget('t', 'parked'), aTarget('u', 'planned')],
    },
    { undoes: 'park', targets: [{ id: 't', status: 'parked', seq: 0 }] },
  ],
]

for (const [title, facts, way] of reversible) {
  test(`reverts ${title}`, () => {
    const decision = decideRevert({ trail: [], targets: [], otherLive: null, ...facts })
    assert.equal(decision.action, 'revert', JSON.stringify(decision))
    assert.deepEqual({ ...decision, ...way }, decision)
  })
}

/** What was done, and why it stays. */
const refusals: [string, Partial<RevertFacts> & { run: Run }, RegExp, boolean?][] = [
  ['nothing was done', { run: aRun('running') }, /^nothing was done to it$/],
  [
    'it succeeded by itself',
    { run: aRun('succeeded') },
    /^it succeeded by itself; nothing was done to it\. `unstuck resume`/,
  ],
  ['it failed by itself', { run: aRun('failed') }, /^it failed by itself/],
  [
    'it was taken back already',
    { run: aRun('interrupted'), trail: [reverted('cancelled')] },
    /^nothing was done to it since it was reverted$/,
  ],
  [
    'recovery put a row of a table of one’s own back in the queue',
    {
      run: aRun('interrupted', { kind: 'single', traits: makeRowTraits() }),
      trail: [onTarget('resume', 't', 'planned')],
      targets: [aTarget('t', 'planned')],
    },
    /^it was put back in the queue.* What stood in its row before is in `unstuck history --json`$/,
  ],
  [
    'a row failed by itself, and there is no word to put it back in the queue',
    { run: aRun('failed', { kind: 'single', traits: makeRowTraits() }), trail: [] },
    /^it failed by itself; nothing was done to it$/,
  ],
  [
    'recovery put its work back in the queue',
    {
      run: aRun('interrupted'),
      trail: [onTarget('resume', 't', 'planned')],
      targets: [aTarget('t', 'planned')],
    },
    /nothing was taken from it/,
  ],
  [
    'a person put its work back in the queue',
    { run: aRun('interrupted'), trail: [replanned('resume', 'failed')] },
    /was resume, which took nothing away; `unstuck cancel 000000a1`/,
  ],
  [
    'a retry of what had ended before changed nothing about it',
    { run: aRun('failed'), trail: [retriedRun('failed', 'failed')], otherLive: theRetry() },
    /it had ended before.*`unstuck cancel 000000b2`/,
  ],
  [
    'it was failed, opened again by a person, and failed by itself',
    {
      run: aRun('failed'),
      trail: [replanned('reset-failed', 'failed'), onRun('fail', 'running', 'failed')],
    },
    /was reset-failed, and it has moved on since/,
  ],
  [
    'the same, opened again by a rewind',
    { run: aRun('failed'), trail: [rewound('t'), onRun('fail', 'running', 'failed')] },
    /was rewind, and it has moved on since/,
  ],
  [
    'a target was failed, put back in the queue, and failed by itself',
    {
      run: aRun('running'),
      trail: [replanned('reset-failed', 'running'), onTarget('fail', 't', 'failed')],
      targets: [aTarget('t', 'failed')],
    },
    /was reset-failed/,
  ],
  [
    'what was set aside is done since',
    {
      run: aRun('running'),
      trail: [onTarget('hold', 't', 'stuck')],
      targets: [aTarget('t', 'done')],
    },
    /was hold, and it has moved on since/,
  ],
  [
    'a newer run of the source is live',
    {
      run: aRun('cancelled'),
      trail: [onRun('cancel', 'running', 'cancelled')],
      otherLive: aRun('running', { id: NEWER }),
    },
    /^run 000000c3 of shop is running.*`unstuck cancel 000000c3` first$/,
    true,
  ],
  [
    'its retry has begun',
    {
      run: aRun('failed'),
      trail: [retriedRun('queued', 'failed')],
      otherLive: theRetry({ status: 'running', startedAt: NOW }),
    },
    /^run 000000b2 of shop is running/,
    true,
  ],
]

for (const [title, facts, because, isOtherLive = false] of refusals) {
  test(`refuses when ${title}`, () => {
    const decision = decideRevert({ trail: [], targets: [], otherLive: null, ...facts })
    assert.equal(decision.action, 'refuse', JSON.stringify(decision))
    if (decision.action !== 'refuse') return
    assert.match(decision.because, because)
    assert.equal(decision.isOtherLive, isOtherLive)
  })
}

const runStatus = fc.constantFrom(...RUN_STATUSES)
const liveStatus = fc.constantFrom(...LIVE_STATUSES)
const targetStatus = fc.constantFrom(...TARGET_STATUSES)
const targetId = fc.constantFrom('t', 'u', 'v')
const RUN_ENDS = [
  ['cancel', 'cancelled'],
  ['abandon', 'abandoned'],
  ['fail', 'failed'],
  ['resume', 'interrupted'],
] as const
const TARGET_ENDS = Object.entries(TARGET_STATUS_AFTER).filter(([action]) => action !== 'retry')
const anyDone: fc.Arbitrary<AuditedAction> = fc.oneof(
  fc
    .tuple(fc.constantFrom(...RUN_ENDS), liveStatus)
    .map(([[action, after], before]) => onRun(action, before, after)),
  fc
    .tuple(fc.constantFrom(...TARGET_ENDS), targetId)
    .map(([[action, after], target]) => onTarget(action, target, after)),
  runStatus.map((before) => retriedRun(before, isLive(before) ? 'failed' : before)),
  runStatus.map(reverted),
  fc
    .tuple(fc.constantFrom('resume', 'reset-failed', 'unpark'), runStatus, fc.option(targetId))
    .map((args) => replanned(...args)),
  targetId.map(rewound),
  // What a later version may write.
  fc.record({
    action: fc.string(),
    target: fc.option(targetId),
    before: fc.anything(),
    after: fc.anything(),
  }),
)
const anyFacts: fc.Arbitrary<RevertFacts> = fc.record({
  run: runStatus.map((status) => aRun(status)),
  trail: fc.array(anyDone, { maxLength: 8 }),
  targets: fc
    .tuple(targetStatus, targetStatus, targetStatus, fc.nat(9))
    .map(([t, u, v, seq]) => [aTarget('t', t, seq), aTarget('u', u), aTarget('v', v)]),
  otherLive: fc.option(
    fc.constantFrom(theRetry(), theRetry({ startedAt: NOW }), aRun('running', { id: NEWER })),
  ),
})

function always(what: string, holds: (facts: RevertFacts, decision: RevertDecision) => void): void {
  test(`always: ${what}`, () => {
    const property = fc.property(anyFacts, (facts) => holds(facts, decideRevert(facts)))
    fc.assert(property, { numRuns: 2_000 })
  })
}

always('every input has a decision, and the same input the same decision', (facts, decision) => {
  assert.deepEqual(decideRevert(facts), decision)
  if (decision.action === 'refuse') assert.ok(decision.because.length > 0)
})

always('a run comes back alive, by a move that is legal', ({ run }, decision) => {
  if (decision.action !== 'revert') return
  assert.ok(isLive(decision.to))
  if (decision.to !== run.status) assert.ok(RUN_TRANSITIONS[run.status].includes(decision.to))
})

always(
  'only targets that were set aside are requeued, in their current state',
  ({ targets }, decision) => {
    if (decision.action !== 'revert') return
    for (const { id, status, seq } of decision.targets) {
      const target = targets.find((one) => one.id === id)!
      assert.deepEqual([target.status, target.seq], [status, seq])
      assert.ok(TARGET_TRANSITIONS[status].includes('planned'), status)
    }
  },
)

always('beside another live run it comes back only in place of an unbegun retry', (facts, it) => {
  if (it.action !== 'revert' || !facts.otherLive) return
  assert.equal(it.cancel, facts.otherLive.id)
  assert.equal(facts.otherLive.startedAt, null)
})

always('nothing older than the last revert is reverted', (facts, decision) => {
  const since = facts.trail.findIndex(({ action }) => action === 'revert')
  if (since === -1) return
  const trail = facts.trail.slice(0, since + 1)
  assert.deepEqual(decideRevert({ ...facts, trail }), decision)
})

test('a row written by recovery is distinguished from a later write of its own program, whatever the precision of the column', () => {
  const at = Date.UTC(2026, 10, 17, 12, 30, 15, 678)
  const after = { status: 'failed', written: { error: 'it is dead', finishedAt: iso(at) } }
  const left = { error: 'it is dead', finishedAt: at }
  const cases: [object, boolean][] = [
    [{}, true],
    [{ error: 'it is' }, true],
    [{ error: 'it is dead   ' }, true],
    [{ finishedAt: Math.floor(at / 1_000) * 1_000 }, true],
    [{ finishedAt: Date.UTC(2026, 10, 18) - 1 }, true],
    [{ error: 'HTTP 500' }, false],
    [{ error: null }, false],
    [{ error: '' }, false],
    [{ finishedAt: at + 60_000 }, false],
    [{ finishedAt: null }, false],
  ]
  for (const [now, expected] of cases)
    assert.equal(isUnchanged({ after }, { ...left, ...now }), expected, JSON.stringify(now))
  assert.equal(isUnchanged({ after: { status: 'failed' } }, { ...left, error: 'else' }), true)
})
