import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { describe, test } from 'node:test'
import { assessLiveness, TRUSTED_OBSERVER } from '../../../core/decide/liveness.ts'
import { isId } from '../../../core/model/id.ts'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { RUN_STATUSES } from '../../../core/model/run.ts'
import { evidenceSentences } from '../../../presenters/view.ts'
import type { AdoptedColumns, AdoptedOptions, Mapping } from '../mapping.ts'
import { parseMapping } from '../parse-mapping.ts'
import { rowProcessState } from './row-process.ts'
import { resolveRow, toTableRun, type RowFacts } from './row-run.ts'
import type { AdoptedRow, AdoptedTable } from '../table/table.ts'
import { NO_RESULTS } from './callbacks.ts'
import { runStatusOf, targetStatusOf, statusValueAfter } from './status-mapping.ts'

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
  const read = parseMapping('jobs', given, DEFAULT_POLICY, mistakes)
  assert.deepEqual(mistakes, [])
  return read!
}

const targets = (): Mapping =>
  mapping({ kind: 'targets', statuses: { active: 'busy', planned: 'open', stuck: 'stuck' } })

function row(given: Partial<AdoptedRow> = {}): AdoptedRow {
  return {
    key: '7',
    status: 'running',
    hasError: false,
    source: null,
    createdAt: null,
    startedAt: NOW - 30 * MINUTE,
    listedAt: given.startedAt ?? NOW - 30 * MINUTE,
    finishedAt: null,
    error: null,
    heartbeatAt: null,
    activityAt: null,
    owner: null,
    host: null,
    pid: null,
    extracted: 0,
    skipped: 0,
    done: null,
    total: null,
    hasCheckpoint: false,
    target: { key: '7', group: null, url: null, page: 0, pageTarget: null, attempts: 0 },
    userRow: {},
    snapshot: {},
    ...given,
  }
}

const withStatus = (status: string) => ({ status, hasError: false })

const facts = (given: Partial<RowFacts> = {}): RowFacts => ({
  now: NOW,
  serverStartedAt: null,
  callbackResults: NO_RESULTS,
  reopened: null,
  ...given,
})
const table = (of: Mapping): AdoptedTable => ({ mapping: of }) as AdoptedTable
const livenessOf = (of: Mapping, given: Partial<AdoptedRow>, more: Partial<RowFacts> = {}) => {
  const tableRun = of.kind === 'runs' ? null : toTableRun(of, [], [], NOW)
  const seen = resolveRow(table(of), row(given), tableRun, facts(more))
  return seen.observation && assessLiveness(seen.observation.evidence, TRUSTED_OBSERVER).liveness
}

test('status values ignore case; an unmapped one counts as ended', () => {
  const of = mapping()
  assert.deepEqual(
    ['Running', 'PENDING', 'Waiting', 'BROKEN'].map((value) => runStatusOf(of, withStatus(value))),
    ['running', 'running', 'queued', 'failed'],
  )
  const ends = {
    succeeded: ['success', 'Completed', 'FINISHED', 'done'],
    failed: ['ERROR', 'failure', 'crashed'],
    cancelled: ['aborted', 'skipped', 'paused', '', 'läuft'],
    abandoned: ['Timeout - Auto-cleaned', 'timed out', 'expired'],
  }
  for (const [status, words] of Object.entries(ends))
    for (const value of words) assert.equal(runStatusOf(of, withStatus(value)), status, value)
  assert.equal(targetStatusOf(targets(), withStatus('OPEN')), 'planned')
  assert.equal(targetStatusOf(targets(), withStatus('some error')), 'failed')
  assert.equal(targetStatusOf(targets(), withStatus('skipped')), 'done')
  for (const action of ['resume', 'fail'] as const)
    assert.ok('value' in statusValueAfter(of, action))
  assert.deepEqual(statusValueAfter(of, 'cancel'), {
    missing:
      'No status is mapped for cancel on a run of jobs: map adopted.jobs.statuses.cancelled in the config',
  })
  assert.deepEqual(statusValueAfter(targets(), 'park'), { value: 'stuck' })
  assert.ok(RUN_STATUSES.includes(runStatusOf(of, withStatus('anything'))))
})

