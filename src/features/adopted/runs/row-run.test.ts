import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSign, STEADY } from '../../../core/decide/liveness.ts'
import { isId } from '../../../core/model/id.ts'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { RUN_STATUSES } from '../../../core/model/run.ts'
import type { AdoptedOptions, Mapping } from '../mapping.ts'
import { readMapping } from '../read-mapping.ts'
import { seeRun, seeTarget, wholeTable, type Facts } from './row-run.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { NOTHING_TOLD } from './callbacks.ts'
import { runStatusOf, targetStatusOf, wordFor } from './status-mapping.ts'

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
  assert.equal(signOf(mapping(), beat, { serverStartedAt: NOW - 4 * MINUTE }), 'unknown')
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

test('what a person opened again has moved when anything of it is newer; of the day that it began on nobody can tell', () => {
  const moved = (given: Partial<AdoptedRow>, at: number) =>
    seeRun(table(mapping()), row(given), facts({ reopened: { at, word: null } })).hasMoved
  const began = { startedAt: NOW - 30 * MINUTE }
  assert.equal(moved(began, NOW - 20 * MINUTE), false)
  assert.equal(moved(began, NOW - 40 * MINUTE), true)
  const day = { startedAt: NOW + 600 * MINUTE, stamp: { at: '2027-01-15' } }
  assert.equal(moved(day, NOW - 20 * MINUTE), false)
  assert.equal(moved(day, NOW - 24 * 60 * MINUTE), true, 'it began on a later day')
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

test('a start or a sign of work that is newer than the beat is a sign of life; what lies ahead is none', () => {
  const columns = { id: 'id', status: 's', startedAt: 'st', heartbeatAt: 'b', activityAt: 'a' }
  const beat = { heartbeatAt: NOW - 120 * MINUTE }
  const sign = (given: Partial<AdoptedRow>) => signOf(mapping({ columns }), { ...beat, ...given })
  assert.equal(sign({}), 'silent')
  assert.equal(sign({ startedAt: NOW - MINUTE }), 'present')
  assert.equal(sign({ activityAt: NOW - MINUTE }), 'present')
  assert.equal(sign({ startedAt: NOW + MINUTE }), 'present', 'a clock that is ahead')
  assert.equal(sign({ startedAt: NOW + 600 * MINUTE }), 'silent', 'the end of the day')
})

test('whom alive() could not be asked about nobody knows, unless there is a fresh beat', () => {
  const told = { ...NOTHING_TOLD, alive: 'unanswered' as const }
  assert.equal(signOf(mapping(), {}, { told }), 'unknown')
  assert.equal(signOf(mapping(), { heartbeatAt: NOW - 60 * MINUTE }, { told }), 'unknown')
  assert.equal(signOf(mapping(), { heartbeatAt: NOW }, { told }), 'present')
  assert.equal(signOf(targets(), { word: 'busy' }, { told }), 'unknown')
})

test('the lease is the one that the policy of its source says now', () => {
  const beat = { heartbeatAt: NOW - 20 * MINUTE }
  const policyOf: Facts['policyOf'] = ({ source, policy }) =>
    source === 'jobs' ? { ...policy, leaseMs: 180 * MINUTE } : policy
  assert.equal(signOf(mapping(), beat, { policyOf }), 'present')
  const { policy } = seeRun(table(mapping()), row(beat), facts({ policyOf })).run
  assert.equal(policy.maxSilenceMs, 180 * MINUTE, 'between two beats nothing more is known')
  assert.equal(signOf(targets(), { word: 'busy', ...beat }, { policyOf }), 'present')
  assert.equal(signOf(mapping(), { ...beat, source: 'other' }, { policyOf }), 'silent')
})

test('whatever a stranger wrote as id or owner, a sentence about the row is one line of bounded length', () => {
  const hostile = {
    key: 'x\n\u001b]52;c;aGk=\u0007\u2028',
    owner: `h\u202e\u001b[2J${'y'.repeat(500)}`,
  }
  const { witnessed } = seeRun(table(mapping()), row({ ...hostile, heartbeatAt: NOW }), facts())
  const { who, host } = witnessed!.evidence
  assert.match(who!, /^row x \]52;c;aGk= of jobs \(h \[2Jy+…\)$/)
  assert.ok(who!.length < 250 && host.length <= 100)
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
