import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Cleaning, JudgedRun, Recovery, Verdict } from '../shapes.ts'
import {
  accountOfCleaning,
  accountOfDeletion,
  accountOfDone,
  accountOfRecovery,
  accountOfRetried,
  differenceOf,
} from './action-result.ts'

const RUN = '01990000-0000-7000-8000-00004f2a91bc'
const TARGET = '01990000-0000-7000-8000-000091bc4f2a'

const verdict = (change: Partial<Verdict> = {}): Verdict => ({
  run: RUN,
  source: 'shop',
  target: TARGET,
  action: 'resume',
  because: 'process 7 has ended; goes on after page 3',
  sign: 'gone',
  evidence: null,
  from: 'in_progress',
  to: 'planned',
  applied: false,
  cannot: null,
  ...change,
})
const recovery = (verdicts: Verdict[], change: Partial<Recovery> = {}): Recovery => ({
  active: [],
  activeTotal: 0,
  verdicts,
  total: verdicts.length,
  applied: verdicts.filter(({ applied }) => applied).length,
  away: [],
  dryRun: true,
  plan: '0123456789abcdef',
  deeds: verdicts.filter(({ action }) => !['abandon', 'alert'].includes(action)).length,
  command: 'unstuck recover',
  undo: null,
  ...change,
})

test('a preview of a recovery tells deeds from what is left to a person', () => {
  const dead = verdict({ target: null, action: 'abandon', from: 'queued', to: 'abandoned' })
  const stalled = verdict({ target: null, action: 'alert', from: 'running', to: 'running' })
  const account = accountOfRecovery(recovery([verdict(), dead, stalled]))
  assert.equal(account.said, '1 thing would be done.')
  assert.deepEqual(
    account.deeds.map(({ what, page, outcome }) => ({ what, page, outcome })),
    [{ what: 'target 91bc4f2a of shop', page: `/targets/${TARGET}`, outcome: 'planned' }],
  )
  assert.deepEqual(
    account.left.map(({ action }) => action),
    ['abandon', 'alert'],
  )
})

test('of many only the first are listed, and all are counted', () => {
  const account = accountOfRecovery(recovery([verdict()], { deeds: 700, total: 900 }))
  assert.deepEqual(
    [account.deeds.length, account.count, account.cut],
    [1, 700, { deeds: 699, left: 200 }],
  )
})

test('where the policy cleans by itself, dead runs are deeds too', () => {
  const dead = verdict({ target: null, action: 'abandon', from: 'queued', to: 'abandoned' })
  const { deeds, left } = accountOfRecovery(recovery([verdict(), dead], { deeds: 2 }))
  assert.equal(deeds.length, 2)
  assert.equal(left.length, 0)
})

test('a result says what was done, and what was left alone because it had changed', () => {
  const parked = verdict({ action: 'park', to: 'parked', applied: true })
  const resumed = verdict({ target: '01990000-0000-7000-8000-00000000000a', applied: true })
  const late = verdict({ target: '01990000-0000-7000-8000-00000000000b' })
  const account = accountOfRecovery(recovery([parked, resumed, late], { dryRun: false }))
  assert.equal(account.said, '2 things were done. 1 left alone: changed meanwhile.')
  assert.deepEqual(
    account.deeds.map(({ outcome }) => outcome),
    ['done', 'done', 'late'],
  )
})

test('a preview of a cleaning has the dead on one side and the resumable, which are kept, on the other', () => {
  const run = { id: RUN, source: 'shop', status: 'queued', action: 'abandon' } as JudgedRun
  const answer: Cleaning = {
    total: 2,
    active: [],
    dead: [run],
    cleaned: [],
    dryRun: true,
    resumable: [{ ...run, id: TARGET, action: 'resumable' }],
    plan: '0123456789abcdef',
    command: 'unstuck clean',
    undo: null,
  }
  const shown = accountOfCleaning(answer)
  assert.match(shown.said, /^1 dead run would be marked/)
  assert.equal(shown.deeds[0]?.to, 'abandoned')
  assert.equal(shown.left[0]?.action, 'resumable')
  const cleaned = [verdict({ target: null, action: 'abandon', applied: true })]
  const done = accountOfCleaning({ ...answer, dryRun: false, cleaned })
  assert.equal(done.said, '1 run is marked as “Timeout – auto-cleaned”.')
  assert.equal(done.deeds[0]?.outcome, 'done')
})

