import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StoreUnavailableError, UsageError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import type { Inspection } from '../../../features/inspection/store/store.ts'
import type { Worker as WorkerView } from '../../../presenters/records.ts'
import { TextWriter } from '../../../lib/terminal/text-writer.ts'
import { reachedFinding, schemaFinding, writableFinding, serverFindings } from './database.ts'
import {
  durabilityFinding,
  diskFinding,
  fileSystemFinding,
  formatBytes,
  sizeFinding,
  walFinding,
} from './storage.ts'
import {
  exitCodeOf,
  fromError,
  note,
  ok,
  problem,
  warning,
  worst,
} from '../../../contracts/finding.ts'
import { trackingFinding } from '../../../features/commands/check.ts'
import { guaranteeFindings } from '../../../features/inspection/guarantees.ts'
import { runtimeFinding } from './configuration.ts'
import { printFindings, summarize } from '../commands/doctor.ts'
import { workersFinding } from './workers.ts'
import {
  type PostgresFacts,
  type SqliteFacts,
} from '../../../features/inspection/store/database-info.ts'

const MB = 1_000_000
const GB = 1_000 * MB
const advice = { why: 'because' }

const SERVER: PostgresFacts = {
  name: 'postgres',
  serverVersion: '18.1',
  roundTripMs: 1,
  clockAheadMs: 3,
  pooled: false,
  inRecovery: false,
  readOnly: false,
  mayWrite: true,
  synchronousCommit: 'on',
  fsync: 'on',
  fullPageWrites: 'on',
  connections: { max: 97, used: 12, own: 0 },
  perWorker: 4,
  bytes: 8 * MB,
}
const FILE: SqliteFacts = {
  name: 'sqlite',
  path: '/data/unstuck.db',
  roundTripMs: 1,
  journalMode: 'wal',
  readOnly: null,
  network: null,
  bytes: 4096,
  walBytes: 0,
}

test('processes that cannot be found are a note with what helps, not a failure', () => {
  assert.equal(trackingFinding('cgroup').result, 'ok')
  assert.equal(trackingFinding('limit').result, 'ok')
  const weak = trackingFinding('environment')
  assert.equal(weak.result, 'note')
  assert.match(weak.found, /cannot be found here/)
  assert.match(weak.fix!, /prlimit.*Delegate=yes/)
  assert.match(trackingFinding('group').found, /no \/proc/)
})

test('the exit code is 0, 3 for what a person should see, or that of what stood in the way', () => {
  const away = fromError('database', new StoreUnavailableError('away'), advice)
  const wrong = fromError('config', new UsageError('wrong'), advice)
  const newer = problem('schema', 'newer', { ...advice, exitCode: 9 })

  assert.equal(exitCodeOf([]), 0)
  assert.equal(exitCodeOf([ok('a', ''), note('b', '', advice)]), 0)
  assert.equal(exitCodeOf([ok('a', ''), warning('b', '', advice)]), 3)
  assert.equal(exitCodeOf([problem('b', '', advice)]), 3)
  assert.equal(exitCodeOf([newer, warning('b', '', advice)]), 9)
  assert.equal(exitCodeOf([newer, away]), 7)
  assert.equal(exitCodeOf([away, wrong]), 2)
  assert.equal(exitCodeOf([fromError('x', new TypeError('a bug'), advice)]), 3)
  assert.equal(worst([note('a', '', advice), problem('b', '', advice), ok('c', '')]), 'problem')
})

for (const [node, sqlite, result] of [
  ['24.15.0', '3.51.3', 'ok'],
  ['26.0.0', '3.60.0', 'ok'],
  ['24.14.9', '3.51.3', 'problem'],
  ['22.99.0', '3.51.3', 'problem'],
  ['24.15.0', '3.51.2', 'problem'],
  ['24.15.0', '3.9.9', 'problem'],
  ['24.15.0', undefined, 'problem'],
] as const) {
  test(`Node ${node} with SQLite ${sqlite}: ${result}`, () => {
    assert.equal(runtimeFinding(node, sqlite).result, result)
  })
}

for (const [free, total, result] of [
  [500 * GB, 1_000 * GB, 'ok'],
  [1 * GB, 10 * GB, 'ok'],
  [0.9 * GB, 10 * GB, 'warning'],
  [49 * GB, 1_000 * GB, 'warning'],
  [100 * MB, 1 * GB, 'warning'],
  [99 * MB, 1 * GB, 'problem'],
  [0, 1 * GB, 'problem'],
] as const) {
  test(`${formatBytes(free)} of ${formatBytes(total)} free: ${result}`, () => {
    const finding = diskFinding({ holds: 'the journals', folder: '/data', free, total })
    assert.equal(finding.result, result)
  })
}

