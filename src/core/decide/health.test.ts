import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../model/policy.ts'
import { makeRowTraits, STANDARD_TRAITS } from '../../testing/traits.ts'
import { assessHealth, type HealthFacts, type HealthState } from './health.ts'

const SECOND = 1_000
const MINUTE = 60 * SECOND
const HOUR = 60 * MINUTE
const NOW = 1_800_000_000_000

type Case = {
  readonly run?: object
  /** Since anything of it last changed. */
  readonly idleMs?: number
  readonly held?: number
} & Partial<Omit<HealthFacts, 'run' | 'now'>>

function healthOf({ run, idleMs = 0, held = 1, ...rest }: Case) {
  const leave = { action: 'leave', because: 'its worker lives' } as const
  return assessHealth({
    policy: DEFAULT_POLICY,
    decision: leave,
    ageDecision: rest.decision ?? leave,
    owner: null,
    hasWorker: false,
    isSupervised: false,
    now: NOW,
    ...rest,
    run: {
      id: '0199aaaa-0000-7000-8000-00004f2a91bc',
      status: 'running',
      traits: STANDARD_TRAITS,
      reopenedAt: null,
      acknowledgedAt: null,
      resumedAt: null,
      paused: null,
      lastActivityAt: NOW - idleMs,
      counts: { targets: { in_progress: held } },
      ...run,
    } as unknown as HealthFacts['run'],
  })
}

const INTERRUPTED = { run: { status: 'interrupted' }, held: 0 } as const
const OWN = { traits: makeRowTraits() }
const PAUSED = { paused: { at: NOW - 5 * MINUTE, because: 'the site asked for it' } }
const KEPT = { action: 'resumable', because: 'kept' } as const
const STALE = { ...DEFAULT_POLICY, staleAfterMs: 30 * MINUTE }

const CASES: readonly [string, Case, HealthState, RegExp][] = [
  ['interrupted just now', INTERRUPTED, 'waiting', /continues when a worker starts/],
  ['interrupted a minute ago', { ...INTERRUPTED, idleMs: MINUTE }, 'waiting', /when a worker/],
  [
    'interrupted 72 s ago',
    { ...INTERRUPTED, idleMs: 72 * SECOND },
    'interrupted',
    /^not continued for 72 s$/,
  ],
  [
    'interrupted beyond a short maxSilence',
    { ...INTERRUPTED, idleMs: 12_000, policy: { ...DEFAULT_POLICY, maxSilenceMs: 10_000 } },
    'interrupted',
    /12 s/,
  ],
  [
    'interrupted an hour ago, beside a worker of its source',
    { ...INTERRUPTED, idleMs: HOUR, hasWorker: true },
    'waiting',
    /a worker of its source is running/,
  ],
  [
    'interrupted an hour ago, reopened a second ago',
    { ...INTERRUPTED, idleMs: HOUR, run: { status: 'interrupted', reopenedAt: NOW - SECOND } },
    'waiting',
    /when a worker/,
  ],
  [
    'an adopted row interrupted 5 min ago: its program may be there',
    { ...INTERRUPTED, idleMs: 5 * MINUTE, run: { status: 'interrupted', ...OWN } },
    'waiting',
    /your own program takes it up/,
  ],
  [
    'an adopted row interrupted beyond maxSilence',
    { ...INTERRUPTED, idleMs: 16 * MINUTE, run: { status: 'interrupted', ...OWN } },
    'interrupted',
    /16 min/,
  ],
  [
    'its source is paused, and it was interrupted an hour ago',
    { ...INTERRUPTED, idleMs: HOUR, run: { status: 'interrupted', ...PAUSED } },
    'paused',
    /^its source was paused 5 min ago: the site asked for it$/,
  ],
  [
    'its source is paused, and a worker died with two of its targets',
    { held: 2, owner: { liveness: 'gone', because: 'dead' }, run: PAUSED },
    'paused',
    /; 2 in progress$/,
  ],
  [
    'its source is paused, and its worker waits for longer than maxSilence',
    { held: 0, owner: { liveness: 'stalled', because: 'silent' }, run: PAUSED },
    'paused',
    /5 min/,
  ],
  [
    'its source is paused, and a worker hangs on a page in hand',
    { held: 1, owner: { liveness: 'stalled', because: 'no page for 16 min' }, run: PAUSED },
    'stalled',
    /no page for 16 min/,
  ],
  [
    'its worker is alive without progress',
    {
      held: 1,
      owner: { liveness: 'stalled', because: 'no page for 16 min' },
      decision: { action: 'alert', because: 'timeout: no page for 16 min' },
    },
    'stalled',
    /^no page for 16 min$/,
  ],
  [
    'its source was unpaused a second ago',
    { ...INTERRUPTED, idleMs: HOUR, run: { status: 'interrupted', resumedAt: NOW - SECOND } },
    'waiting',
    /when a worker/,
  ],
  [
    'all targets have ended, the run is not settled yet',
    { held: 0, idleMs: SECOND, decision: { action: 'leave', because: 'about to be settled' } },
    'waiting',
    /about to be settled/,
  ],
  [
    'its worker released it a second ago, the run is not settled yet',
    { held: 0, idleMs: SECOND, decision: KEPT },
    'waiting',
    /work left/,
  ],
  [
    '… and was never settled',
    { held: 0, idleMs: 16 * SECOND, decision: KEPT },
    'orphaned',
    /no worker/,
  ],
  ['a claim whose worker is unknown', { idleMs: SECOND }, 'orphaned', /no worker/],
  [
    'an adopted row kept by onStale',
    { run: OWN, idleMs: 40 * MINUTE, policy: STALE, decision: KEPT },
    'unknown',
    /no owner is known, and it last changed 40 min ago/,
  ],
  [
    'an adopted row before staleAfter',
    { run: OWN, idleMs: 10 * MINUTE, policy: STALE, decision: KEPT },
    'healthy',
    /10 min/,
  ],
]

for (const [what, one, state, because] of CASES) {
  test(`${what}: ${state}`, () => {
    const health = healthOf(one)
    assert.equal(health.state, state)
    assert.match(health.because, because)
    const severity = {
      orphaned: 'stuck',
      stalled: 'stuck',
      interrupted: 'attention',
      unknown: 'attention',
    } as const
    assert.equal(health.severity, severity[state as keyof typeof severity] ?? 'ok')
  })
}
