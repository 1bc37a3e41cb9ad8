import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdoptedAction } from '../model/run.ts'
import { canCancel, cancelHint, cancelBlockedReason } from './cancel.ts'

const id = '0199f1aa-0000-7000-8000-00004f2a91bc'
const row = (key: string, can: AdoptedAction[]) => ({ id, adopted: { table: 'courses', key, can } })

test('a stored run can be cancelled, and so can a row whose table maps a cancelled status', () => {
  for (const run of [{ id }, row('7', ['cancel'])]) {
    assert.equal(canCancel(run), true)
    assert.equal(cancelBlockedReason(run), null)
    assert.equal(cancelHint(run), '`unstuck cancel 4f2a91bc` ends it whatever it is')
  }
})

test('the refusal to cancel a row names the missing status', () => {
  const run = row('7', ['resume'])
  assert.equal(canCancel(run), false)
  assert.match(
    cancelBlockedReason(run) ?? '',
    /map adopted\.courses\.statuses\.cancelled in the config/,
  )
  assert.match(cancelHint(run), /map adopted\.courses\.statuses\.cancelled/)
})

test('a whole table of targets is not ended as one', () => {
  const run = row('', ['resume', 'park'])
  assert.match(cancelBlockedReason(run) ?? '', /whole table courses.*`unstuck park`/)
  assert.doesNotMatch(cancelHint(run), /cancel/)
})
