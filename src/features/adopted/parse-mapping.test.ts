import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../../core/model/policy.ts'
import type { AdoptedOptions, Mapping } from './mapping.ts'
import { parseMapping } from './parse-mapping.ts'
import { valuesOf } from '../../testing/open-test-table.ts'

const RUNS: AdoptedOptions = {
  table: 'course_crawler.crawl_runs',
  columns: { id: 'id', status: 'status', startedAt: 'started_at', error: 'error' },
  statuses: { active: ['running', 'PENDING'], failed: 'failed' },
}
const TARGETS: AdoptedOptions = {
  table: 'yp_targets',
  kind: 'targets',
  columns: { id: 'id', status: 'status', key: 'id', page: 'page_current', owner: 'claimed_by' },
  statuses: { active: 'IN_PROGRESS', planned: 'PLANNED', stuck: 'STUCK' },
}

function configErrors(options: unknown, name = 'courses'): string[] {
  const mistakes: string[] = []
  const mapping = parseMapping(name, options, DEFAULT_POLICY, mistakes)
  assert.equal(mapping === null, mistakes.length > 0)
  return mistakes
}

/** Of an entry that is right but for this. */
function singleConfigError(change: Record<string, unknown>, of: AdoptedOptions = RUNS): string {
  const mistakes = configErrors({ ...of, ...change })
  assert.equal(mistakes.length, 1, mistakes.join('\n'))
  return mistakes[0]!
}

function read(options: AdoptedOptions, base = DEFAULT_POLICY): Mapping {
  const mistakes: string[] = []
  const mapping = parseMapping('courses', options, base, mistakes)
  assert.deepEqual(mistakes, [])
  return mapping!
}

test('a mapping is read as written, with defaults filled in', () => {
  const { policy, statusValues, deleteBlocked, ...mapping } = read(RUNS)
  assert.match(deleteBlocked!, /set adopted\.courses\.delete to true/)
  assert.equal(read({ ...RUNS, delete: true }).deleteBlocked, null)
  const functions = { checkpoint: undefined, outputDir: undefined, alive: undefined }
  assert.deepEqual(mapping, {
    name: 'courses',
    kind: 'runs',
    schema: 'course_crawler',
    table: 'crawl_runs',
    db: null,
    filesIn: undefined,
    columns: RUNS.columns,
    timeZone: 'UTC',
    hasExplicitTimeZone: false,
    ...functions,
    onResume: undefined,
  })
  assert.deepEqual(statusValues, {
    active: valuesOf('running', 'PENDING'),
    failed: valuesOf('failed'),
    queued: [],
    interrupted: [],
    succeeded: [],
    cancelled: [],
    abandoned: [],
    planned: [],
    stuck: [],
    parked: [],
  })
  assert.equal(policy.runRetries, 0)
  assert.equal(read({ ...RUNS, table: 'crawl_runs' }).schema, null)
  const columns = { ...RUNS.columns, owner: undefined }
  assert.ok(!('owner' in read({ ...RUNS, columns }).columns))
})

test('reports all errors at once, each with its path and a suggestion', () => {
  const mistakes = configErrors({
    tabel: 'runs',
    table: 'a.b.c',
    kind: 'target',
    db: 'mysql://me:hunter2@h/x',
    columns: { id: 'id"; DROP', heartbeat: 'beat_at', page: 7 },
    statuses: { active: [], planned: '', failed: ['x', 3.5] },
    checkpoint: 'checkpoints/7.json',
    alive: true,
    policy: { leese: '1m', lease: 'long' },
    timeZone: 'Mars/Olympus',
  })
  const begin = (text: string): boolean => mistakes.some((one) => one.startsWith(text))
  for (const text of [
    'adopted.courses has no tabel; did you mean table?',
    'adopted.courses.table must be a name of letters',
    "adopted.courses.kind must be 'runs' or 'targets'; did you mean targets?",
    'adopted.courses.db must be sqlite:PATH',
    'adopted.courses.columns has no heartbeat; did you mean heartbeatAt?',
    'adopted.courses.columns.id must be a name of letters',
    'adopted.courses.columns.status is missing: it must be a name',
    'adopted.courses.columns.page must be a name',
    'adopted.courses.statuses.active must be a word, a whole number, true or false, or a list',
    'adopted.courses.statuses.planned must be a word, a whole number, true or false, or a list',
    'adopted.courses.statuses.failed must be a word, a whole number, true or false, or a list',
    'adopted.courses.checkpoint must be a function of the row',
    'adopted.courses.alive must be a function of the row',
    'adopted.courses.policy has no leese; did you mean lease?',
    'adopted.courses.policy.lease must be a duration',
    'adopted.courses.timeZone must be the name of a time zone',
  ]) {
    assert.ok(begin(text), `${text} is not among\n${mistakes.join('\n')}`)
  }
  assert.equal(mistakes.length, 16)
  assert.doesNotMatch(mistakes.join(), /hunter2|DROP/)
})

