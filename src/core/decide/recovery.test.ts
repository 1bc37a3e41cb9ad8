import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DEFAULT_POLICY, type Policy } from '../model/policy.ts'
import { LIVE_STATUSES, RUN_STATUSES } from '../model/run.ts'
import { TARGET_STATUSES } from '../model/target.ts'
import { ACTIONS, type Action } from '../model/verdict.ts'
import type { Liveness } from '../model/worker.ts'
import { decide, type Snapshot } from './recovery.ts'
import { makeRowTraits, STANDARD_TRAITS } from '../../testing/traits.ts'

const NOW = 1_800_000_000_000
const MINUTE = 60_000
const HOUR = 60 * MINUTE

type Case = {
  run?: Partial<Snapshot['run']>
  target?: Partial<NonNullable<Snapshot['target']>> | null
  owner?: Liveness | null
  mayStillRun?: boolean
  policy?: Partial<Policy>
}

function snapshot({ run = {}, target = {}, owner = null, mayStillRun = false }: Case): Snapshot {
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
    target: target && {
      status: 'in_progress',
      page: 0,
      hasProgress: false,
      crashesAlone: 0,
      errors: 0,
      lastActivityAt: NOW - MINUTE,
      ...target,
    },
    owner: owner && { liveness: owner, because: `the owner is ${owner}` },
    mayStillRun,
  }
}

const page7 = { page: 7, hasProgress: true }
const single = { kind: 'single' } as const
const idle = { lastActivityAt: NOW - HOUR }

