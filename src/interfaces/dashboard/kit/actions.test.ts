import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recoverAction, retryDeadLettersAction } from '../../../presenters/bulk-actions.ts'
import type { AllowedAction } from '../shapes.ts'
import { resultOfAction, type ActionResult } from './action-result.ts'
import { bodyOf, parkTogether } from './actions.ts'

const shown = (change: Partial<ActionResult> = {}): ActionResult => ({
  ...resultOfAction({
    run: null,
    targets: 3,
    count: 3,
    sections: [],
    dryRun: true,
    undo: null,
    command: '',
  }),
  ...change,
})

test('the action sends the plan that was shown, and the reason if there is one', () => {
  const body = (because: string) =>
    bodyOf(recoverAction({}), {}, { shown: shown({ plan: 'abc' }), because })
  assert.deepEqual(body('  '), { plan: 'abc' })
  assert.deepEqual(body(' night shift '), { plan: 'abc', because: 'night shift' })
})

test('the action sends its selection and the values of its fields', () => {
  const group = { fingerprint: 'f00' }
  const action = retryDeadLettersAction(group, { label: 'Retry 10', what: '10 dead letters' })
  const body = bodyOf(action, { to: 2 }, { shown: shown({ plan: 'abc' }), because: '' })
  assert.deepEqual(body, { fingerprint: 'f00', to: 2, plan: 'abc' })
})

test('several targets are parked with one call', () => {
  const park = (id: string): AllowedAction => ({
    ...recoverAction({}),
    name: 'park',
    title: `Park ${id}`,
    call: { ...recoverAction({}).call, path: '/api/targets/park', body: { targets: [id] } },
  })
  assert.equal(parkTogether([]), null)
  assert.deepEqual(parkTogether([park('a')]), park('a'))
  const both = parkTogether([park('a'), park('b')])!
  assert.deepEqual([both.title, both.call.body], ['Park 2 targets', { targets: ['a', 'b'] }])
})