test("P9 silence counts only from the start of the row's server: no owner is presumed dead right after an outage", () => {
  const beat = { heartbeatAt: NOW - 20 * MINUTE }
  assert.equal(livenessOf(mapping(), beat), 'silent')
  assert.equal(livenessOf(mapping(), beat, { serverStartedAt: NOW - 4 * MINUTE }), 'unknown')
  assert.equal(livenessOf(mapping(), beat, { serverStartedAt: NOW - 6 * MINUTE }), 'silent')
  assert.equal(
    livenessOf(mapping(), { heartbeatAt: NOW + MINUTE }),
    'present',
    'a clock that is ahead',
  )
})

test('a run without a heartbeat has no known owner; a target without one is measured from its claim, or is silent at once', () => {
  assert.equal(livenessOf(mapping(), {}), null)
  assert.equal(livenessOf(targets(), { status: 'busy', startedAt: null }), 'silent')
  assert.equal(livenessOf(targets(), { status: 'busy', startedAt: NOW - MINUTE }), 'present')
  assert.equal(livenessOf(targets(), { status: 'busy' }), 'silent')
  const told = { ...NO_RESULTS, alive: false }
  assert.equal(
    livenessOf(mapping(), { heartbeatAt: NOW }, { callbackResults: told }),
    'gone',
    'alive() knows better',
  )
})

test('what a row has no number for is unknown in its progress', () => {
  const progressOf = (given: Partial<AdoptedRow>) =>
    resolveRow(table(mapping()), row(given), null, facts()).run.progress
  assert.deepEqual(progressOf({ done: 3 }), { done: 3, total: null })
  assert.deepEqual(progressOf({ done: 3, total: 12 }), { done: 3, total: 12 })
  assert.deepEqual(progressOf({ total: 12 }), { done: null, total: 12 })
  assert.equal(progressOf({}), null)
})

test('a reopened row has progressed if any timestamp is newer; a date-only start is inconclusive', () => {
  const moved = (given: Partial<AdoptedRow>, at: number) =>
    resolveRow(table(mapping()), row(given), null, facts({ reopened: { at, status: null } }))
      .hasMoved
  const began = { startedAt: NOW - 30 * MINUTE }
  assert.equal(moved(began, NOW - 20 * MINUTE), false)
  assert.equal(moved(began, NOW - 40 * MINUTE), true)
  const day = { startedAt: NOW + 600 * MINUTE, snapshot: { at: '2027-01-15' } }
  assert.equal(moved(day, NOW - 20 * MINUTE), false)
  assert.equal(moved(day, NOW - 24 * 60 * MINUTE), true, 'it began on a later day')
})

test('activity comes from columns that change with the work; the heartbeat is used only if none is mapped', () => {
  const beats = { heartbeatAt: NOW, activityAt: NOW - 20 * MINUTE }
  const columns = { id: 'id', status: 's', heartbeatAt: 'b', activityAt: 'a' }
  const last = (of: Mapping) => resolveRow(table(of), row(beats), null, facts()).run.lastActivityAt
  assert.equal(last(mapping({ columns })), NOW - 20 * MINUTE)
  assert.equal(last(mapping()), NOW)
  const told = { ...NO_RESULTS, filesAt: NOW - MINUTE }
  assert.equal(
    resolveRow(table(mapping()), row(), null, facts({ callbackResults: told })).run.lastActivityAt,
    NOW - MINUTE,
  )
})

