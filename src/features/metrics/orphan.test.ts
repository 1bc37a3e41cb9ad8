import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EVIDENCE } from '../../testing/fixtures.ts'
import { orphanOf } from './orphan.ts'

const ALIVE = { ...EVIDENCE, presence: 'held', process: 'alive', heartbeatAgeMs: 300 } as const
const SILENT = { ...ALIVE, heartbeatAgeMs: 20_000 }
const RUN_EVIDENCE = {
  ageMs: 9e7,
  idleMs: 8e7,
  pages: 0,
  extracted: 0,
  skipped: 0,
  hasProgress: false,
}
const CLAIMED = { status: 'in_progress', epoch: 4, worker: 'w', page: 3 }

function entry(action: string, evidence: unknown, target: string | null = 't', status = 'planned') {
  const before = target ? CLAIMED : { status: 'running' }
  return { at: 1_000_000, action, run: 'r', target, evidence, before, after: { status } }
}

const WAITING = { target: 't', epoch: 4 }
const OF_RUN = { run: 'r', worker: null, waiting: null }
const OF_TARGET = { run: 'r', worker: 'w', waiting: WAITING }

for (const [what, given, expected] of [
  [
    'a worker that is gone',
    entry('resume', EVIDENCE),
    { ...OF_TARGET, reason: 'gone', silentMs: 1_234 },
  ],
  ['a silent one', entry('replan', SILENT), { ...OF_TARGET, reason: 'silent', silentMs: 20_000 }],
  ['a living one', entry('resume', ALIVE), { ...OF_TARGET, reason: 'stalled', silentMs: null }],
  [
    'a parked target waits for no worker',
    entry('park', EVIDENCE, 't', 'parked'),
    { ...OF_TARGET, waiting: null, reason: 'gone', silentMs: 1_234 },
  ],
  [
    'a run that was cleaned',
    entry('abandon', { ...RUN_EVIDENCE, owner: null }, null),
    { ...OF_RUN, reason: 'abandoned', silentMs: 8e7 },
  ],
  [
    'a run without an owner for too long',
    entry('fail', { ...RUN_EVIDENCE, owner: null }, null),
    { ...OF_RUN, reason: 'stale', silentMs: 8e7 },
  ],
  [
    'a run that overran',
    entry('resume', { ...RUN_EVIDENCE, owner: ALIVE }, null),
    { ...OF_RUN, reason: 'overrun', silentMs: null },
  ],
  [
    'a run whose worker is lost',
    entry('resume', { ...RUN_EVIDENCE, owner: EVIDENCE }, null),
    { ...OF_RUN, reason: 'gone', silentMs: 1_234 },
  ],
  ["a person's resume", entry('resume', null, null), null],
  ["a person's cancel", entry('cancel', null, null), null],
  ["a person's retry", entry('retry', null, null), null],
  ['a target that a person set aside', entry('park', null, 't', 'parked'), null],
  ['a revert', entry('revert', {}, null), null],
] as const) {
  test(`read from the trail: ${what}`, () => assert.deepEqual(orphanOf(given), expected))
}
