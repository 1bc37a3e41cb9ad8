import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../core/model/id.ts'
import type { UnstuckEvent } from '../core/model/event.ts'
import type { Verdict } from '../core/model/verdict.ts'
import { EVIDENCE } from '../testing/fixtures.ts'
import { describeEvent, describeRecord, isFailure } from './event.ts'

const run = newId()
const target = newId()
const at = { time: '2026-11-16T04:12:03.250Z', worker: newId() }
const of = { run, target, key: 'ca/la' }
const VERDICT: Verdict = {
  run,
  target,
  key: 'ca/la',
  source: 'shop',
  action: 'resume',
  because: 'process 4711 has ended',
  liveness: 'gone',
  evidence: EVIDENCE,
  from: 'in_progress',
  to: 'planned',
  needsAttention: false,
  applied: true,
}

test('each event of a run in a journal reads like a sentence', () => {
  const events: [UnstuckEvent, RegExp][] = [
    [{ type: 'target_start', ...of, epoch: 1, page: 0 }, /^ca\/la: started$/],
    [{ type: 'target_start', ...of, epoch: 2, page: 3 }, /^ca\/la: continues after page 3$/],
    [{ type: 'page_complete', ...of, page: 4, items: 20 }, /^ca\/la: page 4 saved with 20 items$/],
    [{ type: 'page_complete', ...of, page: 5, items: 1 }, /^ca\/la: page 5 saved with 1 item$/],
    [{ type: 'target_complete', ...of, page: 5 }, /^ca\/la: done, 5 pages$/],
    [
      { type: 'target_error', ...of, page: 5, error: 'HTTP 500', retryInMs: 2_000 },
      /^ca\/la page 5: HTTP 500 — trying again in 2 s$/,
    ],
    [{ type: 'run_end', run, status: 'failed' }, /^run \w{8} failed$/],
    [
      { type: 'recovery', verdict: VERDICT },
      /^recovery: resume target ca\/la \(\w{8}\) of shop \(in progress → planned\): process 4711 has ended\.$/,
    ],
  ]
  for (const [event, expected] of events) {
    // As it is read from the file.
    const sentence = describeRecord(JSON.parse(JSON.stringify({ ...at, ...event })))
    assert.match(sentence, expected)
    assert.doesNotMatch(sentence, /=|_|undefined/)
  }
})

test('the log of a worker has no line for each page', () => {
  assert.equal(describeEvent({ type: 'page_complete', ...of, page: 4, items: 20 }), null)
})

test('an event of another version is shown with its fields', () => {
  assert.equal(
    describeRecord({ ...at, type: 'moon_phase', phase: 'full' }),
    'moon_phase phase=full',
  )
  assert.equal(describeRecord({ ...at, type: 'page_complete', page: 4 }), 'page_complete page=4')
  assert.match(describeRecord({ ...at, type: 'recovery', verdict: { because: 'x' } }), /because=x/)
})

test('an event that reports an error is a failure, and so is a run that did not succeed', () => {
  assert.deepEqual(
    [
      { type: 'target_error', error: 'HTTP 403' },
      { type: 'run_end', status: 'failed' },
      { type: 'run_end', status: 'succeeded' },
      { type: 'page_complete' },
    ].map(isFailure),
    [true, true, false, false],
  )
})
