import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSign, STEADY } from '../../decide/sign.ts'
import { isId } from '../../model/id.ts'
import { DEFAULT_POLICY } from '../../model/policy.ts'
import { RUN_STATUSES } from '../../model/run.ts'
import type { AdoptedOptions, Mapping } from '../mapping.ts'
import { readMapping } from '../read-mapping.ts'
import { seeRun, seeTarget, wholeTable, type Facts } from './row-run.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { NOTHING_TOLD } from './user-functions.ts'
import { runStatusOf, targetStatusOf, wordFor } from './words.ts'

const NOW = 1_800_000_000_000
const MINUTE = 60_000

function mapping(options: Partial<AdoptedOptions> = {}): Mapping {
  const mistakes: string[] = []
  const given = {
    table: 'runs',
    columns: { id: 'id', status: 'status', startedAt: 'at', heartbeatAt: 'beat' },
    statuses: { active: ['RUNNING', 'pending'], queued: 'waiting', failed: 'broken' },
    ...options,
  }
  const read = readMapping('jobs', given, DEFAULT_POLICY, mistakes)
  assert.deepEqual(mistakes, [])
  return read!
}

const targets = (): Mapping =>
  mapping({ kind: 'targets', statuses: { active: 'busy', planned: 'open', stuck: 'stuck' } })

function row(given: Partial<AdoptedRow> = {}): AdoptedRow {
  return {
    key: '7',
    word: 'running',
    source: null,
    startedAt: NOW - 30 * MINUTE,
    finishedAt: null,
    error: null,
    heartbeatAt: null,
    activityAt: null,
    owner: null,
    extracted: 0,
    skipped: 0,
    done: null,
    total: null,
    hasCheckpoint: false,
    target: { key: '7', group: null, url: null, page: 0, pageTarget: null, attempts: 0 },
    user: {},
    stamp: {},
    ...given,
  }
}

const facts = (given: Partial<Facts> = {}): Facts => ({
  now: NOW,
  serverStartedAt: null,
  told: NOTHING_TOLD,
  reopened: null,
  ...given,
})
const table = (of: Mapping): AdoptedTable => ({ mapping: of }) as AdoptedTable
const signOf = (of: Mapping, given: Partial<AdoptedRow>, more: Partial<Facts> = {}) => {
  const seen =
    of.kind === 'runs'
      ? seeRun(table(of), row(given), facts(more))
      : seeTarget(table(of), row(given), wholeTable(of, [], null, NOW), facts(more))
  return seen.witnessed && readSign(seen.witnessed.evidence, STEADY).sign
}

test('words count in any case; one that nobody mapped has ended, as it suggests', () => {
  const of = mapping()
  assert.deepEqual(
    ['Running', 'PENDING', 'Waiting', 'BROKEN'].map((word) => runStatusOf(of, word)),
    ['running', 'running', 'queued', 'failed'],
  )
  const ends = {
    succeeded: ['success', 'Completed', 'FINISHED', 'done'],
    failed: ['ERROR', 'failure', 'crashed'],
    cancelled: ['aborted', 'skipped', 'paused', '', 'läuft'],
    abandoned: ['Timeout - Auto-cleaned', 'timed out', 'expired'],
  }
  for (const [status, words] of Object.entries(ends))
    for (const word of words) assert.equal(runStatusOf(of, word), status, word)
  assert.equal(targetStatusOf(targets(), 'OPEN'), 'planned')
  assert.equal(targetStatusOf(targets(), 'some error'), 'failed')
  assert.equal(targetStatusOf(targets(), 'skipped'), 'done')
  for (const action of ['resume', 'fail'] as const) assert.ok('word' in wordFor(of, action))
  assert.deepEqual(wordFor(of, 'cancel'), { missing: ['cancelled'] })
  assert.deepEqual(wordFor(targets(), 'park'), { word: 'stuck' })
  assert.ok(RUN_STATUSES.includes(runStatusOf(of, 'anything')))
})

test('P9 silence counts only since the server of the row is up: right after an outage nobody is presumed dead', () => {
  const beat = { heartbeatAt: NOW - 20 * MINUTE }
  assert.equal(signOf(mapping(), beat), 'silent')
  assert.equal(signOf(mapping(), beat, { serverStartedAt: NOW - 4 * MINUTE }), 'present')
  assert.equal(signOf(mapping(), beat, { serverStartedAt: NOW - 6 * MINUTE }), 'silent')
  assert.equal(signOf(mapping(), { heartbeatAt: NOW + MINUTE }), 'present', 'a clock that is ahead')
})

test('a run without a beat has no known owner; a target without one counts from its claim, or is silent at once', () => {
  assert.equal(signOf(mapping(), {}), null)
  assert.equal(signOf(targets(), { word: 'busy', startedAt: null }), 'silent')
  assert.equal(signOf(targets(), { word: 'busy', startedAt: NOW - MINUTE }), 'present')
  assert.equal(signOf(targets(), { word: 'busy' }), 'silent')
  const told = { ...NOTHING_TOLD, alive: false }
  assert.equal(signOf(mapping(), { heartbeatAt: NOW }, { told }), 'gone', 'alive() knows better')
})

test('what moves with the work is its activity; a beat counts only where nothing better is mapped', () => {
  const beats = { heartbeatAt: NOW, activityAt: NOW - 20 * MINUTE }
  const columns = { id: 'id', status: 's', heartbeatAt: 'b', activityAt: 'a' }
  const last = (of: Mapping) => seeRun(table(of), row(beats), facts()).run.lastActivityAt
  assert.equal(last(mapping({ columns })), NOW - 20 * MINUTE)
  assert.equal(last(mapping()), NOW)
  const told = { ...NOTHING_TOLD, filesAt: NOW - MINUTE }
  assert.equal(seeRun(table(mapping()), row(), facts({ told })).run.lastActivityAt, NOW - MINUTE)
})

test('a row has ids of its own as a run, a target and a worker, the same in every process', () => {
  const { run, target, witnessed } = seeRun(table(mapping()), row({ heartbeatAt: NOW }), facts())
  const ids = [run.id, target.id, witnessed!.worker.id]
  assert.ok(ids.every((id) => isId(id) && id[14] === '8'))
  assert.equal(new Set(ids).size, 3)
  assert.equal(run.id, 'fcaa2e97-d289-823d-ac5b-58adda1d1d42', 'links to it stay good')
})

test('a table of targets is one run: running while anything is, and never dead', () => {
  const of = targets()
  const status = (...words: string[]) =>
    wholeTable(
      of,
      words.map((word) => ({ word, count: 2 })),
      null,
      NOW,
    ).status
  assert.equal(status(), 'queued')
  assert.equal(status('open'), 'queued')
  assert.equal(status('open', 'done'), 'interrupted')
  assert.equal(status('open', 'done', 'BUSY'), 'running')
  assert.equal(status('done'), 'succeeded')
  assert.equal(status('done', 'stuck'), 'failed')
})
