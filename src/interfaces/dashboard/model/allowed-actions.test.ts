import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunDetail, RunStatus, Target } from '../shapes.ts'
import { allowedActions, allowedTargetActions } from './allowed-actions.ts'

const LIVE: readonly RunStatus[] = ['queued', 'running', 'interrupted']

type Operation = { action: string; target?: string | null }

type Adopted = NonNullable<RunDetail['run']['adopted']>

const ROW: Adopted = { table: 'jobs', key: '7', can: ['cancel', 'resume'] }

function allowedFor(
  status: RunStatus,
  {
    failed = 0,
    parked = 0,
    deeds = [] as Operation[],
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
  return Object.entries(allowedActions(detail)).flatMap(([name, fits]) => (fits ? [name] : []))
}

test('a live run can be cancelled, an ended one goes on or goes away', () => {
  assert.deepEqual(allowedFor('running'), ['cancel'])
  assert.deepEqual(allowedFor('succeeded'), ['delete'])
  assert.deepEqual(allowedFor('failed', { failed: 3, parked: 1 }), [
    'resume',
    'retry',
    'resetFailed',
    'unpark',
    'delete',
  ])
})

test('an adopted run offers neither retry nor delete', () => {
  assert.deepEqual(allowedFor('running', { adopted: ROW }), ['cancel'])
  assert.deepEqual(allowedFor('failed', { adopted: ROW }), ['resume'])
  assert.deepEqual(allowedFor('succeeded', { adopted: ROW }), [])
})

test('an adopted run offers no action without a mapped status', () => {
  const mute: Adopted = { ...ROW, can: [] }
  assert.deepEqual(allowedFor('running', { adopted: mute }), [])
  assert.deepEqual(allowedFor('failed', { adopted: mute, failed: 1 }), [])
  // A row has no targets of its own to be reset, a table of targets has.
  assert.deepEqual(allowedFor('failed', { adopted: ROW, failed: 1 }), ['resume'])
  const table: Adopted = { table: 'jobs', key: '', can: ['resume', 'park'] }
  const deeds = ['resume', 'resetFailed', 'unpark']
  assert.deepEqual(allowedFor('failed', { adopted: table, failed: 3, parked: 1 }), deeds)
  assert.deepEqual(allowedFor('running', { adopted: table }), [])
})

test('the same of its targets', () => {
  const offers = (status: Target['status'], can: Adopted['can'] | null): string[] => {
    const adopted = can && { ...ROW, key: '', can }
    return Object.entries(allowedTargetActions({ status, page: 3 }, { adopted })).flatMap(
      ([name, fits]) => (fits ? [name] : []),
    )
  }
  assert.deepEqual(offers('failed', null), ['reset', 'park', 'rewind'])
  assert.deepEqual(offers('failed', ['resume', 'park']), ['reset', 'park'])
  assert.deepEqual(offers('failed', []), [])
  assert.deepEqual(offers('parked', ['park']), [])
  assert.deepEqual(offers('stuck', ['resume']), ['unpark'])
})

test('an operation can be reverted once', () => {
  const cancelled = [{ action: 'cancel' }]
  assert.ok(allowedFor('cancelled', { deeds: cancelled }).includes('revert'))
  // It was opened again, and then failed by itself.
  assert.ok(
    !allowedFor('failed', { deeds: [...cancelled, { action: 'revert' }] }).includes('revert'),
  )
  assert.ok(allowedFor('running', { deeds: [{ action: 'park', target: 't' }] }).includes('revert'))
  assert.ok(
    !allowedFor('running', { deeds: [{ action: 'resume', target: 't' }] }).includes('revert'),
  )
})
