import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ACTIONS, type Action } from '../core/model/verdict.ts'
import type { Store } from '../core/store/store.ts'
import { SOURCE_STORE } from '../features/sources/store/store.ts'
import { beginOne, operatorContext, registerWorker, SOURCE } from '../testing/fixtures.ts'
import { sqliteEngine } from '../testing/sqlite-engine.ts'
import { adviseStart, decideStart, type StartAction } from './check.ts'

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

test('the lock of a source and the workers are read once for one advice', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const worker = await registerWorker(store)
  await store.lockSource({ source: SOURCE, worker, killTimeoutMs: 1_000, processTag: 'x' })
  await beginOne(store, worker)
  await (await store.extend(SOURCE_STORE)).setNextStart(SOURCE, 60_000)
  const calls: string[] = []
  const counting: Store = {
    ...store,
    sourceLocks: (source) => {
      calls.push('locks')
      return store.sourceLocks(source)
    },
    observations: () => {
      calls.push('workers')
      return store.observations()
    },
  }
  const { action, state } = await adviseStart(operatorContext(counting), SOURCE)
  assert.equal(action, 'wait')
  assert.ok(state!.nextStartAt! > Date.now())
  assert.deepEqual(calls, ['locks', 'workers'])
})