test('a value that is no mapping is rejected with a short message', () => {
  assert.deepEqual(configErrors(null), ['adopted.courses must be an object'])
  assert.deepEqual(configErrors({ table: 'runs' }), [
    'adopted.courses.columns is missing: it must be an object',
    'adopted.courses.statuses is missing: it must be an object',
  ])
  assert.match(configErrors(RUNS, 'my\nruns').join(), /^adopted\["my\\nruns"\]: its name must be/)
})

test('a checkpoint has a column of its own', () => {
  const columns = { id: 'id', status: 'status', done: 'page', checkpoint: 'page' }
  assert.equal(
    singleConfigError({ columns }),
    'adopted.courses.columns.checkpoint is the same column as done: it counts there already',
  )
})

test('a status value has one meaning, ignoring case', () => {
  const statuses = { active: ['Running', 'RUNNING'], failed: 'error', cancelled: ['x', 'running'] }
  assert.equal(
    singleConfigError({ statuses }),
    'adopted.courses.statuses: "running" cannot mean both active and cancelled',
  )
})

test('runs and targets each have their own columns and statuses', () => {
  assert.match(
    singleConfigError({ columns: { ...RUNS.columns, page: 'page' } }),
    /columns\.page is of/,
  )
  assert.match(
    singleConfigError({ statuses: { ...RUNS.statuses, stuck: 'x' } }),
    /statuses\.stuck is of/,
  )
  assert.match(
    singleConfigError({ statuses: { ...TARGETS.statuses, queued: 'WAITING' } }, TARGETS),
    /statuses\.queued is of tables of runs; targets that wait are planned/,
  )
  const { planned: _planned, ...without } = TARGETS.statuses
  assert.match(
    singleConfigError({ statuses: without }, TARGETS),
    /statuses\.planned must be a word/,
  )
  assert.equal(read(TARGETS).kind, 'targets')
})

test('columns that are written are columns of their own', () => {
  const columns = { ...RUNS.columns, finishedAt: 'error' }
  assert.match(singleConfigError({ columns }), /columns\.error is the same column as finishedAt/)
  read({ ...RUNS, columns: { ...RUNS.columns, source: 'id', activityAt: 'started_at' } })
})

test('resuming requires a waiting status', () => {
  const onResume = (): void => {}
  const waiting = { ...RUNS.statuses, queued: 'queued' }
  assert.match(singleConfigError({ onResume }), /\.onResume needs a word .* statuses\.queued/)
  assert.equal(read({ ...RUNS, statuses: waiting, onResume }).onResume, onResume)
  assert.equal(read({ ...TARGETS, onResume }).onResume, onResume)
  for (const option of ['onCrash', 'onStalled'] as const) {
    const policy = { [option]: 'resume' } as const
    assert.match(
      singleConfigError({ policy }),
      new RegExp(`policy\\.${option}: 'resume' needs a word`),
    )
    read({ ...RUNS, statuses: waiting, policy })
  }
})

test('a checkpoint is in a file or in a column', () => {
  const columns = { ...RUNS.columns, checkpoint: 'state' }
  assert.match(singleConfigError({ columns, checkpoint: () => 'x' }), /leave one of them out/)
})

test('times of a named zone are understood, an offset is refused', () => {
  for (const timeZone of ['Europe/Berlin', 'UTC', 'America/New_York'])
    assert.equal(read({ ...RUNS, timeZone }).timeZone, timeZone)
  for (const timeZone of ['+02:00', '', 'Berlin', 7, "UTC'; DROP"])
    assert.match(singleConfigError({ timeZone }), /timeZone must be the name/)
})

test("a table's policy is merged over the defaults for tables", () => {
  const base = { ...DEFAULT_POLICY, staleAfterMs: 300_000, onStale: 'fail' } as const
  const { leaseMs, runRetries, onCrash, staleAfterMs } = read(RUNS, base).policy
  assert.deepEqual([leaseMs, runRetries, onCrash, staleAfterMs], [300_000, 0, 'fail', 300_000])
  assert.equal(read(TARGETS).policy.onCrash, 'resume')
  const interrupted = { ...RUNS.statuses, interrupted: 'stopped' }
  assert.equal(read({ ...RUNS, statuses: interrupted }).policy.onCrash, 'resume')
  const policy = { lease: '60m', onCrash: 'hold' } as const
  const held = read({ ...TARGETS, policy }).policy
  assert.deepEqual([held.leaseMs, held.onCrash, held.runRetries], [3_600_000, 'hold', 0])
})

test('a policy action that the table does not support is rejected', () => {
  assert.match(
    singleConfigError({ policy: { runRetries: 1 } }),
    /runRetries must be 0: nothing is ever/,
  )
  assert.match(singleConfigError({ policy: { onCrash: 'hold' } }), /'hold' is of tables of targets/)
  const statuses = { active: 'a', planned: 'b' }
  const hold = { policy: { onCrash: 'hold' }, statuses }
  assert.match(singleConfigError(hold, TARGETS), /'hold' needs a word in statuses\.stuck/)
})