/** The table of product.md, "How a verdict is made", row by row. */
const cases: [string, Case, Action, RegExp][] = [
  ['owner present, progressing', { owner: 'present' }, 'leave', /present/],
  [
    'a silent owner that holds the source of its command, nothing done',
    { owner: 'silent', run: single, mayStillRun: true },
    'resume',
    /its command may still run/,
  ],
  [
    'the same after all retries',
    { owner: 'silent', run: { ...single, retries: 9 }, mayStillRun: true },
    'resume',
    /its command may still run/,
  ],
  [
    'the same, but it took down its workers too often',
    { owner: 'silent', run: single, target: { crashesAlone: 3 }, mayStillRun: true },
    'park',
    /took down 3 workers/,
  ],
  ['owner unknown', { owner: 'unknown', target: page7 }, 'leave', /unknown/],
  [
    'owner present, no progress beyond maxSilence',
    { owner: 'present', target: { lastActivityAt: NOW - 16 * MINUTE } },
    'alert',
    /^(?!timeout).*no progress for 16 min/,
  ],
  [
    'the same of a run that is judged as a whole',
    { owner: 'present', target: null, run: { lastActivityAt: NOW - 16 * MINUTE } },
    'alert',
    /no progress/,
  ],
  [
    'owner present, no progress, by policy resume',
    {
      owner: 'present',
      target: { lastActivityAt: NOW - HOUR },
      policy: { onStalled: 'resume' },
    },
    'resume',
    /timeout/,
  ],
  [
    'owner present, no progress, by policy fail',
    { owner: 'stalled', target: { lastActivityAt: NOW - HOUR }, policy: { onStalled: 'fail' } },
    'fail',
    /timeout/,
  ],
  [
    'a run beyond maxDuration, its owner present',
    { owner: 'present', target: null, policy: { maxDurationMs: 30 * MINUTE } },
    'alert',
    /timeout: running for 60 min, longer than maxDuration 30 min/,
  ],
  [
    'a run beyond maxDuration, by policy fail',
    { owner: 'present', target: null, policy: { maxDurationMs: 30 * MINUTE, onStalled: 'fail' } },
    'fail',
    /timeout/,
  ],
  [
    'a run beyond maxDuration, by policy resume',
    {
      owner: 'present',
      run: single,
      policy: { maxDurationMs: 30 * MINUTE, onStalled: 'resume' },
    },
    'resume',
    /timeout/,
  ],
  [
    'beyond maxDuration since its start, but taken up again since',
    {
      owner: 'present',
      target: null,
      run: { resumedAt: NOW - 10 * MINUTE },
      policy: { maxDurationMs: 30 * MINUTE, onStalled: 'fail' },
    },
    'leave',
    /./,
  ],
  [
    'a queued run is as old as it may be: its time has not begun',
    {
      owner: 'present',
      target: null,
      run: { status: 'queued', startedAt: null },
      policy: { maxDurationMs: 30 * MINUTE, onStalled: 'fail' },
    },
    'leave',
    /./,
  ],
  [
    'a target of a crawl that overran: the crawl is judged as a whole',
    { owner: 'present', policy: { maxDurationMs: 30 * MINUTE, onStalled: 'fail' } },
    'leave',
    /./,
  ],
  [
    'stalled by policy resume, but as often as its errors may be: fail',
    {
      owner: 'present',
      target: { lastActivityAt: NOW - HOUR, errors: 3 },
      policy: { onStalled: 'resume' },
    },
    'fail',
    /timeout.*again after 3/,
  ],
  [
    'a crawl that stands still as a whole: its targets are judged by themselves',
    {
      owner: 'present',
      target: null,
      run: { lastActivityAt: NOW - HOUR },
      policy: { onStalled: 'fail' },
    },
    'alert',
    /no progress/,
  ],
  [
    'owner gone, a checkpoint',
    { owner: 'gone', target: page7 },
    'resume',
    /continues after page 7/,
  ],
  ['owner silent, a checkpoint', { owner: 'silent', target: page7 }, 'resume', /silent/],
  [
    'owner gone, progress of a run that is judged as a whole',
    { owner: 'gone', target: null, run: { hasProgress: true, kind: 'single' } },
    'resume',
    /gone/,
  ],
  [
    'owner gone, a checkpoint, onCrash fail',
    { owner: 'gone', target: page7, policy: { onCrash: 'fail' } },
    'fail',
    /^process ended unexpectedly/,
  ],
  [
    'owner gone, a checkpoint, onCrash hold',
    { owner: 'gone', target: page7, policy: { onCrash: 'hold' } },
    'hold',
    /^process ended unexpectedly/,
  ],
  [
    'owner gone, nothing done, one target',
    { owner: 'gone', run: single },
    'retry',
    /nothing was done/,
  ],
  [
    'owner silent, nothing done, one target',
    { owner: 'silent', run: single },
    'retry',
    /nothing was done/,
  ],
  [
    'the same, retried once already',
    { owner: 'gone', run: { ...single, retries: 1 } },
    'fail',
    /nothing done, 2 times/,
  ],
  [
    'the same, and it may not be tried again',
    { owner: 'gone', run: single, policy: { runRetries: 0 } },
    'fail',
    /^process ended unexpectedly with nothing done: /,
  ],
  [
    'a row of a table of one’s own is silent, which proves nothing',
    { owner: 'silent', run: { ...single, traits: makeRowTraits() }, policy: { runRetries: 0 } },
    'fail',
    /^no sign of life with nothing done: /,
  ],
  [
    'the same with progress, and nothing to put it back in the queue',
    {
      owner: 'silent',
      run: { ...single, traits: makeRowTraits(), hasProgress: true },
      policy: { onCrash: 'fail' },
    },
    'fail',
    /^no sign of life: /,
  ],
  [
    'a crawl whose policy fails what its lost worker held, and others wait',
    { owner: 'gone', target: null, run: { hasProgress: true }, policy: { onCrash: 'fail' } },
    'resume',
    /gone; onCrash: 'fail' fails its targets .*, and it continues with the others$/,
  ],
  [
    'the same, and no others wait',
    {
      owner: 'gone',
      target: null,
      run: { hasProgress: true, hasWaiting: false },
      policy: { onCrash: 'hold' },
    },
    'hold',
    /gone; onCrash: 'hold' holds its targets in progress that have a saved page$/,
  ],
  [
    'the same, and recovery has released what its lost worker held',
    {
      owner: 'silent',
      target: null,
      run: { hasProgress: true, isClaimed: false },
      policy: { onCrash: 'fail' },
    },
    'resume',
    /; continues from its last saved pages$/,
  ],
  [
    'a row has a checkpoint and no pages',
    { owner: 'gone', run: { ...single, traits: makeRowTraits() }, target: { hasProgress: true } },
    'resume',
    /; continues from its last checkpoint$/,
  ],
  [
    'a row has brought something, and has no checkpoint',
    { owner: 'gone', run: { ...single, traits: makeRowTraits(), hasProgress: true } },
    'resume',
    /; continues with what it has$/,
  ],
  [
    'the same, with retries left by policy',
    { owner: 'gone', run: { ...single, retries: 1 }, policy: { runRetries: 2 } },
    'retry',
    /./,
  ],
  [
    'the same, without retries',
    { owner: 'gone', run: single, policy: { runRetries: 0 } },
    'fail',
    /./,
  ],
  ['owner gone, nothing done, of a crawl', { owner: 'gone' }, 'replan', /no page was done/],
  ['owner silent, nothing done, of a crawl', { owner: 'silent' }, 'replan', /no page was done/],
  [
    'nothing done, of a crawl, whatever onCrash says',
    { owner: 'gone', policy: { onCrash: 'fail' } },
    'replan',
    /./,
  ],
  [
    'it took three workers down alone',
    { owner: 'gone', target: { crashesAlone: 3 } },
    'park',
    /took down 3/,
  ],
  ['it took two down', { owner: 'gone', target: { crashesAlone: 2 } }, 'replan', /./],
  [
    'it took three down, but pages were done before',
    { owner: 'gone', target: { ...page7, crashesAlone: 3 } },
    'park',
    /./,
  ],
  [
    'it has three crashes, but its worker is present',
    { owner: 'present', target: { crashesAlone: 3 } },
    'leave',
    /./,
  ],
  [
    'no owner, older than staleAfter, onStale fail',
    { target: null, run: idle, policy: { staleAfterMs: 30 * MINUTE, onStale: 'fail' } },
    'fail',
    /longer than staleAfter 30 min/,
  ],
  [
    'the same, whatever its progress',
    {
      target: null,
      run: { ...idle, hasProgress: true },
      policy: { staleAfterMs: 30 * MINUTE, onStale: 'fail' },
    },
    'fail',
    /staleAfter/,
  ],
  [
    'no owner, older than staleAfter, onStale keep',
    { target: null, run: idle, policy: { staleAfterMs: 30 * MINUTE, onStale: 'keep' } },
    'wait',
    /./,
  ],
  [
    'no owner, old, but something moved a minute ago: not stale',
    { target: null, policy: { staleAfterMs: 30 * MINUTE, onStale: 'fail' } },
    'wait',
    /./,
  ],
  [
    'interrupted for an hour with pages done: a preset does not fail what can go on',
    {
      target: null,
      run: { ...idle, status: 'interrupted', hasProgress: true },
      policy: { staleAfterMs: 30 * MINUTE, onStale: 'fail' },
    },
    'resumable',
    /kept/,
  ],
  ['no owner, younger than abandonAfter', { target: null }, 'wait', /dead after 24 h/],
  [
    'no owner, older, nothing to show',
    { target: null, run: { createdAt: NOW - 25 * HOUR } },
    'abandon',
    /25 h old, no progress/,
  ],
  [
    'interrupted, not claimed again, older, without progress',
    { target: null, run: { status: 'interrupted', createdAt: NOW - 25 * HOUR } },
    'abandon',
    /./,
  ],
  [
    'a queued run is a backlog, however old: it is never dead',
    { target: null, run: { status: 'queued', createdAt: NOW - 1_000 * HOUR } },
    'wait',
    /^no worker has it; it has been queued for 42 days$/,
  ],
  [
    'a queued row of a table of one’s own',
    {
      target: null,
      run: { status: 'queued', createdAt: NOW - 1_000 * HOUR, traits: makeRowTraits() },
      policy: { autoClean: true },
    },
    'wait',
    /queued/,
  ],
  [
    'no owner, older, but progress',
    { target: null, run: { createdAt: NOW - 100 * HOUR, hasProgress: true } },
    'resumable',
    /kept/,
  ],
  [
    'a person took back an earlier verdict',
    { target: null, run: { createdAt: NOW - 100 * HOUR, isReopened: true } },
    'leave',
    /an operator reopened it/,
  ],
  [
    'the run has ended',
    { owner: 'gone', run: { status: 'cancelled' } },
    'leave',
    /run has ended: cancelled/,
  ],
  [
    'its last target has just ended, however old it is and which workers have ended',
    { target: null, run: { createdAt: NOW - 48 * HOUR, isComplete: true } },
    'leave',
    /about to be settled/,
  ],
  [
    'its source is paused, however old and silent it is',
    { target: null, run: { createdAt: NOW - 100 * HOUR, isPaused: true } },
    'wait',
    /its source is paused/,
  ],
  [
    'its source is paused, and a worker waits for longer than maxDuration',
    {
      target: null,
      owner: 'present',
      run: { lastActivityAt: NOW - 9 * HOUR, isPaused: true, hasProgress: true },
      policy: { maxDurationMs: HOUR, onStalled: 'fail' },
    },
    'wait',
    /its source is paused/,
  ],
  [
    'silence before it was resumed does not count',
    {
      target: null,
      owner: 'present',
      run: { lastActivityAt: NOW - 9 * HOUR, resumedAt: NOW - MINUTE },
    },
    'leave',
    /./,
  ],
  ['the target is done', { owner: 'gone', target: { status: 'done' } }, 'leave', /target is done/],
]