for (const [facts, result, found] of [
  [{}, 'ok', /synchronous_commit = on, fsync = on/],
  [{ synchronousCommit: 'remote_apply' }, 'ok', /remote_apply/],
  [{ synchronousCommit: 'off' }, 'warning', /synchronous_commit off/],
  [{ synchronousCommit: 'off', pooled: true }, 'problem', /pooler/],
  [{ fsync: 'off', synchronousCommit: 'off' }, 'problem', /fsync off/],
  [{ fullPageWrites: 'off' }, 'warning', /full_page_writes off/],
  [{ fsync: null, synchronousCommit: null }, 'note', /does not report/],
] as const) {
  test(`durability of a server with ${JSON.stringify(facts)}: ${result}`, () => {
    const finding = durabilityFinding({ ...SERVER, ...facts }, null)
    assert.equal(finding.result, result)
    assert.match(finding.found, found)
  })
}

test('a file outside WAL mode is reported, with the settings of the own connections', () => {
  const own = { journal_mode: 'wal', synchronous: 'full' }
  assert.match(durabilityFinding(FILE, own).found, /^journal_mode = wal, synchronous = full: /)
  const finding = durabilityFinding({ ...FILE, journalMode: 'delete' }, own)
  assert.equal(finding.result, 'warning')
  assert.match(finding.details.join(), /synchronous = full/)
})

for (const [facts, check, result] of [
  [{}, 'clock', 'ok'],
  [{ clockAheadMs: 2_001 }, 'clock', 'warning'],
  [{ clockAheadMs: -2_001 }, 'clock', 'warning'],
  [{ clockAheadMs: 2_001, roundTripMs: 800 }, 'clock', 'ok'],
  [{ pooled: true }, 'pooler', 'note'],
  [{ connections: { max: 100, used: 75, own: 40 } }, 'connections', 'ok'],
  [{ connections: { max: 100, used: 80, own: 0 } }, 'connections', 'note'],
  [{ connections: { max: 100, used: 97, own: 60 } }, 'connections', 'warning'],
  [{ connections: { max: 5, used: 9, own: 9 } }, 'connections', 'warning'],
  [{ connections: null }, 'connections', 'ok'],
] as const) {
  test(`a server with ${JSON.stringify(facts)}: ${check} ${result}`, () => {
    const findings = serverFindings({ ...SERVER, ...facts }, 0)
    assert.equal(findings.find((finding) => finding.check === check)?.result, result)
  })
}

test('workers whose connections would not fit beside those of other programs are a warning', () => {
  const look = (used: number, own: number, workers: number) =>
    serverFindings({ ...SERVER, connections: { max: 97, used, own } }, workers).find(
      ({ check }) => check === 'connections',
    )!
  // Ten workers, of which some rest: 60 connections of others, 15 of theirs.
  const short = look(75, 15, 10)
  assert.equal(short.result, 'warning')
  assert.match(short.found, /10 workers may need 40 .* other programs leave 37 of 97/)
  assert.match(short.fix!, /max_connections/)
  assert.equal(look(72, 15, 10).result, 'ok')
})

test('a login that cannot write ends with 7 and the reason', () => {
  assert.equal(writableFinding('x', SERVER).result, 'ok')
  assert.equal(writableFinding('x', FILE).result, 'ok')
  for (const [facts, because] of [
    [{ ...SERVER, inRecovery: true, readOnly: true }, /standby/],
    [{ ...SERVER, readOnly: true }, /read-only/],
    [{ ...SERVER, mayWrite: false }, /rights/],
    [{ ...FILE, readOnly: 'EACCES: permission denied' }, /EACCES/],
  ] as const) {
    const finding = writableFinding('x', facts)
    assert.match(finding.found, because)
    assert.deepEqual([finding.result, exitCodeOf([finding])], ['problem', 7])
  }
})

test('a slow database is reported before it causes errors', () => {
  const results = [1, 60, 600].map(
    (roundTripMs) => reachedFinding('x', { ...SERVER, roundTripMs }).result,
  )
  assert.deepEqual(results, ['ok', 'note', 'warning'])
})

test('a network file system ends with 7', () => {
  assert.equal(fileSystemFinding(FILE).result, 'ok')
  assert.equal(exitCodeOf([fileSystemFinding({ ...FILE, network: 'NFS' })]), 7)
})

test('a -wal file that cannot be copied back is a warning, a big one that can be is not', () => {
  assert.equal(sizeFinding({ ...FILE, walBytes: 101 * MB }).result, 'ok')
  assert.equal(walFinding(FILE, null).result, 'ok')
  const blocked = walFinding(FILE, { bytes: 40 * MB, pages: 9_000, left: 8_500 })
  assert.equal(blocked.result, 'warning')
  assert.match(blocked.found, /40 MB: 8500 of its 9000 pages/)
  assert.equal(sizeFinding({ ...SERVER, bytes: null }).result, 'ok')
})

