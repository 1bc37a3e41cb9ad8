import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../core/model/policy.ts'
import { assessHealth, type HealthFacts } from '../core/decide/health.ts'
import type { AssessedRun } from '../core/recovery/assess.ts'
import { runCandidate } from './alert-causes.ts'
import { makeRowTraits, STANDARD_TRAITS } from '../testing/traits.ts'

type Facts = Omit<HealthFacts, 'run' | 'policy'> & Pick<AssessedRun, 'run' | 'policy'>

const MINUTE = 60_000
const NOW = 100_000 * MINUTE
const LEAVE = { action: 'leave', because: 'its worker lives' } as const
const HEALTHY: Facts = {
  now: NOW,
  run: {
    id: '0199aaaa-0000-7000-8000-00004f2a91bc',
    source: 'shop',
    status: 'running',
    createdAt: NOW - 600 * MINUTE,
    startedAt: NOW - 500 * MINUTE,
    resumedAt: null,
    reopenedAt: null,
    acknowledgedAt: null,
    lastActivityAt: NOW,
    counts: { targets: { in_progress: 1 } },
    traits: STANDARD_TRAITS,
  } as unknown as AssessedRun['run'],
  policy: { ...DEFAULT_POLICY, leaseMs: 5 * MINUTE },
  owner: { liveness: 'present', because: 'it beats' },
  decision: LEAVE,
  ageDecision: LEAVE,
  hasWorker: false,
  isSupervised: false,
}
const DEAD = { ageDecision: { action: 'abandon', because: '26 h old' } } as const
const GONE = { owner: { liveness: 'gone', because: 'process 7 has ended' } } as const
const ROW = { traits: makeRowTraits() }
const STALE = {
  policy: { ...HEALTHY.policy, staleAfterMs: 5 * MINUTE },
  decision: { action: 'fail', because: 'no known owner' },
} as const
const SILENT = {
  owner: { liveness: 'silent', because: 'row 7 is silent' },
  decision: { action: 'fail', because: 'row 7 is silent' },
} as const
const idle = (minutes: number, more: object = {}) => ({
  run: { ...HEALTHY.run, lastActivityAt: NOW - minutes * MINUTE, ...more },
})
const limit = (minutes: number) => ({
  policy: { ...HEALTHY.policy, maxDurationMs: minutes * MINUTE },
  decision: { action: 'alert', because: 'timeout: running for 500 min' } as const,
})

const CASES: readonly [string, Partial<Facts>, string | null, string?][] = [
  ['a run that makes progress', {}, null],
  ['a dead one', DEAD, 'dead: 26 h old', 'unstuck clean 4f2a91bc'],
  [
    'a dead one that autoClean cleans',
    { ...DEAD, policy: { ...HEALTHY.policy, autoClean: true } },
    null,
  ],
  ['one whose worker has just died', { ...GONE, ...idle(1) }, null],
  [
    '… and that is not recovered',
    { ...GONE, ...idle(2) },
    'silent: process 7 has ended',
    'unstuck recover',
  ],
  [
    'one without a worker',
    { owner: null, ...idle(2) },
    'silent: no worker of this source is left',
    'unstuck recover',
  ],
  [
    'a row of an adopted table without a known owner',
    { owner: null, ...idle(20, ROW), decision: { action: 'wait', because: 'young' } },
    null,
  ],
  [
    '… without a change for more than a day, with a checkpoint',
    { owner: null, ...idle(1_500, ROW), decision: { action: 'resumable', because: 'kept' } },
    'silent: no owner is known, and it last changed 25 h ago',
  ],
  [
    '… that is stale, within the time for recovery',
    { owner: null, ...idle(6, ROW), ...STALE },
    null,
  ],
  [
    '… that is stale and not recovered',
    { owner: null, ...idle(8, ROW), ...STALE },
    'silent: no known owner',
    'unstuck recover',
  ],
  ['… whose heartbeats have just ended', { ...SILENT, ...idle(6, ROW) }, null],
  [
    '… whose heartbeats have ended, not recovered',
    { ...SILENT, ...idle(8, ROW) },
    'silent: row 7 is silent',
    'unstuck recover',
  ],
  [
    'one with a worker in an unknown state',
    { owner: { liveness: 'unknown', because: '?' }, ...idle(20) },
    null,
  ],
  [
    'one without progress',
    { owner: { liveness: 'stalled', because: 'no page for 20 min' } },
    'silent: no page for 20 min',
    'unstuck explain 4f2a91bc',
  ],
  ['one within maxDuration', { ...limit(501), decision: LEAVE }, null],
  [
    'one beyond maxDuration',
    limit(499),
    'overrun: running for 500 min',
    'unstuck explain 4f2a91bc',
  ],
  [
    '… and without progress',
    { ...limit(499), owner: { liveness: 'stalled', because: 'no page' } },
    'overrun: running for 500 min',
  ],
  [
    '… but resumed since',
    { ...limit(499), ...idle(0, { resumedAt: NOW - MINUTE }), decision: LEAVE },
    null,
  ],
  ['one that is queued for long', { ...idle(600, { status: 'queued' }), owner: null }, null],
  ['one interrupted a moment ago', { ...idle(1, { status: 'interrupted' }), owner: null }, null],
  [
    'one that is not resumed',
    { ...idle(2, { status: 'interrupted' }), owner: null },
    'silent: not continued for 2 min',
    'unstuck explain 4f2a91bc',
  ],
  [
    '… while a worker of its source is running',
    { ...idle(2, { status: 'interrupted' }), owner: null, hasWorker: true },
    null,
  ],
]

for (const [what, look, expected, command] of CASES) {
  test(`${what}: ${expected ?? 'no alert'}`, () => {
    const facts = { ...HEALTHY, ...look }
    const health = assessHealth(facts)
    const problem = runCandidate({ ...facts, health } as unknown as AssessedRun, new Map(), NOW)
    assert.equal(problem && `${problem.rule}: ${problem.because}`, expected)
    if (command) assert.equal(problem?.command, command)
    if (problem) assert.notEqual(health.severity, 'ok', 'no alert without the status')
  })
}