for (const [title, given, action, because] of cases) {
  test(`${title}: ${action}`, () => {
    const decision = decide(snapshot(given), { ...DEFAULT_POLICY, ...given.policy }, NOW)

    assert.equal(decision.action, action)
    assert.match(decision.because, because)
  })
}

const LIVENESS_VALUES: Liveness[] = ['present', 'gone', 'silent', 'stalled', 'unknown']
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
    fc.record({ liveness: fc.constantFrom(...LIVENESS_VALUES), because: fc.string() }),
  ),
})
const anyPolicy: fc.Arbitrary<Policy> = fc
  .record({
    maxSilenceMs: fc.nat(HOUR),
    maxDurationMs: fc.option(fc.nat(100 * HOUR)),
    abandonAfterMs: fc.nat(100 * HOUR),
    staleAfterMs: fc.option(fc.nat(HOUR)),
    onStale: fc.constantFrom('keep' as const, 'fail' as const),
    onCrash: fc.constantFrom('resume' as const, 'fail' as const, 'hold' as const),
    onStalled: fc.constantFrom('alert' as const, 'resume' as const, 'fail' as const),
    runRetries: fc.nat(3),
    maxCrashes: fc.integer({ min: 1, max: 5 }),
  })
  .map((some) => ({ ...DEFAULT_POLICY, ...some }))

