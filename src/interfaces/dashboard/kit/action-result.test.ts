import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cleaning, AssessedRun, Recovery, Verdict } from '../shapes.ts'
import {
  resultOfCleaning,
  resultOfDeletion,
  resultOfAction,
  resultOfRecovery,
  resultOfDeadLetterRetry,
  describeDifference,
} from './action-result.ts'

const RUN = '01990000-0000-7000-8000-00004f2a91bc'
const TARGET = '01990000-0000-7000-8000-000091bc4f2a'

const verdict = (change: Partial<Verdict> = {}): Verdict => ({
  run: RUN,
  source: 'shop',
  target: TARGET,
  action: 'resume',
  because: 'process 7 has ended; continues after page 3',
  liveness: 'gone',
  evidence: ['Process 7 on a1 no longer exists.'],
  facts: {},
  from: 'in_progress',
  to: 'planned',
  outcome: 'planned',
  blockedBy: null,
  subject: { kind: 'target', label: 'target 91bc4f2a of shop' },
  ...change,
})
const recovery = (verdicts: Verdict[], change: Partial<Recovery> = {}): Recovery => ({
  severity: 'stuck',
  summary: '1 verdict would be applied.',
  sections: [],
  active: [],
  activeTotal: 0,
  verdicts,
  total: verdicts.length,
  applied: verdicts.filter(({ outcome }) => outcome === 'applied').length,
  unreadable: [],
  dryRun: true,
  plan: '0123456789abcdef',
  planned: verdicts.filter(({ action }) => !['abandon', 'alert'].includes(action)).length,
  command: 'unstuck recover',
  actions: [],
  undo: null,
  ...change,
})

test('a preview of a recovery separates planned changes from what needs attention', () => {
  const dead = verdict({ target: null, action: 'abandon', from: 'queued', to: 'abandoned' })
  const stalled = verdict({ target: null, action: 'alert', from: 'running', to: 'running' })
  const result = resultOfRecovery(recovery([verdict(), dead, stalled]))
  assert.equal(result.summary, '1 verdict would be applied.')
  assert.deepEqual(
    result.changes.map(({ what, page, outcome }) => ({ what, page, outcome })),
    [{ what: 'target 91bc4f2a of shop', page: `/targets/${TARGET}`, outcome: 'planned' }],
  )
  assert.deepEqual(
    result.needsAttention.map(({ action }) => action),
    ['abandon', 'alert'],
  )
})

test('of many only the first are listed, and all are counted', () => {
  const result = resultOfRecovery(recovery([verdict()], { planned: 700, total: 900 }))
  assert.deepEqual(
    [result.changes.length, result.count, result.omitted],
    [1, 700, { changes: 699, needsAttention: 200 }],
  )
})

test('where the policy cleans automatically, dead runs are planned changes too', () => {
  const dead = verdict({ target: null, action: 'abandon', from: 'queued', to: 'abandoned' })
  const { changes, needsAttention } = resultOfRecovery(recovery([verdict(), dead], { planned: 2 }))
  assert.equal(changes.length, 2)
  assert.equal(needsAttention.length, 0)
})

test('a result lists what was applied, and what was skipped because it had changed', () => {
  const parked = verdict({ action: 'park', to: 'parked', outcome: 'applied' })
  const resumed = verdict({ target: '01990000-0000-7000-8000-00000000000a', outcome: 'applied' })
  const target = '01990000-0000-7000-8000-00000000000b'
  const late = verdict({ target, outcome: 'changed-meanwhile' })
  const result = resultOfRecovery(recovery([parked, resumed, late], { dryRun: false }))
  assert.equal(result.count, 2)
  assert.deepEqual(
    result.changes.map(({ outcome }) => outcome),
    ['applied', 'applied', 'changed-meanwhile'],
  )
})

