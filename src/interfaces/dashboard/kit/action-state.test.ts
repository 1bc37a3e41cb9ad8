import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Account } from './action-result.ts'
import { isAgreed, nextStage, sayTrouble, type Stage, type Trouble } from './action-state.ts'

const account = (change: Partial<Account> = {}): Account => ({
  isDone: false,
  plan: 'a',
  count: 2,
  said: '2 things',
  deeds: [],
  left: [],
  cut: { deeds: 0, left: 0 },
  command: 'unstuck recover',
  undo: null,
  ...change,
})
const trouble = (change: Partial<Trouble> = {}): Trouble => ({
  status: 500,
  code: 'INTERNAL',
  message: 'It broke.',
  body: null,
  retryAfter: null,
  ...change,
})
const acting: Stage = { at: 'acting', shown: account() }

test('preview, agreement and result follow each other', () => {
  let stage: Stage = nextStage({ at: 'looking' }, { type: 'seen', account: account() })
  assert.equal(stage.at, 'preview')
  stage = nextStage(stage, { type: 'act' })
  assert.equal(stage.at, 'acting')
  stage = nextStage(stage, { type: 'acted', account: account({ isDone: true }) })
  assert.equal(stage.at, 'done')
  const steps = [{ path: '/api/runs/1/revert', error: null }, null]
  stage = nextStage(stage, { type: 'undo', steps, isOver: false })
  assert.equal(stage.at, 'undoing')
  stage = nextStage(stage, { type: 'undo', steps, isOver: true })
  assert.ok(stage.at === 'undone' && stage.result.isDone)
})

test('a plan that changed meanwhile leads to the new preview, and says what changed', () => {
  const fresh = account({ plan: 'b', count: 3 })
  const stage = nextStage(acting, { type: 'failed', trouble: trouble({ status: 409 }), fresh })
  assert.ok(stage.at === 'preview')
  assert.equal(stage.shown, fresh)
  assert.match(stage.notice!, /Nothing was done.*about 2, and is about 3 now/)
})

test('a refusal keeps the preview and says why', () => {
  const denied = trouble({
    status: 403,
    message: 'A viewer only looks. Ask for an operator token.',
  })
  const stage = nextStage(acting, { type: 'failed', trouble: denied, fresh: null })
  assert.ok(stage.at === 'preview')
  assert.equal(stage.shown, acting.shown)
  assert.equal(stage.notice, 'Nothing was done. A viewer only looks. Ask for an operator token.')
})

test('without a preview there is nothing to agree to', () => {
  const stage = nextStage({ at: 'looking' }, { type: 'failed', trouble: trouble(), fresh: null })
  assert.deepEqual(stage, { at: 'blind', error: 'It broke.' })
  assert.equal(nextStage(stage, { type: 'act' }), stage)
})

test('what comes late changes nothing', () => {
  const preview: Stage = { at: 'preview', shown: account(), notice: null }
  assert.equal(nextStage(preview, { type: 'acted', account: account() }), preview)
  assert.equal(nextStage(preview, { type: 'undo', steps: [], isOver: true }), preview)
  assert.equal(nextStage(preview, { type: 'failed', trouble: trouble(), fresh: null }), preview)
  assert.equal(nextStage(acting, { type: 'act' }), acting)
  assert.equal(nextStage(acting, { type: 'seen', account: account() }), acting)
})

test('a lost answer is not called a failure, because nobody knows', () => {
  assert.match(sayTrouble(trouble({ status: 0 }), true), /not known whether it was done/)
  assert.equal(sayTrouble(trouble({ status: 0, message: 'No answer.' }), false), 'No answer.')
})

test('what passes is said to pass, with the time where it is known', () => {
  const busy = trouble({ status: 429, message: 'Too many calls.', retryAfter: 12 })
  assert.equal(sayTrouble(busy, true), 'Nothing was done. Too many calls. Try again in 12 s.')
  const away = trouble({ status: 503, message: 'The database does not answer.' })
  assert.match(sayTrouble(away, true), /Try again in a moment\.$/)
})

test('words have to be typed for what cannot be taken back, and from the hundredth on', () => {
  const [final, plain] = [
    { text: 'delete 4f2a91bc', always: true },
    { text: 'recover', always: false },
  ]
  assert.ok(!isAgreed(final, 1, ''))
  assert.ok(!isAgreed(final, 1, 'delete'))
  assert.ok(isAgreed(final, 1, ' delete 4f2a91bc '))
  assert.ok(isAgreed(plain, 100, ''))
  assert.ok(!isAgreed(plain, 101, '') && isAgreed(plain, 101, 'recover'))
})
