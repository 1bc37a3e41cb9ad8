import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunDetail, RunStatus, Target } from '../shapes.ts'
import { fitting, fittingTarget } from './allowed-actions.ts'

const LIVE: readonly RunStatus[] = ['queued', 'running', 'interrupted']

type Deed = { action: string; target?: string | null }

type Adopted = NonNullable<RunDetail['run']['adopted']>

const ROW: Adopted = { table: 'jobs', key: '7', can: ['cancel', 'resume'] }

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

test('of a table of the user nothing is offered that it has no word for', () => {
  const mute: Adopted = { ...ROW, can: [] }
  assert.deepEqual(fit('running', { adopted: mute }), [])
  assert.deepEqual(fit('failed', { adopted: mute, failed: 1 }), [])
  // A row has no targets of its own to be reset, a table of targets has.
  assert.deepEqual(fit('failed', { adopted: ROW, failed: 1 }), ['resume'])
  const table: Adopted = { table: 'jobs', key: '', can: ['resume', 'park'] }
  const deeds = ['resume', 'resetFailed', 'unpark']
  assert.deepEqual(fit('failed', { adopted: table, failed: 3, parked: 1 }), deeds)
  assert.deepEqual(fit('running', { adopted: table }), [])
})

test('the same of its targets', () => {
  const offers = (status: Target['status'], can: Adopted['can'] | null): string[] => {
    const adopted = can && { ...ROW, key: '', can }
    return Object.entries(fittingTarget({ status, page: 3 }, { adopted })).flatMap(([name, fits]) =>
      fits ? [name] : [],
    )
  }
  assert.deepEqual(offers('failed', null), ['reset', 'park', 'rewind'])
  assert.deepEqual(offers('failed', ['resume', 'park']), ['reset', 'park'])
  assert.deepEqual(offers('failed', []), [])
  assert.deepEqual(offers('parked', ['park']), [])
  assert.deepEqual(offers('stuck', ['resume']), ['unpark'])
})

test('what was done can be taken back once', () => {
  const cancelled = [{ action: 'cancel' }]
  assert.ok(fit('cancelled', { deeds: cancelled }).includes('revert'))
  // It was opened again, and then failed by itself.
  assert.ok(!fit('failed', { deeds: [...cancelled, { action: 'revert' }] }).includes('revert'))
  assert.ok(fit('running', { deeds: [{ action: 'park', target: 't' }] }).includes('revert'))
  assert.ok(!fit('running', { deeds: [{ action: 'resume', target: 't' }] }).includes('revert'))
})
