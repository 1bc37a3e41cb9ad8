import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ActionResult } from './action-result.ts'
import {
  isConfirmed,
  nextState,
  describeError,
  type ActionState,
  type ActionError,
} from './action-state.ts'

const makeResult = (change: Partial<ActionResult> = {}): ActionResult => ({
  isDone: false,
  plan: 'a',
  count: 2,
  summary: '2 things',
  changes: [],
  needsAttention: [],
  omitted: { changes: 0, needsAttention: 0 },
  command: 'unstuck recover',
  undo: null,
  ...change,
})
const makeError = (change: Partial<ActionError> = {}): ActionError => ({
  status: 500,
  code: 'INTERNAL',
  message: 'It broke.',
  body: null,
  retryAfter: null,
  ...change,
})
const acting: ActionState = { at: 'acting', shown: makeResult() }

test('preview, agreement and result follow each other', () => {
  let ctx: ActionState = nextState({ at: 'looking' }, { type: 'seen', result: makeResult() })
  assert.equal(ctx.at, 'preview')
  ctx = nextState(ctx, { type: 'act' })
  assert.equal(ctx.at, 'acting')
  ctx = nextState(ctx, { type: 'acted', result: makeResult({ isDone: true }) })
  assert.equal(ctx.at, 'done')
  const steps = [{ path: '/api/runs/1/revert', error: null }, null]
  ctx = nextState(ctx, { type: 'undo', steps, isOver: false })
  assert.equal(ctx.at, 'undoing')
  ctx = nextState(ctx, { type: 'undo', steps, isOver: true })
  assert.ok(ctx.at === 'undone' && ctx.result.isDone)
})

test('a plan that changed meanwhile leads to the new preview, and says what changed', () => {
  const fresh = makeResult({ plan: 'b', count: 3 })
  const ctx = nextState(acting, {
    type: 'failed',
    error: makeError({ status: 409 }),
    newPreview: fresh,
  })
  assert.ok(ctx.at === 'preview')
  assert.equal(ctx.shown, fresh)
  assert.match(ctx.notice!, /Nothing was done.*about 2, and is about 3 now/)
})

test('a refusal keeps the preview and says why', () => {
  const denied = makeError({
    status: 403,
    message: 'A viewer only looks. Ask for an operator token.',
  })
  const ctx = nextState(acting, { type: 'failed', error: denied, newPreview: null })
  assert.ok(ctx.at === 'preview')
  assert.equal(ctx.shown, acting.shown)
  assert.equal(ctx.notice, 'Nothing was done. A viewer only looks. Ask for an operator token.')
})

test('without a preview there is nothing to agree to', () => {
  const ctx = nextState({ at: 'looking' }, { type: 'failed', error: makeError(), newPreview: null })
  assert.deepEqual(ctx, { at: 'blind', error: 'It broke.' })
  assert.equal(nextState(ctx, { type: 'act' }), ctx)
})

test('a late response changes nothing', () => {
  const preview: ActionState = { at: 'preview', shown: makeResult(), notice: null }
  assert.equal(nextState(preview, { type: 'acted', result: makeResult() }), preview)
  assert.equal(nextState(preview, { type: 'undo', steps: [], isOver: true }), preview)
  assert.equal(
    nextState(preview, { type: 'failed', error: makeError(), newPreview: null }),
    preview,
  )
  assert.equal(nextState(acting, { type: 'act' }), acting)
  assert.equal(nextState(acting, { type: 'seen', result: makeResult() }), acting)
})

test('a lost response is not reported as a failure, because the outcome is unknown', () => {
  assert.match(describeError(makeError({ status: 0 }), true), /not known whether it was done/)
  assert.equal(describeError(makeError({ status: 0, message: 'No answer.' }), false), 'No answer.')
})

test('a temporary error is shown as temporary, with the retry time if known', () => {
  const busy = makeError({ status: 429, message: 'Too many calls.', retryAfter: 12 })
  assert.equal(describeError(busy, true), 'Nothing was done. Too many calls. Try again in 12 s.')
  const away = makeError({ status: 503, message: 'The database does not answer.' })
  assert.match(describeError(away, true), /Try again in a moment\.$/)
})

test('words have to be typed for what cannot be taken back, and from the hundredth on', () => {
  const [final, plain] = [
    { text: 'delete 4f2a91bc', always: true },
    { text: 'recover', always: false },
  ]
  assert.ok(!isConfirmed(final, 1, ''))
  assert.ok(!isConfirmed(final, 1, 'delete'))
  assert.ok(isConfirmed(final, 1, ' delete 4f2a91bc '))
  assert.ok(isConfirmed(plain, 100, ''))
  assert.ok(!isConfirmed(plain, 101, '') && isConfirmed(plain, 101, 'recover'))
})
