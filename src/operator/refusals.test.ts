import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../core/model/run.ts'
import { cancelHint, refuseCancel, refuseRetry } from './refusals.ts'
import { makeRowTraits, STANDARD_TRAITS } from '../testing/traits.ts'
import type { RunTraits } from '../core/model/traits.ts'

const RUN = { id: '0199f1aa-0000-7000-8000-00004f2a91bc', status: 'running' } as Run
const row = (traits: Partial<RunTraits>) => ({
  ...RUN,
  traits: makeRowTraits({ origin: { table: 'courses', key: '7' }, ...traits }),
})

test('a stored run can be cancelled, and so can a row whose table maps a cancelled status', () => {
  for (const run of [{ ...RUN, traits: STANDARD_TRAITS }, row({ actions: ['cancel'] })]) {
    assert.equal(refuseCancel(run), null)
    assert.match(cancelHint(run), /^`unstuck cancel (4f2a91bc|courses:7)` ends it whatever it is$/)
  }
})

test('the refusal to cancel a row names the missing status', () => {
  const run = row({ actions: ['resume'] })
  assert.match(
    refuseCancel(run)?.message ?? '',
    /map adopted\.courses\.statuses\.cancelled in the config/,
  )
  assert.match(cancelHint(run), /map adopted\.courses\.statuses\.cancelled/)
})

test('a row that can only be failed is ended by that', () => {
  assert.equal(
    cancelHint(row({ actions: ['fail'] })),
    '`unstuck fail courses:7` ends it whatever it is',
  )
})

test('a whole table of targets is not ended as one', () => {
  const run = row({
    origin: { table: 'courses', key: '' },
    actions: ['resume', 'park'],
    hasTargets: true,
  })
  assert.match(refuseCancel(run)?.message ?? '', /whole table courses.*`unstuck park`/)
  assert.doesNotMatch(cancelHint(run), /cancel/)
})

test('the refusal to retry a live row names it by its own id, and what to do if its process has ended', () => {
  const counts = { targets: { in_progress: 1 } } as Run['counts']
  const run = { ...row({ actions: ['retry'], isOnlyLive: false }), source: 'maths', counts }
  assert.match(
    refuseRetry(run, null)?.message ?? '',
    /^maths is already running: run courses:7\. .*if its process has ended, `unstuck recover`/,
  )
})
