import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunDetail, RunStatus } from '../shapes.ts'
import { fitting } from './fitting.ts'

const LIVE: readonly RunStatus[] = ['queued', 'running', 'interrupted']

type Deed = { action: string; target?: string | null }

const ROW = { table: 'jobs', key: '7' }

function fit(
  status: RunStatus,
  {
    failed = 0,
    parked = 0,
    deeds = [] as Deed[],
    adopted = null as RunDetail['run']['adopted'],
  } = {},
): string[] {
  const detail = {
    run: { status, adopted, health: LIVE.includes(status) ? 'healthy' : null },
    counts: { failed, parked, stuck: 0 },
    audit: deeds.map(({ action, target = null }) => ({
      action,
      target,
    })),
  } as unknown as RunDetail
  return Object.entries(fitting(detail)).flatMap(([name, fits]) => (fits ? [name] : []))
}

test('a live run can be cancelled, an ended one goes on or goes away', () => {
  assert.deepEqual(fit('running'), ['cancel'])
  assert.deepEqual(fit('succeeded'), ['delete'])
  assert.deepEqual(fit('failed', { failed: 3, parked: 1 }), [
    'resume',
    'retry',
    'resetFailed',
    'unpark',
    'delete',
  ])
})

test('of a table of the user nothing is retried from nothing, and nothing deleted', () => {
  assert.deepEqual(fit('running', { adopted: ROW }), ['cancel'])
  assert.deepEqual(fit('failed', { adopted: ROW }), ['resume'])
  assert.deepEqual(fit('succeeded', { adopted: ROW }), [])
})

test('what was done can be taken back once', () => {
  const cancelled = [{ action: 'cancel' }]
  assert.ok(fit('cancelled', { deeds: cancelled }).includes('revert'))
  // It was opened again, and then failed by itself.
  assert.ok(!fit('failed', { deeds: [...cancelled, { action: 'revert' }] }).includes('revert'))
  assert.ok(fit('running', { deeds: [{ action: 'park', target: 't' }] }).includes('revert'))
  assert.ok(!fit('running', { deeds: [{ action: 'resume', target: 't' }] }).includes('revert'))
})