test('a row of a table of the user is named, and leads to its run', () => {
  const adopted = { table: 'jobs', key: 'a/2', can: [] }
  const run = { id: RUN, source: 'shop', status: 'running', adopted } as unknown as JudgedRun
  const { deeds } = accountOfRecovery(recovery([verdict({ action: 'fail' })], { active: [run] }))
  assert.deepEqual(
    [deeds[0]?.what, deeds[0]?.page, deeds[0]?.to],
    ['row a/2 of jobs, shop', `/runs/${RUN}`, null],
  )
  const answer = {
    total: 1,
    active: [],
    dead: [run],
    cleaned: [],
    dryRun: true,
    resumable: [],
    plan: '0123456789abcdef',
    command: 'unstuck clean',
    undo: null,
  }
  const { said, deeds: dead } = accountOfCleaning(answer)
  assert.equal(
    said,
    '1 dead run would be marked with the word that its table has for it. Nothing is deleted.',
  )
  assert.deepEqual([dead[0]?.what, dead[0]?.from], ['row a/2 of jobs, shop', dead[0]?.to])
  // A target of a whole table is still one.
  const whole = { ...run, adopted: { ...adopted, key: '' } }
  const [target] = accountOfRecovery(recovery([verdict()], { active: [whole] })).deeds
  assert.equal(target?.what, 'target 91bc4f2a of shop')
  const held = verdict({ evidence: { presence: 'unknown', who: 'row 3 of jobs (w-3)' } })
  const [row] = accountOfRecovery(recovery([held], { active: [whole] })).deeds
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
  const { said, undo } = accountOfDeletion({ ...answer, dryRun: true })
  assert.equal(said, 'Run 4f2a91bc of shop with 3 targets and 1 item would be deleted for good.')
  assert.equal(undo, null)
  const { said: after } = accountOfDeletion({ ...answer, dryRun: false })
  assert.match(after, /is deleted\. A folder stayed\.$/)
})

test('a retry of dead letters tells run by run, refusals too', () => {
  const runs = [
    { run: RUN, targets: 4, refused: null },
    { run: TARGET, targets: 2, refused: 'another run of shop is live' },
  ]
  const account = accountOfRetried({
    targets: 4,
    left: 0,
    runs,
    dryRun: false,
    plan: 'abc',
    undo: null,
  })
  assert.equal(account.said, '4 targets in 1 run are back in line. 1 run refused.')
  assert.deepEqual(
    account.deeds.map(({ outcome, because }) => [outcome, because]),
    [
      ['done', ''],
      ['late', 'another run of shop is live'],
    ],
  )
})

test('a sentence is enough for an action on one run; a preview need not say that it is one', () => {
  const undo = { label: 'Undo', calls: [], command: 'unstuck revert 4f2a91bc' }
  const said = '2 would be reset. Nothing was changed.'
  const done = { run: null, targets: 2, said, dryRun: true, undo, command: 'x' }
  const shown = accountOfDone(done, 'targets')
  assert.deepEqual([shown.count, shown.said], [2, '2 would be reset.'])
  assert.equal(accountOfDone({ ...done, dryRun: false }, 'targets').undo, undo)
})

test('without targets there is nothing to reset, but still a run to cancel', () => {
  const none = { run: null, targets: 0, said: '', dryRun: true, undo: null, command: 'x' }
  assert.equal(accountOfDone(none, 'targets').count, 0)
  assert.equal(accountOfDone(none, 'run').count, 1)
})

test('what changed since the preview is said in numbers', () => {
  const other = verdict({ target: '01990000-0000-7000-8000-00000000000a' })
  const shown = accountOfRecovery(recovery([verdict(), other]))
  const fewer = accountOfRecovery(recovery([verdict()]))
  const changed = accountOfRecovery(recovery([verdict({ action: 'park', to: 'parked' }), other]))
  assert.equal(differenceOf(shown, fewer), '1 no longer needs it.')
  assert.equal(differenceOf(fewer, shown), '1 came in.')
  assert.equal(differenceOf(shown, changed), '1 would now be judged differently.')
  const counts = (count: number) => ({ ...shown, deeds: [], count })
  assert.equal(differenceOf(counts(3), counts(5)), 'It was about 3, and is about 5 now.')
})
