import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LIVE_STATUSES, RUN_STATUSES } from './run.ts'
import { TARGET_STATUSES } from './target.ts'
import { RUN_MOVES, TARGET_MOVES } from './transitions.ts'

test('P7 the tables name every status, and only those', () => {
  assert.deepEqual(Object.keys(TARGET_MOVES).sort(), TARGET_STATUSES.toSorted())
  assert.deepEqual(Object.keys(RUN_MOVES).sort(), RUN_STATUSES.toSorted())
  for (const to of Object.values(TARGET_MOVES).flat()) assert.ok(TARGET_STATUSES.includes(to))
  for (const to of Object.values(RUN_MOVES).flat()) assert.ok(RUN_STATUSES.includes(to))
})

test('P7 every status can be reached from the first', () => {
  assert.deepEqual(reach(TARGET_MOVES, 'planned'), TARGET_STATUSES.toSorted())
  assert.deepEqual(reach(RUN_MOVES, 'queued'), RUN_STATUSES.toSorted())
})

test('P7 what succeeded or is done stays so unless a person rewinds it, and nothing moves to where it is', () => {
  assert.deepEqual(TARGET_MOVES.done, ['planned'])
  assert.deepEqual(RUN_MOVES.succeeded, ['interrupted'])
  for (const [from, to] of Object.entries({ ...TARGET_MOVES, ...RUN_MOVES })) {
    assert.ok(!(to as readonly string[]).includes(from))
  }
})

test('P7 every live run can end', () => {
  for (const status of LIVE_STATUSES) {
    for (const end of ['succeeded', 'failed', 'cancelled', 'abandoned'] as const) {
      assert.ok(RUN_MOVES[status].includes(end), `${status} → ${end}`)
    }
  }
})

function reach(moves: Readonly<Record<string, readonly string[]>>, first: string): string[] {
  const reached = new Set([first])
  for (const from of reached) for (const to of moves[from]!) reached.add(to)
  return [...reached].sort()
}
