import assert from 'node:assert/strict'
import { test } from 'node:test'
import { resultOfAction, type ActionResult } from './action-result.ts'
import { mustTypeConfirmation } from './action-state.ts'
import * as actions from './actions.ts'
import { bodyOf, type Action } from './actions.ts'

const ID = '01990000-0000-7000-8000-00004f2a91bc'
const run = { id: ID, source: 'shop' }
const target = { id: ID, key: 'Ohio', page: 7 }
const shown = (change: Partial<ActionResult> = {}): ActionResult => ({
  ...resultOfAction(
    { run: null, targets: 3, sections: [], dryRun: true, undo: null, command: '' },
    'targets',
  ),
  ...change,
})
const ALL: readonly Action[] = [
  actions.recover(),
  actions.clean(),
  actions.cancelRun(run),
  actions.resumeRun(run),
  actions.retryRun(run),
  actions.revertRun(run),
  actions.resetFailed(run),
  actions.unparkRun(run),
  actions.deleteRun(run),
  actions.parkTargets([target]),
  actions.unparkTarget(target),
  actions.resetTarget(target),
  actions.rewindTarget(target),
  actions.retryDeadLetters({}, '3 dead letters'),
]

test('every action has labels and an API call', () => {
  for (const { title, verb, about, path, confirmation } of ALL) {
    for (const text of [title, verb, about, confirmation.text]) assert.ok(text.length > 0, title)
    assert.match(path, /^\/api\//)
  }
})

test('texts about an adopted row mention no workers', () => {
  const adopted = { table: 'jobs', key: 'a/2' }
  const row = { ...run, adopted }
  const all = [
    actions.cancelRun(row),
    actions.resumeRun(row),
    actions.revertRun(row),
    actions.resetFailed(row),
    actions.unparkRun(row),
    actions.parkTargets([target], adopted),
    actions.unparkTarget(target, adopted),
    actions.resetTarget(target, adopted),
  ]
  for (const { about } of all) assert.doesNotMatch(about, /worker|handler|saved page/)
  assert.equal(all[0]!.title, 'Cancel row a/2 of jobs')
})

test('only what cannot be taken back always asks for words', () => {
  const asking = ALL.filter(({ confirmation }) => mustTypeConfirmation(confirmation, 1)).map(
    ({ title }) => title,
  )
  assert.deepEqual(asking, ['Delete the run of shop'])
  assert.equal(actions.deleteRun(run).confirmation.text, 'delete 4f2a91bc')
})

test('a selection is sent with the preview and with the action', () => {
  const some = { timeout: '60m', sources: ['a b', 'c'], groups: ['CA'] }
  const { preview, body } = actions.recover(some)
  assert.equal(preview, '/api/recovery?timeout=60m&source=a+b&source=c&group=CA')
  assert.deepEqual(body({}, null), some)
  assert.equal(actions.recover().preview, '/api/recovery')
  // A cleaning of named runs has no call to look at it: it is asked for as a dry run.
  assert.equal(actions.clean({ runs: [ID] }).preview, null)
})

test('the action sends the plan that was shown, and the reason if there is one', () => {
  const body = (because: string) =>
    bodyOf(actions.recover(), {}, { shown: shown({ plan: 'abc' }), because })
  assert.deepEqual(body('  '), { plan: 'abc' })
  assert.deepEqual(body(' night shift '), { plan: 'abc', because: 'night shift' })
})

test('a retry of dead letters carries the plan that was shown, and no count', () => {
  const action = actions.retryDeadLetters({ fingerprint: 'f00' }, '10 dead letters')
  assert.deepEqual(action.body({}, null), { fingerprint: 'f00' })
  const body = bodyOf(action, {}, { shown: shown({ plan: 'abc' }), because: '' })
  assert.deepEqual(body, { fingerprint: 'f00', plan: 'abc' })
})

test('dialog inputs are sent with the call', () => {
  const rewind = actions.rewindTarget(target)
  assert.deepEqual(rewind.fields[0], {
    name: 'to',
    label: 'Go on after page',
    initial: 6,
    max: 7,
  })
  assert.deepEqual(rewind.body({ to: 2 }, null), { to: 2 })
  const { body } = actions.deleteRun(run)
  assert.deepEqual(body({ withItems: false }, null), { confirm: 'delete 4f2a91bc' })
  assert.equal(body({ withItems: true }, null)['withItems'], true)
})
