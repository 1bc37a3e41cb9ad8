import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACTIONS, type Action } from '../core/model/verdict.ts'
import { decideStart, type StartAction } from './check.ts'

type Live = { hasProgress: boolean; isHeld: boolean; isComplete?: boolean }
const advice = (action: Action, live: Partial<Live> = {}) =>
  decideStart(
    { hasProgress: false, isHeld: false, isComplete: false, ...live },
    { action, because: `judged as ${action}` },
  )

test('with no live run one may start', () => {
  assert.equal(decideStart(null, null).action, 'start')
})

const cases: [Action, Partial<Live>, StartAction][] = [
  ['leave', { isHeld: true }, 'wait'],
  ['alert', { isHeld: true }, 'wait'],
  ['resume', { isHeld: true, hasProgress: true }, 'wait'],
  ['leave', { isHeld: false }, 'resume'],
  ['leave', { isHeld: false, isComplete: true }, 'start'],
  ['leave', { isHeld: true, isComplete: true }, 'wait'],
  ['resume', { hasProgress: true }, 'resume'],
  ['resumable', { hasProgress: true }, 'resume'],
  ['wait', { hasProgress: true }, 'resume'],
  ['wait', {}, 'start'],
  ['retry', {}, 'start'],
  ['replan', {}, 'start'],
  ['abandon', {}, 'clean'],
  ['fail', {}, 'clean'],
  ['hold', {}, 'clean'],
  ['park', {}, 'clean'],
]
for (const [action, live, expected] of cases) {
  test(`a live run with the verdict ${action}, ${JSON.stringify(live)}: ${expected}`, () => {
    assert.deepEqual(advice(action, live), { action: expected, because: `judged as ${action}` })
  })
}

test('P10 a run held by a live worker is waited for', () => {
  for (const action of ACTIONS) {
    assert.equal(advice(action, { isHeld: true, hasProgress: true }).action, 'wait')
  }
})