test('a start or activity newer than the heartbeat counts as alive; a future timestamp does not', () => {
  const columns = { id: 'id', status: 's', startedAt: 'st', heartbeatAt: 'b', activityAt: 'a' }
  const beat = { heartbeatAt: NOW - 120 * MINUTE }
  const sign = (given: Partial<AdoptedRow>) =>
    livenessOf(mapping({ columns }), { ...beat, ...given })
  assert.equal(sign({}), 'silent')
  assert.equal(sign({ startedAt: NOW - MINUTE }), 'present')
  assert.equal(sign({ activityAt: NOW - MINUTE }), 'present')
  assert.equal(sign({ startedAt: NOW + MINUTE }), 'present', 'a clock that is ahead')
  assert.equal(sign({ startedAt: NOW + 600 * MINUTE }), 'silent', 'the end of the day')
})

test('if alive() fails, liveness is unknown unless the heartbeat is fresh', () => {
  const told = { ...NO_RESULTS, alive: 'unanswered' as const }
  assert.equal(livenessOf(mapping(), {}, { callbackResults: told }), 'unknown')
  assert.equal(
    livenessOf(mapping(), { heartbeatAt: NOW - 60 * MINUTE }, { callbackResults: told }),
    'unknown',
  )
  assert.equal(livenessOf(mapping(), { heartbeatAt: NOW }, { callbackResults: told }), 'present')
  assert.equal(livenessOf(targets(), { status: 'busy' }, { callbackResults: told }), 'unknown')
})

test('the lease comes from the current policy of the source', () => {
  const beat = { heartbeatAt: NOW - 20 * MINUTE }
  const policyOf: RowFacts['policyOf'] = ({ source, policy }) =>
    source === 'jobs' ? { ...policy, leaseMs: 180 * MINUTE } : policy
  assert.equal(livenessOf(mapping(), beat, { policyOf }), 'present')
  const { policy } = resolveRow(table(mapping()), row(beat), null, facts({ policyOf })).run
  assert.equal(policy.maxSilenceMs, 180 * MINUTE, 'between two beats nothing more is known')
  assert.equal(livenessOf(targets(), { status: 'busy', ...beat }, { policyOf }), 'present')
  assert.equal(livenessOf(mapping(), { ...beat, source: 'other' }, { policyOf }), 'silent')
})

test('a sentence about a row is one line of bounded length, whatever its id and owner contain', () => {
  const hostile = {
    key: 'x\n\u001b]52;c;aGk=\u0007\u2028',
    owner: `h\u202e\u001b[2J${'y'.repeat(500)}`,
  }
  const { observation } = resolveRow(
    table(mapping()),
    row({ ...hostile, heartbeatAt: NOW }),
    null,
    facts(),
  )
  const { label, host } = observation!.evidence
  assert.match(label!, /^row x \]52;c;aGk= of jobs \(h \[2Jy+…\)$/)
  assert.ok(label!.length < 250 && host.length <= 100)
})

test('a row has ids of its own as a run, a target and a worker, the same in every process', () => {
  const { run, target, observation } = resolveRow(
    table(mapping()),
    row({ heartbeatAt: NOW }),
    null,
    facts(),
  )
  const ids = [run.id, target.id, observation!.worker.id]
  assert.ok(ids.every((id) => isId(id) && id[14] === '8'))
  assert.equal(new Set(ids).size, 3)
  assert.equal(run.id, 'fcaa2e97-d289-823d-ac5b-58adda1d1d42', 'links to it stay good')
})

test('a table of targets is one run: running while anything is, and never dead', () => {
  const of = targets()
  const status = (...words: string[]) =>
    toTableRun(
      of,
      words.map((word) => ({ ...withStatus(word), count: 2 })),
      [],
      NOW,
    ).status
  assert.equal(status(), 'queued')
  assert.equal(status('open'), 'queued')
  assert.equal(status('open', 'done'), 'interrupted')
  assert.equal(status('open', 'done', 'BUSY'), 'running')
  assert.equal(status('done'), 'succeeded')
  assert.equal(status('done', 'stuck'), 'failed')
})

