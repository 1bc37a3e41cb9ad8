import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIVE_STATUSES, RUN_STATUSES } from '../core/model/run.ts'
import { TARGET_STATUSES } from '../core/model/target.ts'
import { RUN_TRANSITIONS, TARGET_TRANSITIONS } from './transitions.ts'

test('P7 the tables name every status, and only those', () => {
  assert.deepEqual(Object.keys(TARGET_TRANSITIONS).sort(), TARGET_STATUSES.toSorted())
  assert.deepEqual(Object.keys(RUN_TRANSITIONS).sort(), RUN_STATUSES.toSorted())
  for (const to of Object.values(TARGET_TRANSITIONS).flat()) assert.ok(TARGET_STATUSES.includes(to))
  for (const to of Object.values(RUN_TRANSITIONS).flat()) assert.ok(RUN_STATUSES.includes(to))
})

test('P7 every status can be reached from the first', () => {
  assert.deepEqual(reach(TARGET_TRANSITIONS, 'planned'), TARGET_STATUSES.toSorted())
  assert.deepEqual(reach(RUN_TRANSITIONS, 'queued'), RUN_STATUSES.toSorted())
})

test('P7 succeeded and done are final unless an operator rewinds, and no status moves to itself', () => {
  assert.deepEqual(TARGET_TRANSITIONS.done, ['planned'])
  assert.deepEqual(RUN_TRANSITIONS.succeeded, ['interrupted'])
  for (const [from, to] of Object.entries({ ...TARGET_TRANSITIONS, ...RUN_TRANSITIONS })) {
    assert.ok(!(to as readonly string[]).includes(from))
  }
})

test('P7 every live run can end', () => {
  for (const status of LIVE_STATUSES) {
    for (const end of ['succeeded', 'failed', 'cancelled', 'abandoned'] as const) {
      assert.ok(RUN_TRANSITIONS[status].includes(end), `${status} → ${end}`)
    }
  }
})

function reach(moves: Readonly<Record<string, readonly string[]>>, first: string): string[] {
  const reached = new Set([first])
  for (const from of reached) for (const to of moves[from]!) reached.add(to)
  return [...reached].sort()
}
