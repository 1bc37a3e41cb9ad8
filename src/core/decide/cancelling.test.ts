import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AdoptedDeed } from '../model/run.ts'
import { canCancel, sayEnding, whyNotCancel } from './cancelling.ts'

const id = '0199f1aa-0000-7000-8000-00004f2a91bc'
const row = (key: string, can: AdoptedDeed[]) => ({ id, adopted: { table: 'courses', key, can } })

test('a run of our own can be cancelled, and so can a row whose table has a word for it', () => {
  for (const run of [{ id }, row('7', ['cancel'])]) {
    assert.equal(canCancel(run), true)
    assert.equal(whyNotCancel(run), null)
    assert.equal(sayEnding(run), '`unstuck cancel 4f2a91bc` ends it whatever it is')
  }
})

test('of a row that cannot be cancelled it is said which word is missing', () => {
  const run = row('7', ['resume'])
  assert.equal(canCancel(run), false)
  assert.match(whyNotCancel(run) ?? '', /map adopted\.courses\.statuses\.cancelled in the config/)
  assert.match(sayEnding(run), /map adopted\.courses\.statuses\.cancelled/)
})

test('a whole table of targets is not ended as one', () => {
  const run = row('', ['resume', 'park'])
  assert.match(whyNotCancel(run) ?? '', /whole table courses.*`unstuck park`/)
  assert.doesNotMatch(sayEnding(run), /cancel/)
})
