import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../../core/model/policy.ts'
import type { AdoptedOptions, Mapping } from './mapping.ts'
import { readMapping } from './read-mapping.ts'

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

function mistakesOf(options: unknown, name = 'courses'): string[] {
  const mistakes: string[] = []
  const mapping = readMapping(name, options, DEFAULT_POLICY, mistakes)
  assert.equal(mapping === null, mistakes.length > 0)
  return mistakes
}

/** Of an entry that is right but for this. */
function oneMistake(change: Record<string, unknown>, of: AdoptedOptions = RUNS): string {
  const mistakes = mistakesOf({ ...of, ...change })
  assert.equal(mistakes.length, 1, mistakes.join('\n'))
  return mistakes[0]!
}

function read(options: AdoptedOptions, base = DEFAULT_POLICY): Mapping {
  const mistakes: string[] = []
  const mapping = readMapping('courses', options, base, mistakes)
  assert.deepEqual(mistakes, [])
  return mapping!
}

test('a table is read as it was written, with what was left out', () => {
  const { policy, words, ...mapping } = read(RUNS)
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
    isZoneNamed: false,
    ...functions,
    onResume: undefined,
  })
  assert.deepEqual(words, {
    active: ['running', 'PENDING'],
    failed: ['failed'],
    queued: [],
    interrupted: [],
    succeeded: [],
    cancelled: [],
    abandoned: [],
    planned: [],
    stuck: [],
    parked: [],
  })
  assert.equal(policy.maxRetries, 0)
  assert.equal(read({ ...RUNS, table: 'crawl_runs' }).schema, null)
  const columns = { ...RUNS.columns, owner: undefined }
  assert.ok(!('owner' in read({ ...RUNS, columns }).columns))
})

test('all mistakes are named at once, each with its place and what was probably meant', () => {
  const mistakes = mistakesOf({
    tabel: 'runs',
    table: 'a.b.c',
    kind: 'target',
    db: 'mysql://me:hunter2@h/x',
    columns: { id: 'id"; DROP', heartbeat: 'beat_at', page: 7 },
    statuses: { active: [], planned: '', failed: ['x', 3] },
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
    'adopted.courses.columns.status must be a name',
    'adopted.courses.columns.page must be a name',
    'adopted.courses.statuses.active must be a word, or a list of words',
    'adopted.courses.statuses.planned must be a word, or a list of words',
    'adopted.courses.statuses.failed must be a word, or a list of words',
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

test('what is no entry at all is said in few words', () => {
  assert.deepEqual(mistakesOf(null), ['adopted.courses must be an object'])
  assert.deepEqual(mistakesOf({ table: 'runs' }), [
    'adopted.courses.columns must be an object',
    'adopted.courses.statuses must be an object',
  ])
  assert.match(mistakesOf(RUNS, 'my\nruns').join(), /^adopted\["my\\nruns"\]: its name must be/)
})

test('a checkpoint has a column of its own', () => {
  const columns = { id: 'id', status: 'status', done: 'page', checkpoint: 'page' }
  assert.equal(
    oneMistake({ columns }),
    'adopted.courses.columns.checkpoint is the same column as done: it counts there already',
  )
})

test('a word has one meaning, in any case', () => {
  const statuses = { active: ['Running', 'RUNNING'], failed: 'error', cancelled: ['x', 'running'] }
  assert.equal(
    oneMistake({ statuses }),
    'adopted.courses.statuses: "running" cannot mean both active and cancelled',
  )
})

test('runs and targets have each their own columns and words', () => {
  assert.match(oneMistake({ columns: { ...RUNS.columns, page: 'page' } }), /columns\.page is of/)
  assert.match(oneMistake({ statuses: { ...RUNS.statuses, stuck: 'x' } }), /statuses\.stuck is of/)
  assert.match(
    oneMistake({ statuses: { ...TARGETS.statuses, queued: 'WAITING' } }, TARGETS),
    /statuses\.queued is of tables of runs; targets that wait are planned/,
  )
  const { planned: _planned, ...without } = TARGETS.statuses
  assert.match(oneMistake({ statuses: without }, TARGETS), /statuses\.planned must be a word/)
  assert.equal(read(TARGETS).kind, 'targets')
})

test('columns that are written are columns of their own', () => {
  const columns = { ...RUNS.columns, finishedAt: 'error' }
  assert.match(oneMistake({ columns }), /columns\.error is the same column as finishedAt/)
  read({ ...RUNS, columns: { ...RUNS.columns, source: 'id', activityAt: 'started_at' } })
})

test('what goes on needs a word for what waits', () => {
  const onResume = (): void => {}
  const waiting = { ...RUNS.statuses, queued: 'queued' }
  assert.match(oneMistake({ onResume }), /\.onResume needs a word .* statuses\.queued/)
  assert.equal(read({ ...RUNS, statuses: waiting, onResume }).onResume, onResume)
  assert.equal(read({ ...TARGETS, onResume }).onResume, onResume)
  for (const option of ['onCrash', 'onStalled'] as const) {
    const policy = { [option]: 'resume' } as const
    assert.match(oneMistake({ policy }), new RegExp(`policy\\.${option}: 'resume' needs a word`))
    read({ ...RUNS, statuses: waiting, policy })
  }
})

test('a checkpoint is in a file or in a column', () => {
  const columns = { ...RUNS.columns, checkpoint: 'state' }
  assert.match(oneMistake({ columns, checkpoint: () => 'x' }), /leave one of them out/)
})

test('times of a named zone are understood, an offset is refused', () => {
  for (const timeZone of ['Europe/Berlin', 'UTC', 'America/New_York'])
    assert.equal(read({ ...RUNS, timeZone }).timeZone, timeZone)
  for (const timeZone of ['+02:00', '', 'Berlin', 7, "UTC'; DROP"])
    assert.match(oneMistake({ timeZone }), /timeZone must be the name/)
})

test('a table is judged by defaults of its own, then by its own policy', () => {
  const base = { ...DEFAULT_POLICY, staleAfterMs: 300_000, onStale: 'fail' } as const
  const { leaseMs, maxRetries, onCrash, staleAfterMs } = read(RUNS, base).policy
  assert.deepEqual([leaseMs, maxRetries, onCrash, staleAfterMs], [300_000, 0, 'fail', 300_000])
  assert.equal(read(TARGETS).policy.onCrash, 'resume')
  const interrupted = { ...RUNS.statuses, interrupted: 'stopped' }
  assert.equal(read({ ...RUNS, statuses: interrupted }).policy.onCrash, 'resume')
  const policy = { lease: '60m', onCrash: 'hold' } as const
  const held = read({ ...TARGETS, policy }).policy
  assert.deepEqual([held.leaseMs, held.onCrash, held.maxRetries], [3_600_000, 'hold', 0])
})

test('what cannot be done to a table is refused in its policy', () => {
  assert.match(oneMistake({ policy: { maxRetries: 1 } }), /maxRetries must be 0: nothing is ever/)
  assert.match(oneMistake({ policy: { onCrash: 'hold' } }), /'hold' is of tables of targets/)
  const statuses = { active: 'a', planned: 'b' }
  const hold = { policy: { onCrash: 'hold' }, statuses }
  assert.match(oneMistake(hold, TARGETS), /'hold' needs a word in statuses\.stuck/)
})
