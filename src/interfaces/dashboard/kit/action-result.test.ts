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
  because: 'process 7 has ended; goes on after page 3',
  liveness: 'gone',
  evidence: null,
  from: 'in_progress',
  to: 'planned',
  applied: false,
  blockedBy: null,
  ...change,
})
const recovery = (verdicts: Verdict[], change: Partial<Recovery> = {}): Recovery => ({
  severity: 'stuck',
  active: [],
  activeTotal: 0,
  verdicts,
  total: verdicts.length,
  applied: verdicts.filter(({ applied }) => applied).length,
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
  const account = resultOfRecovery(recovery([verdict(), dead, stalled]))
  assert.equal(account.summary, '1 thing would be done.')
  assert.deepEqual(
    account.changes.map(({ what, page, outcome }) => ({ what, page, outcome })),
    [{ what: 'target 91bc4f2a of shop', page: `/targets/${TARGET}`, outcome: 'planned' }],
  )
  assert.deepEqual(
    account.needsAttention.map(({ action }) => action),
    ['abandon', 'alert'],
  )
})

test('of many only the first are listed, and all are counted', () => {
  const account = resultOfRecovery(recovery([verdict()], { planned: 700, total: 900 }))
  assert.deepEqual(
    [account.changes.length, account.count, account.omitted],
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
  const parked = verdict({ action: 'park', to: 'parked', applied: true })
  const resumed = verdict({ target: '01990000-0000-7000-8000-00000000000a', applied: true })
  const late = verdict({ target: '01990000-0000-7000-8000-00000000000b' })
  const account = resultOfRecovery(recovery([parked, resumed, late], { dryRun: false }))
  assert.equal(account.summary, '2 things were done. 1 left alone: changed meanwhile.')
  assert.deepEqual(
    account.changes.map(({ outcome }) => outcome),
    ['done', 'done', 'late'],
  )
})

test('a preview of a cleaning has the dead on one side and the resumable, which are kept, on the other', () => {
  const run = { id: RUN, source: 'shop', status: 'queued', action: 'abandon' } as AssessedRun
  const answer: Cleaning = {
    severity: 'stuck',
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
  assert.match(shown.summary, /^1 dead run would be marked/)
  assert.equal(shown.changes[0]?.to, 'abandoned')
  assert.equal(shown.needsAttention[0]?.action, 'resumable')
  const cleaned = [verdict({ target: null, action: 'abandon', applied: true })]
  const done = resultOfCleaning({ ...answer, dryRun: false, cleaned })
  assert.equal(done.summary, '1 run is marked as “Timeout – auto-cleaned”.')
  assert.equal(done.changes[0]?.outcome, 'done')
})

test('a row of a table of the user is named, and leads to its run', () => {
  const adopted = { table: 'jobs', key: 'a/2', can: [] }
  const run = { id: RUN, source: 'shop', status: 'running', adopted } as unknown as AssessedRun
  const { changes } = resultOfRecovery(recovery([verdict({ action: 'fail' })], { active: [run] }))
  assert.deepEqual(
    [changes[0]?.what, changes[0]?.page, changes[0]?.to],
    ['row a/2 of jobs, shop', `/runs/${RUN}`, null],
  )
  const answer: Cleaning = {
    severity: 'stuck',
    total: 1,
    active: [],
    dead: [{ ...run, actions: [] }],
    cleaned: [],
    dryRun: true,
    resumable: [],
    plan: '0123456789abcdef',
    command: 'unstuck clean',
    actions: [],
    undo: null,
  }
  const { summary, changes: dead } = resultOfCleaning(answer)
  assert.equal(
    summary,
    '1 dead run would be marked with the word that its table has for it. Nothing is deleted.',
  )
  assert.deepEqual([dead[0]?.what, dead[0]?.from], ['row a/2 of jobs, shop', dead[0]?.to])
  // A target of a whole table is still one.
  const whole = { ...run, adopted: { ...adopted, key: '' } }
  const [target] = resultOfRecovery(recovery([verdict()], { active: [whole] })).changes
  assert.equal(target?.what, 'target 91bc4f2a of shop')
  const held = verdict({ evidence: { presence: 'unknown', label: 'row 3 of jobs (w-3)' } })
  const [row] = resultOfRecovery(recovery([held], { active: [whole] })).changes
  assert.deepEqual([row?.what, row?.page], ['row 3 of jobs (w-3)', `/targets/${TARGET}`])
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
  const account = resultOfDeadLetterRetry({
    targets: 4,
    left: 0,
    runs,
    dryRun: false,
    plan: 'abc',
    undo: null,
  })
  assert.equal(account.summary, '4 targets in 1 run are back in line. 1 run refused.')
  assert.deepEqual(
    account.changes.map(({ outcome, because }) => [outcome, because]),
    [
      ['done', ''],
      ['late', 'another run of shop is live'],
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
  assert.equal(describeDifference(shown, changed), '1 would now be judged differently.')
  const counts = (count: number) => ({ ...shown, deeds: [], count })
  assert.equal(describeDifference(counts(3), counts(5)), 'It was about 3, and is about 5 now.')
})
