import assert from 'node:assert/strict'
import { test } from 'node:test'
import { recoverAction, replanDeadLettersAction } from '../../../presenters/bulk-actions.ts'
import type { ActionResult, AllowedAction, AssessedRun, Verdict } from '../shapes.ts'
import {
  bodyOf,
  changesOf,
  commandOf,
  describeDifference,
  describeError,
  isConfirmed,
  mainAction,
  narrowRecovery,
  nextState,
  actTogether,
  type ActionError,
  type ActionState,
} from './action-state.ts'

const makeResult = (change: Partial<ActionResult> = {}): ActionResult => ({
  dryRun: true,
  plan: 'a',
  count: 2,
  summary: '2 things',
  command: 'unstuck recover',
  undo: null,
  ...change,
})
const makeError = (change: Partial<ActionError> = {}): ActionError => ({
  status: 500,
  message: 'It broke.',
  retryAfter: null,
  ...change,
})
const acting: ActionState = { at: 'acting', shown: makeResult() }

test('preview, agreement and result follow each other', () => {
  let ctx: ActionState = nextState({ at: 'loading' }, { type: 'loaded', result: makeResult() })
  assert.equal(ctx.at, 'preview')
  ctx = nextState(ctx, { type: 'act' })
  assert.equal(ctx.at, 'acting')
  ctx = nextState(ctx, { type: 'acted', result: makeResult({ dryRun: false }) })
  assert.equal(ctx.at, 'done')
  const steps = [{ path: '/api/runs/1/revert', error: null }, null]
  ctx = nextState(ctx, { type: 'undo', steps, isOver: false })
  assert.equal(ctx.at, 'undoing')
  ctx = nextState(ctx, { type: 'undo', steps, isOver: true })
  assert.ok(ctx.at === 'undone' && !ctx.result.dryRun)
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
  assert.match(ctx.notice!, /Nothing was changed: it was about 2, and is about 3 now/)
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
  const ctx = nextState({ at: 'loading' }, { type: 'failed', error: makeError(), newPreview: null })
  assert.deepEqual(ctx, { at: 'no-preview', error: 'It broke.' })
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
  assert.equal(nextState(acting, { type: 'loaded', result: makeResult() }), acting)
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

test('a text has to be typed for what cannot be reverted, and for more than a hundred things', () => {
  const [final, plain] = [
    { confirm: { text: 'delete 4f2a91bc', always: true } },
    { confirm: { text: 'recover', always: false } },
  ]
  assert.ok(!isConfirmed(final, 1, ''))
  assert.ok(!isConfirmed(final, 1, 'delete'))
  assert.ok(isConfirmed(final, 1, ' delete 4f2a91bc '))
  assert.ok(isConfirmed(plain, 100, ''))
  assert.ok(!isConfirmed(plain, 101, '') && isConfirmed(plain, 101, 'recover'))
})

const verdict = (target: string, change: Partial<Verdict> = {}) =>
  ({ run: 'r', target, action: 'resume', outcome: 'planned', ...change }) as Verdict
const recovery = (verdicts: Verdict[], planned = verdicts.length, total = verdicts.length) =>
  makeResult({ verdicts, planned, total, count: planned })

test('a preview of a recovery separates planned changes from what needs attention', () => {
  const verdicts = [verdict('a'), verdict('b', { action: 'abandon' }), verdict('c')]
  const { changes, more, kept, moreKept } = changesOf(recovery(verdicts, 1))
  assert.deepEqual([changes, more], [[verdicts[0]], 0])
  assert.deepEqual([kept, moreKept], [verdicts.slice(1), 0])
  assert.equal(changesOf(recovery(verdicts)).changes.length, 3)
})

test('of many only the first are listed, and all are counted', () => {
  const { changes, more, moreKept } = changesOf(recovery([verdict('a')], 700, 900))
  assert.deepEqual([changes.length, more, moreKept], [1, 699, 200])
})

test('a preview of a cleaning has dead runs to mark and resumable runs that are kept; its result has verdicts', () => {
  const [dead, resumable] = [{ id: 'a' } as AssessedRun, { id: 'b' } as AssessedRun]
  const cleaned = [verdict('a', { outcome: 'applied' })]
  const lists = { dead: [{ ...dead, actions: [] }], resumable: [resumable], cleaned }
  const preview = changesOf(makeResult({ ...lists, cleaned: [] }))
  assert.deepEqual([preview.changes, preview.kept], [lists.dead, [resumable]])
  const done = changesOf(makeResult({ ...lists, dryRun: false }))
  assert.deepEqual([done.changes, done.kept], [cleaned, []])
})

test('changes since the preview are reported as counts', () => {
  const both = recovery([verdict('a'), verdict('b')])
  const one = recovery([verdict('a')])
  const other = recovery([verdict('a', { action: 'park' }), verdict('b')])
  assert.equal(describeDifference(both, one), '1 no longer needs it.')
  assert.equal(describeDifference(one, both), '1 came in.')
  assert.equal(describeDifference(both, other), '1 would now get another verdict.')
  const counts = (count: number) => makeResult({ count })
  assert.equal(describeDifference(counts(3), counts(5)), 'it was about 3, and is about 5 now.')
})

const NO_PLAN: Pick<ActionResult, 'plan'> = {}

test('the call has the selection, the fields, the plan that was shown, and the reason if there is one', () => {
  assert.deepEqual(bodyOf(recoverAction({}), {}, { plan: 'abc' }, '  '), { plan: 'abc' })
  assert.deepEqual(bodyOf(recoverAction({}), {}, NO_PLAN, ' night shift '), {
    because: 'night shift',
  })
  const group = { fingerprint: 'f00' }
  const action = replanDeadLettersAction(group, { label: 'Plan 10 again', what: '10 dead letters' })
  const expected = { fingerprint: 'f00', to: 2, plan: 'abc' }
  assert.deepEqual(bodyOf(action, { to: 2 }, { plan: 'abc' }, ''), expected)
  const command = 'unstuck recover'
  assert.equal(commandOf({ command }, ' it is late '), `${command} '--because=it is late'`)
  assert.deepEqual([commandOf({ command }, ' '), commandOf({ command: '' }, 'a')], [command, ''])
})

test('several targets are parked with one call', () => {
  const park = (id: string): AllowedAction => ({
    ...recoverAction({}),
    name: 'park',
    label: 'Park',
    title: `Park ${id}`,
    call: { ...recoverAction({}).call, path: '/api/targets/park', body: { targets: [id] } },
  })
  assert.equal(actTogether([]), null)
  assert.deepEqual(actTogether([park('a')]), park('a'))
  const both = actTogether([park('a'), park('b')])!
  assert.deepEqual([both.title, both.call.body], ['Park 2 targets', { targets: ['a', 'b'] }])
})

test('one button stands out: the first thing to do, not each that continues something', () => {
  const main = (...names: AllowedAction['name'][]) => mainAction(names.map((name) => ({ name })))
  assert.equal(main('resume', 'retry', 'unpause'), 'unpause')
  assert.equal(main('resume', 'reset-failed', 'unpark', 'retry'), 'reset-failed')
  assert.equal(main('cancel', 'pause'), undefined)
})

test('the recovery of one source is that which the server offers for it', () => {
  const source = 'flights & hotels'
  assert.deepEqual(narrowRecovery(recoverAction({}), source), recoverAction({ sources: [source] }))
})