test('a schema is missing, older, current, newer or of a pre-release', () => {
  const info = { where: 'x', known: 102, engine: FILE }
  const results = [
    schemaFinding({ ...info, version: 0, pending: ['a', 'b', 'c'] }),
    schemaFinding({ ...info, version: 101, pending: ['c'] }),
    schemaFinding({ ...info, version: 102, pending: [] }),
    schemaFinding({ ...info, version: 103, pending: [] }),
    schemaFinding({ ...info, version: 9, pending: [] }),
  ]
  assert.deepEqual(
    results.map((finding) => [finding.result, exitCodeOf([finding])]),
    [
      ['note', 0],
      ['warning', 3],
      ['ok', 0],
      ['problem', 9],
      ['problem', 9],
    ],
  )
  assert.deepEqual(results[1]!.details, ['1 migration pending: c'])
})

const NOW = Date.parse('2026-11-16T04:12:03.250Z')

function worker(given: Partial<WorkerView>, heartbeatAgeMs = 60_000): WorkerView {
  const lastHeartbeatAt = new Date(NOW - heartbeatAgeMs).toISOString()
  const facts = {
    id: newId(),
    source: 's',
    host: 'h',
    pid: 1,
    startedAt: lastHeartbeatAt,
    lastHeartbeatAt,
  }
  return {
    ...facts,
    label: null,
    liveness: 'present',
    because: 'its beats say so',
    targets: 1,
    ...given,
  }
}

test('a lost worker counts when it still holds something, from the first moment on', () => {
  const result = (...workers: WorkerView[]): string => workersFinding(workers).result
  assert.equal(result(), 'ok')
  assert.equal(result(worker({})), 'ok')
  assert.equal(result(worker({ liveness: 'gone', targets: 0 })), 'ok')
  assert.equal(result(worker({ liveness: 'gone' }, 100)), 'warning', 'as in `status`')
  assert.equal(result(worker({ liveness: 'unknown' })), 'ok')
  assert.equal(result(worker({ liveness: 'gone' })), 'warning')
  assert.equal(result(worker({}), worker({ liveness: 'silent', targets: 9 })), 'warning')
  assert.match(workersFinding([worker({ liveness: 'gone' })]).fix ?? '', /`unstuck recover`/)
})

test('owners of rows in tables of one’s own are not called workers', () => {
  const row = worker({ label: 'row 7 of jobs' })
  const lost = workersFinding([worker({ label: 'row 7 of jobs', liveness: 'silent' })])
  assert.match(workersFinding([row]).found, /^No worker is running, 1 row of your tables with a/)
  assert.match(workersFinding([row, worker({})]).found, /^1 worker running, 1 row of/)
  assert.equal(lost.found, '1 row of your tables whose owner is lost.')
  assert.doesNotMatch(`${lost.why} ${lost.fix}`, /worker/)
})

const HEALTHY: Inspection = {
  durability: {},
  counters: { checked: 3, unchecked: 0, mismatches: [] },
  duplicateLiveRuns: [],
  invalidClaims: [],
  withoutEndTime: [],
  leftoverLocks: [],
  blockedWal: null,
}

test('a long list of faults is cut, with the number of omitted ones', () => {
  const endless = Array.from({ length: 12 }, () => ({ run: newId(), source: 'shop' }))
  const finding = guaranteeFindings({ ...HEALTHY, withoutEndTime: endless }).find(
    (one) => one.check === 'ended-runs',
  )!
  assert.equal(finding.details.length, 6)
  assert.equal(finding.details[5], 'and 7 more')
})

test('counters that were not checked are not reported as correct', () => {
  const books = { checked: 3, unchecked: 2, mismatches: [] }
  const [finding] = guaranteeFindings({ ...HEALTHY, counters: books })
  assert.match(finding!.found, /3 runs match .* \(2 more were not counted/)
})

test('a problem is explained below its line, within 80 columns and without colour', () => {
  const writer = new TextWriter(80, false)
  const long =
    'The server runs with fsync off and has done so for longer than all of the logs remember.'
  printFindings(writer, [
    ok('runtime', 'Node 24.21.0, SQLite 3.53.4.'),
    problem('durability', long, { why: 'It matters.', fix: '`ALTER SYSTEM`', details: ['a'] }),
  ])
  assert.equal(
    writer.toString(),
    `2 checks: 1 problem.

RESULT   CHECK       FOUND
ok       runtime     Node 24.21.0, SQLite 3.53.4.
problem  durability  The server runs with fsync off and has done so for longer…

durability (problem)
The server runs with fsync off and has done so for longer than all of the logs
remember.
- a
Why it matters: It matters.
What to do: \`ALTER SYSTEM\`
`,
  )
  assert.equal(summarize([ok('a', ''), ok('b', '')]), 'All is well: 2 checks.')
})

test('sizes are printed in a fitting unit', () => {
  const told = [0, 999, 4_096, 115_000, 1_500_000, 85 * GB].map(formatBytes)
  assert.deepEqual(told, ['0 bytes', '999 bytes', '4.1 kB', '115 kB', '1.5 MB', '85 GB'])
})