function always(what: string, holds: (snapshot: Snapshot, policy: Policy) => void): void {
  test(`always: ${what}`, () => {
    fc.assert(fc.property(anySnapshot, anyPolicy, holds), { numRuns: 2_000 })
  })
}
const isOpen = ({ run, target }: Snapshot): boolean =>
  (LIVE_STATUSES as readonly string[]).includes(run.status) &&
  (target === null || target.status === 'in_progress')

always(
  'every input has a verdict with a reason, and the same input the same verdict',
  (it, policy) => {
    const before = JSON.stringify(it)
    const decision = decide(it, policy, NOW)
    assert.ok(ACTIONS.includes(decision.action))
    assert.equal(typeof decision.because, 'string')
    assert.deepEqual(decide(it, policy, NOW), decision)
    assert.equal(JSON.stringify(it), before)
  },
)

always(
  'P9 nothing is taken from a present or unknown owner, unless the policy says so',
  (it, policy) => {
    if (it.owner?.liveness !== 'present' && it.owner?.liveness !== 'unknown') return
    const { action } = decide(it, policy, NOW)
    if (it.owner.liveness === 'unknown') assert.equal(action, 'leave')
    else if (policy.onStalled === 'alert') assert.ok(['leave', 'alert'].includes(action), action)
    else assert.ok(['leave', 'alert', 'fail', policy.onStalled].includes(action), action)
  },
)

always('claims of a dead worker are never left in a crawl', (it, policy) => {
  if (it.owner?.liveness !== 'gone' && it.owner?.liveness !== 'silent') return
  if (!isOpen(it)) return
  const { action } = decide(it, policy, NOW)
  assert.ok(['resume', 'replan', 'retry', 'park', 'hold', 'fail'].includes(action), action)
  if (it.run.kind === 'crawl') assert.notEqual(action, 'retry')
})

always('P11 a target is parked at maxCrashes, and then only', (it, policy) => {
  const { action } = decide(it, policy, NOW)
  const dead = it.owner?.liveness === 'gone' || it.owner?.liveness === 'silent'
  const due =
    isOpen(it) && dead && it.target !== null && it.target.crashesAlone >= policy.maxCrashes
  assert.equal(action === 'park', due)
})

always('P15 a run that has progress, is young or has an owner is never abandoned', (it, policy) => {
  if (decide(it, policy, NOW).action !== 'abandon') return
  assert.equal(it.run.hasProgress, false)
  assert.equal(it.owner, null)
  assert.equal(it.run.isReopened, false)
  assert.ok(NOW - it.run.createdAt > policy.abandonAfterMs)
})

always('an ended run is left alone', (it, policy) => {
  if (!isOpen(it)) assert.equal(decide(it, policy, NOW).action, 'leave')
})

always('a run is retried only without progress, and at most runRetries times', (it, policy) => {
  if (decide(it, policy, NOW).action !== 'retry') return
  assert.equal(it.run.kind, 'single')
  assert.ok(it.run.retries < policy.runRetries)
  assert.equal(it.target ? it.target.hasProgress : it.run.hasProgress, false)
})