describe('a process that a row names', () => {
  const here = { host: hostname(), pid: process.pid }
  const dead = { host: hostname(), pid: 2 ** 22 + 1 }
  const withProcess = (columns: Partial<AdoptedColumns> = {}): Mapping =>
    mapping({ columns: { id: 'id', status: 'status', host: 'host', pid: 'pid', ...columns } })
  const stateOf = (given: Partial<AdoptedRow>): string => rowProcessState(row(given), Date.now())

  test('is looked for on its own host alone', () => {
    const startedAt = Date.now()
    assert.equal(stateOf({ ...here, startedAt }), 'alive')
    assert.equal(stateOf({ ...here, host: hostname().toUpperCase(), startedAt }), 'alive')
    assert.equal(stateOf({ ...dead, startedAt }), 'gone')
    assert.equal(stateOf({ ...dead, host: 'another-host', startedAt }), 'unknown')
    assert.equal(stateOf({ ...dead, host: null, startedAt }), 'unknown')
    assert.equal(stateOf({ ...here, pid: null, startedAt }), 'unknown')
  })

  test('is gone where another process has its id now: that started after the row was written last', () => {
    const before = Date.now() - 3_600_000 - process.uptime() * 1_000
    assert.equal(stateOf({ ...here, startedAt: before }), 'gone')
    assert.equal(stateOf({ ...here, startedAt: before, heartbeatAt: Date.now() }), 'alive')
    assert.equal(stateOf({ ...here, startedAt: null }), 'alive')
  })

  test('makes a row without heartbeat alive or gone, and a silent one gone at once', () => {
    const times = { startedAt: Date.now() - 20 * MINUTE }
    const now = { now: Date.now() }
    const of = withProcess()
    const other = { host: 'another-host', pid: 1 }
    assert.equal(livenessOf(of, { ...dead, ...times }, now), 'gone')
    assert.equal(livenessOf(of, { ...here, startedAt: now.now }, now), 'present')
    assert.equal(livenessOf(of, { ...other, ...times }, now), null)
    const beating = withProcess({ heartbeatAt: 'beat' })
    const { leaseMs } = beating.policy
    const recent = { ...times, heartbeatAt: now.now - leaseMs / 3 }
    const late = { ...times, heartbeatAt: now.now - leaseMs * 0.9 }
    assert.equal(livenessOf(beating, { ...dead, ...late }, now), 'gone')
    assert.equal(livenessOf(beating, { ...other, ...late }, now), 'present')
    // It may run in a container that has the same host name.
    assert.equal(livenessOf(beating, { ...dead, ...recent }, now), 'present')
    // It may hang, or be another process.
    const silent = { startedAt: null, heartbeatAt: now.now - MINUTE / 2 }
    const strict = { ...beating, policy: { ...beating.policy, leaseMs: 10_000 } }
    assert.equal(livenessOf(strict, { ...here, ...silent }, now), 'silent')
  })

  test('is named in the reason', () => {
    const now = Date.now()
    const evidenceOf = (given: Partial<AdoptedRow>) =>
      resolveRow(
        table(withProcess()),
        row({ ...given, startedAt: now - 5_000 }),
        null,
        facts({ now }),
      ).observation!.evidence
    const because = (given: Partial<AdoptedRow>): string =>
      assessLiveness(evidenceOf(given), TRUSTED_OBSERVER).because
    assert.equal(
      because(dead),
      `process ${dead.pid} on ${dead.host}, of row 7 of jobs, no longer exists (last activity 5 s ago)`,
    )
    assert.equal(
      because(here),
      `row 7 of jobs: a process has the id ${here.pid}, last activity 5 s ago`,
    )
    assert.deepEqual(evidenceSentences(evidenceOf(here)), [
      `A process with the id ${here.pid} exists on ${here.host}.`,
    ])
    assert.deepEqual(evidenceSentences(evidenceOf(dead)), [
      `Its process ${dead.pid} no longer exists on ${dead.host}.`,
    ])
  })
})