test('a preview of a cleaning has dead runs to mark, and resumable runs that are kept', () => {
  const subject = { kind: 'run', label: 'run 4f2a91bc of shop' } as const
  const run = { id: RUN, status: 'queued', action: 'abandon', subject } as AssessedRun
  const answer: Cleaning = {
    severity: 'stuck',
    summary: '1 dead run would be marked.',
    sections: [],
    total: 2,
    active: [],
    dead: [{ ...run, actions: [] }],
    cleaned: [],
    dryRun: true,
    resumable: [{ ...run, id: TARGET, action: 'resumable' }],
    plan: '0123456789abcdef',
    command: 'unstuck clean',
    actions: [],
    undo: null,
  }
  const shown = resultOfCleaning(answer)
  assert.deepEqual([shown.summary, shown.count], [answer.summary, 1])
  assert.deepEqual([shown.changes[0]?.what, shown.changes[0]?.to], [subject.label, 'abandoned'])
  assert.equal(shown.needsAttention[0]?.action, 'resumable')
  const cleaned = [verdict({ target: null, action: 'abandon', outcome: 'applied' })]
  const done = resultOfCleaning({ ...answer, dryRun: false, cleaned })
  assert.equal(done.count, 1)
  assert.equal(done.changes[0]?.outcome, 'applied')
})

test('a row of a user’s own table leads to its run, and has no status of ours', () => {
  const subject = { kind: 'row', label: 'run 4f2a91bc of shop (row a/2 of jobs)' } as const
  const { changes } = resultOfRecovery(recovery([verdict({ action: 'fail', subject })]))
  assert.deepEqual(
    [changes[0]?.what, changes[0]?.page, changes[0]?.to],
    [subject.label, `/runs/${RUN}`, null],
  )
})

test('a deletion says what goes with it and offers no undo', () => {
  const answer = {
    run: RUN,
    source: 'shop',
    targets: 3,
    items: 1,
    folders: [],
    failures: ['A folder stayed.'],
    command: 'unstuck clean 4f2a91bc --delete',
  }
  const { summary, undo } = resultOfDeletion({ ...answer, dryRun: true })
  assert.equal(summary, 'Run 4f2a91bc of shop with 3 targets and 1 item would be deleted for good.')
  assert.equal(undo, null)
  const { summary: after } = resultOfDeletion({ ...answer, dryRun: false })
  assert.match(after, /is deleted\. A folder stayed\.$/)
})

test('a retry of dead letters tells run by run, refusals too', () => {
  const runs = [
    { run: RUN, targets: 4, refused: null },
    { run: TARGET, targets: 2, refused: 'another run of shop is live' },
  ]
  const result = resultOfDeadLetterRetry({
    targets: 4,
    left: 0,
    runs,
    dryRun: false,
    plan: 'abc',
    undo: null,
  })
  assert.equal(result.summary, '4 targets in 1 run are back in line. 1 run refused.')
  assert.deepEqual(
    result.changes.map(({ outcome, because }) => [outcome, because]),
    [
      ['applied', ''],
      ['changed-meanwhile', 'another run of shop is live'],
    ],
  )
})

test('a sentence is enough for an action on one run; a preview need not say that it is one', () => {
  const undo = { label: 'Undo', calls: [], command: 'unstuck revert 4f2a91bc' }
  const said = '2 would be reset. Nothing was changed.'
  const sections = [{ heading: null, sentences: [said] }]
  const done = { run: null, targets: 2, count: 2, sections, dryRun: true, undo, command: 'x' }
  const shown = resultOfAction(done)
  assert.deepEqual([shown.count, shown.summary], [2, '2 would be reset.'])
  assert.equal(resultOfAction({ ...done, dryRun: false }).undo, undo)
})

test('changes since the preview are reported as counts', () => {
  const other = verdict({ target: '01990000-0000-7000-8000-00000000000a' })
  const shown = resultOfRecovery(recovery([verdict(), other]))
  const fewer = resultOfRecovery(recovery([verdict()]))
  const changed = resultOfRecovery(recovery([verdict({ action: 'park', to: 'parked' }), other]))
  assert.equal(describeDifference(shown, fewer), '1 no longer needs it.')
  assert.equal(describeDifference(fewer, shown), '1 came in.')
  assert.equal(describeDifference(shown, changed), '1 would now get another verdict.')
  const counts = (count: number) => ({ ...shown, deeds: [], count })
  assert.equal(describeDifference(counts(3), counts(5)), 'It was about 3, and is about 5 now.')
})
