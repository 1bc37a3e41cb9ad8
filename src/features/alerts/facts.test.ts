import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../../core/model/policy.ts'
import { assessHealth, type HealthFacts } from '../../core/decide/health.ts'
import type { AssessedRun } from '../../core/recovery/assess.ts'
import { runProblem } from './facts.ts'

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
    lastActivityAt: NOW,
  } as AssessedRun['run'],
  policy: { ...DEFAULT_POLICY, leaseMs: 5 * MINUTE },
  owner: { liveness: 'present', because: 'it beats' },
  decision: LEAVE,
  ageDecision: LEAVE,
}
const DEAD = { ageDecision: { action: 'abandon', because: '26 h old' } } as const
const GONE = { owner: { liveness: 'gone', because: 'process 7 has ended' } } as const
const ROW = { adopted: { table: 'jobs', key: '7' } }
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
  ['a run that goes on', {}, null],
  ['a dead one', DEAD, 'dead: 26 h old', 'unstuck clean 4f2a91bc'],
  [
    'a dead one that is cleaned by itself',
    { ...DEAD, policy: { ...HEALTHY.policy, autoClean: true } },
    null,
  ],
  ['one whose worker has just died', { ...GONE, ...idle(1) }, null],
  [
    '… and that nobody recovers',
    { ...GONE, ...idle(2) },
    'silent: process 7 has ended; not recovered yet',
    'unstuck recover',
  ],
  [
    'one that nobody works on',
    { owner: null, ...idle(2) },
    'silent: no worker of this source is left; not recovered yet',
    'unstuck recover',
  ],
  [
    'a row of a table of the user, of whose owner nothing is known',
    { owner: null, ...idle(20, ROW), decision: { action: 'wait', because: 'young' } },
    null,
  ],
  [
    '… and that stands still for more than a day with something to go on from',
    { owner: null, ...idle(1_500, ROW), decision: { action: 'resumable', because: 'kept' } },
    'silent: no owner is known, and it last changed 25 h ago',
  ],
  [
    '… and that is stale, but may be recovered any moment',
    { owner: null, ...idle(6, ROW), ...STALE },
    null,
  ],
  [
    '… and that is stale, and nobody recovers it',
    { owner: null, ...idle(8, ROW), ...STALE },
    'silent: no known owner; not recovered yet',
    'unstuck recover',
  ],
  ['… and whose beats have just ended', { ...SILENT, ...idle(6, ROW) }, null],
  [
    '… and whose beats have ended, and nobody recovers it',
    { ...SILENT, ...idle(8, ROW) },
    'silent: row 7 is silent; not recovered yet',
    'unstuck recover',
  ],
  [
    'one of whose worker nothing is known',
    { owner: { liveness: 'unknown', because: '?' }, ...idle(20) },
    null,
  ],
  [
    'one that stands still',
    { owner: { liveness: 'stalled', because: 'no page for 20 min' } },
    'silent: no page for 20 min',
    'unstuck explain 4f2a91bc',
  ],
  ['one within its time', { ...limit(501), decision: LEAVE }, null],
  [
    'one beyond its time',
    limit(499),
    'overrun: timeout: running for 500 min',
    'unstuck explain 4f2a91bc',
  ],
  [
    '… and standing still as well',
    { ...limit(499), owner: { liveness: 'stalled', because: 'no page' } },
    'overrun: timeout: running for 500 min',
  ],
  [
    '… but taken up again since',
    { ...limit(499), ...idle(0, { resumedAt: NOW - MINUTE }), decision: LEAVE },
    null,
  ],
  ['one that waits in line for long', { ...idle(600, { status: 'queued' }), owner: null }, null],
  ['one interrupted a moment ago', { ...idle(15, { status: 'interrupted' }), owner: null }, null],
  [
    'one that nobody takes up again',
    { ...idle(16, { status: 'interrupted' }), owner: null },
    'silent: interrupted 16 min ago, and not continued since',
    'unstuck explain 4f2a91bc',
  ],
]

for (const [what, look, expected, command] of CASES) {
  test(`${what}: ${expected ?? 'no alert'}`, () => {
    const facts = { ...HEALTHY, ...look }
    const health = assessHealth(facts)
    const problem = runProblem({ ...facts, health } as unknown as AssessedRun, NOW)
    assert.equal(problem && `${problem.what}: ${problem.because}`, expected)
    if (command) assert.equal(problem?.command, command)
    if (problem) assert.notEqual(health.severity, 'ok', 'no alert without the status')
  })
}
