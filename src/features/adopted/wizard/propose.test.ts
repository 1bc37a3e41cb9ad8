import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { HOSTILE_TEXTS } from '../../../testing/hostile-text.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { createUserTable, runUserSql, USER_TABLES } from '../../../testing/user-tables.ts'
import { findTables } from './find-tables.ts'
import { valuesInCheck } from './status-values-sql.ts'
import type { ColumnType, FoundTable } from './columns.ts'
import type { AdoptedOptions } from '../mapping.ts'
import { propose, type RejectedTable, type Proposal } from './propose.ts'
import { parseMapping } from '../parse-mapping.ts'

type StatusCounts = Readonly<Record<string, number>> | readonly string[]

/** `id: 'uuid key'`; the words of a status by their counts, or in a list where a check or a type allows no others. */
function makeTable(
  name: string,
  columns: Record<string, string>,
  status: StatusCounts = {},
): FoundTable {
  const [table, schema] = name.split('.').reverse() as [string, string?]
  const isFixed = Array.isArray(status)
  return {
    schema: schema ?? null,
    table,
    readError: null,
    columns: Object.entries(columns).map(([name, said]) => {
      const [type, ...more] = said.split(' ') as [ColumnType, ...string[]]
      const isStatus = more.includes('status')
      const counts = isFixed ? [] : Object.entries(status)
      return {
        name,
        type,
        isPrimaryKey: more.includes('key'),
        allowedValues: isStatus && isFixed ? [...status] : null,
        values: isStatus ? counts.map(([value, count]) => ({ value, count })) : null,
      }
    }),
  }
}

function proposalFor(table: FoundTable, how?: Parameters<typeof propose>[1]): Proposal {
  const answer = propose(table, how)
  assert.ok(
    'options' in answer,
    `${answer.table} is passed over: ${(answer as RejectedTable).because}`,
  )
  const mistakes: string[] = []
  parseMapping('proposed', answer.options, DEFAULT_POLICY, mistakes)
  assert.deepEqual(mistakes, [])
  return answer
}

function rejectionOf(table: FoundTable): string {
  const answer = propose(table)
  assert.ok('because' in answer, `${answer.table} is proposed`)
  return answer.because
}

type Case = {
  what: string
  table: FoundTable
  gives: Omit<AdoptedOptions, 'table'>
}

const CASES: readonly Case[] = [
  {
    what: 'crawl runs in a schema of their own, with uuids',
    table: makeTable(
      'course_crawler.crawl_runs',
      {
        id: 'uuid key',
        course_id: 'text',
        status: 'text status',
        started_at: 'timestamptz',
        finished_at: 'timestamptz',
        error: 'text',
        extracted_total: 'number',
        skipped_total: 'number',
        triggered_by: 'text',
      },
      { success: 40, running: 3, failed: 2, cancelled: 1, 'Timeout - Auto-cleaned': 1 },
    ),
    gives: {
      columns: {
        id: 'id',
        source: 'course_id',
        status: 'status',
        startedAt: 'started_at',
        finishedAt: 'finished_at',
        error: 'error',
        extracted: 'extracted_total',
        skipped: 'skipped_total',
      },
      statuses: {
        active: 'running',
        succeeded: 'success',
        failed: 'failed',
        cancelled: 'cancelled',
        abandoned: 'Timeout - Auto-cleaned',
      },
    },
  },
  {
    what: 'runs of portals with integer ids',
    table: makeTable(
      'runs',
      {
        id: 'number key',
        portal_name: 'text',
        status: 'text status',
        extracted_total_tenders: 'number',
        skipped_existing_total: 'number',
        started_at: 'timestamp',
        completed_at: 'timestamp',
        settings: 'json',
      },
      { completed: 90, running: 2, interrupted: 1 },
    ),
    gives: {
      columns: {
        id: 'id',
        source: 'portal_name',
        status: 'status',
        startedAt: 'started_at',
        finishedAt: 'completed_at',
        extracted: 'extracted_total_tenders',
        skipped: 'skipped_existing_total',
      },
      statuses: {
        active: 'running',
        interrupted: 'interrupted',
        succeeded: 'completed',
        failed: 'failed',
      },
    },
  },
  {
    what: "Prisma's camelCase with an enum",
    table: makeTable(
      'qualification_runs',
      {
        id: 'text key',
        status: 'enum status',
        completed: 'number',
        total: 'number',
        createdAt: 'timestamp',
        completedAt: 'timestamp',
        errorMessage: 'text',
        results: 'json',
      },
      ['PENDING', 'PROCESSING', 'COMPLETED', 'FAILED'],
    ),
    gives: {
      columns: {
        id: 'id',
        status: 'status',
        startedAt: 'createdAt',
        finishedAt: 'completedAt',
        error: 'errorMessage',
        done: 'completed',
        total: 'total',
      },
      statuses: { active: ['PROCESSING', 'PENDING'], succeeded: 'COMPLETED', failed: 'FAILED' },
    },
  },
  {
    what: 'targets that are claimed and beaten',
    table: makeTable(
      'yp_targets',
      {
        id: 'number key',
        slug: 'text',
        state: 'text',
        url: 'text',
        status: 'text status',
        claimed_by: 'text',
        claimed_at: 'timestamptz',
        heartbeat_at: 'timestamptz',
        page_current: 'number',
        page_target: 'number',
        attempts: 'number',
        last_error: 'text',
        finished_at: 'timestamptz',
        priority: 'number',
      },
      { PLANNED: 500, DONE: 80, IN_PROGRESS: 4, STUCK: 1 },
    ),
    gives: {
      kind: 'targets',
      columns: {
        id: 'id',
        status: 'status',
        key: 'slug',
        group: 'state',
        url: 'url',
        owner: 'claimed_by',
        startedAt: 'claimed_at',
        heartbeatAt: 'heartbeat_at',
        finishedAt: 'finished_at',
        error: 'last_error',
        page: 'page_current',
        pageTarget: 'page_target',
        attempts: 'attempts',
      },
      statuses: { active: 'IN_PROGRESS', planned: 'PLANNED', succeeded: 'DONE', stuck: 'STUCK' },
      policy: { lease: '60m' },
    },
  },
  {
    what: "Django's choices",
    table: makeTable(
      'scraper_scrapejob',
      {
        id: 'number key',
        spider_name: 'text',
        status: 'text status',
        created_at: 'timestamptz',
        started_at: 'timestamptz',
        finished_at: 'timestamptz',
        error_message: 'text',
        items_scraped: 'number',
        user_id: 'number',
      },
      { finished: 9, pending: 2, running: 1, error: 3 },
    ),
    gives: {
      columns: {
        id: 'id',
        source: 'spider_name',
        status: 'status',
        createdAt: 'created_at',
        startedAt: 'started_at',
        finishedAt: 'finished_at',
        error: 'error_message',
        extracted: 'items_scraped',
      },
      statuses: { active: 'running', queued: 'pending', succeeded: 'finished', failed: 'error' },
    },
  },
  {
    what: "Rails' timestamps and a state",
    table: makeTable(
      'imports',
      {
        id: 'number key',
        state: 'text status',
        feed_id: 'number',
        rows_processed: 'number',
        created_at: 'timestamp',
        updated_at: 'timestamp',
        completed_at: 'timestamp',
        failure_reason: 'text',
      },
      { completed: 12, processing: 1, queued: 3, failed: 1, canceled: 1 },
    ),
    gives: {
      columns: {
        id: 'id',
        source: 'feed_id',
        status: 'state',
        startedAt: 'created_at',
        finishedAt: 'completed_at',
        activityAt: 'updated_at',
        error: 'failure_reason',
        done: 'rows_processed',
      },
      statuses: {
        active: 'processing',
        queued: 'queued',
        succeeded: 'completed',
        failed: 'failed',
        cancelled: 'canceled',
      },
    },
  },
  {
    what: 'jobs with a lock and whose it is',
    table: makeTable(
      'jobs',
      {
        id: 'number key',
        queue: 'text',
        status: 'text status',
        locked_by: 'text',
        locked_at: 'timestamptz',
        attempts: 'number',
        last_error: 'text',
        payload: 'json',
      },
      { done: 100, queued: 4, running: 2 },
    ),
    gives: {
      columns: {
        id: 'id',
        source: 'queue',
        status: 'status',
        owner: 'locked_by',
        startedAt: 'locked_at',
        error: 'last_error',
      },
      statuses: { active: 'running', queued: 'queued', succeeded: 'done', failed: 'failed' },
    },
  },
  {
    what: 'an enum of states in capital letters, with a heartbeat',
    table: makeTable(
      'scrape_jobs',
      {
        job_uuid: 'uuid key',
        site: 'text',
        state: 'enum status',
        startTime: 'timestamptz',
        endTime: 'timestamptz',
        lastHeartbeat: 'timestamptz',
        workerId: 'text',
        cursor: 'json',
      },
      ['QUEUED', 'RUNNING', 'SUCCEEDED', 'ERROR', 'TIMED_OUT'],
    ),
    gives: {
      columns: {
        id: 'job_uuid',
        source: 'site',
        status: 'state',
        startedAt: 'startTime',
        finishedAt: 'endTime',
        heartbeatAt: 'lastHeartbeat',
        owner: 'workerId',
        checkpoint: 'cursor',
      },
      statuses: {
        active: 'RUNNING',
        queued: 'QUEUED',
        succeeded: 'SUCCEEDED',
        failed: 'ERROR',
        abandoned: 'TIMED_OUT',
      },
      policy: { lease: '60m' },
    },
  },
  {
    what: 'times as numbers',
    table: makeTable(
      'sync_runs',
      {
        id: 'number key',
        connector: 'text',
        status: 'text status',
        started_at: 'number',
        ended_at: 'number',
        records: 'number',
      },
      { Success: 5, Running: 1 },
    ),
    gives: {
      columns: {
        id: 'id',
        source: 'connector',
        status: 'status',
        startedAt: 'started_at',
        finishedAt: 'ended_at',
        extracted: 'records',
      },
      statuses: { active: 'Running', succeeded: 'Success', failed: 'Failed' },
    },
  },
  {
    what: 'a queue of pages',
    table: makeTable(
      'crawl_queue',
      {
        id: 'number key',
        url: 'text',
        status: 'text status',
        locked_by: 'text',
        locked_at: 'timestamptz',
        last_page: 'number',
        retries: 'number',
      },
      { pending: 90, processing: 4, done: 40, error: 2 },
    ),
    gives: {
      kind: 'targets',
      columns: {
        id: 'id',
        status: 'status',
        owner: 'locked_by',
        startedAt: 'locked_at',
        url: 'url',
        page: 'last_page',
        attempts: 'retries',
      },
      statuses: { active: 'processing', planned: 'pending', succeeded: 'done', failed: 'error' },
    },
  },
  {
    what: 'German names and words, one of them with a space at its end',
    table: makeTable(
      'abrufe',
      {
        nr: 'number key',
        quelle: 'text',
        zustand: 'text status',
        beginn: 'number',
        ende: 'number',
        fehlermeldung: 'text',
        lebenszeichen: 'number',
      },
      { fertig: 5, läuft: 2, wartet: 1, 'fehlgeschlagen ': 1, abgebrochen: 1 },
    ),
    gives: {
      columns: {
        id: 'nr',
        source: 'quelle',
        status: 'zustand',
        startedAt: 'beginn',
        heartbeatAt: 'lebenszeichen',
        finishedAt: 'ende',
        error: 'fehlermeldung',
      },
      statuses: {
        active: 'läuft',
        queued: 'wartet',
        succeeded: 'fertig',
        failed: 'fehlgeschlagen ',
        cancelled: 'abgebrochen',
      },
      policy: { lease: '60m' },
    },
  },
  {
    what: 'runs of which none is at work now',
    table: makeTable(
      'etl_executions',
      { id: 'number key', pipeline: 'text', status: 'text status', started_at: 'timestamptz' },
      { SUCCESS: 7, FAILED: 1 },
    ),
    gives: {
      columns: { id: 'id', source: 'pipeline', status: 'status', startedAt: 'started_at' },
      statuses: { active: 'RUNNING', succeeded: 'SUCCESS', failed: 'FAILED' },
    },
  },
]

describe('a mapping is proposed for', () => {
  for (const { what, table, gives } of CASES) {
    test(what, () => {
      const proposal = proposalFor(table)
      const { table: _, ...options } = proposal.options
      assert.deepEqual(options, gives)
      assert.deepEqual(proposal.doubts, [])
      assert.equal(proposal.isSure, true)
      for (const { because } of [...proposal.columns, ...proposal.statuses]) assert.ok(because)
    })
  }
})

const COMMON_COLUMNS = { id: 'number key', created_at: 'timestamptz' }

/** Words that orders, people and payments have too. */
const NOT_RUN_TABLES: readonly [FoundTable, RegExp][] = [
  [
    makeTable(
      'users',
      { ...COMMON_COLUMNS, status: 'text status', email: 'text' },
      { active: 9, inactive: 2 },
    ),
    /nothing else/,
  ],
  [
    makeTable(
      'orders',
      { ...COMMON_COLUMNS, status: 'text status' },
      { pending: 2, processing: 3, shipped: 9 },
    ),
    /nothing else/,
  ],
  [
    makeTable(
      'subscriptions',
      { ...COMMON_COLUMNS, status: 'text status', ended_at: 'timestamptz' },
      { active: 5, canceled: 1 },
    ),
    /nothing else/,
  ],
  [
    makeTable('posts', { ...COMMON_COLUMNS, status: 'text status' }, { draft: 5, published: 1 }),
    /no value/,
  ],
  [makeTable('requests', { ...COMMON_COLUMNS, status: 'number' }), /no row shows which number/],
  [
    makeTable('requests', { ...COMMON_COLUMNS, http_status: 'text' }),
    /no column named like a status/,
  ],
  [
    makeTable('jobs', { ...COMMON_COLUMNS, payload: 'text', reserved_at: 'number' }),
    /no column named like a status/,
  ],
  [
    makeTable('crawl_runs', { run: 'text', status: 'text status' }, { running: 1 }),
    /no primary key/,
  ],
  [makeTable('crawl_runs', { id: 'text key', status: 'text status' }, { running: 1 }), /no time/],
  [
    makeTable('crawl_runs', { ...COMMON_COLUMNS, status: 'text status' }, ['open', 'shut']),
    /no value/,
  ],
  [
    makeTable('pgboss.job', { ...COMMON_COLUMNS, state: 'enum status' }, ['created', 'active']),
    /belongs to pg-boss/,
  ],
]

for (const [table, because] of NOT_RUN_TABLES) {
  test(`${table.table} with ${table.columns.at(-1)!.name} is not proposed: ${because.source}`, () => {
    assert.match(rejectionOf(table), because)
  })
}

test('a table that could be runs or targets is proposed as unsure', () => {
  const payments = makeTable(
    'payments',
    {
      ...COMMON_COLUMNS,
      status: 'text status',
      finished_at: 'timestamptz',
      error: 'text',
      amount: 'number',
    },
    { processing: 2, succeeded: 7 },
  )
  const { isSure, doubts } = proposalFor(payments)
  assert.equal(isSure, false)
  assert.deepEqual(doubts, ['its name suggests something else', 'runs have no amount'])

  const todo = makeTable(
    'tasks',
    { ...COMMON_COLUMNS, status: 'text status', assignee: 'text', due_date: 'timestamptz' },
    { in_progress: 2, todo: 7, done: 8 },
  )
  assert.deepEqual(
    [proposalFor(todo).isSure, proposalFor(todo).doubts],
    [false, ['runs have no assignee']],
  )
})

test('a table named by the user gets a mapping, marked as unsure', () => {
  const orders = makeTable(
    'orders',
    { ...COMMON_COLUMNS, status: 'text status' },
    { processing: 3, shipped: 9 },
  )
  const { isSure, doubts, options } = proposalFor(orders, { isRequested: true })
  assert.equal(isSure, false)
  assert.equal(doubts.length, 2)
  assert.deepEqual(options.statuses, { active: 'processing', failed: 'failed' })
})

test('French, Spanish and short status values are recognised; similar-looking ones are not', () => {
  const statuses = (words: readonly string[]): unknown =>
    proposalFor(
      makeTable(
        'runs',
        { ...COMMON_COLUMNS, status: 'text status' },
        Object.fromEntries(words.map((word) => [word, 2])),
      ),
    ).options.statuses
  assert.deepEqual(statuses(['en cours', 'Terminé', 'ÉCHOUÉ']), {
    active: 'en cours',
    succeeded: 'Terminé',
    failed: 'ÉCHOUÉ',
  })
  assert.deepEqual(statuses(['en curso', 'terminado', 'fallido']), {
    active: 'en curso',
    succeeded: 'terminado',
    failed: 'fallido',
  })
  assert.deepEqual(statuses(['STARTED', 'OK', 'ERR']), {
    active: 'STARTED',
    succeeded: 'OK',
    failed: 'ERR',
  })
  // A Cyrillic letter, and marks that no keyboard makes.
  assert.deepEqual(statuses(['running', 'f\u0430iled', 'e\u0338rr']), {
    active: 'running',
    failed: 'failed',
  })
})

test('a table named by the user gets an editable mapping, whatever its columns and status values', () => {
  const odd = makeTable(
    'vorgang',
    { id: 'number key', titel: 'text', lage: 'text status', wann: 'timestamptz' },
    { rennt: 4, aus: 9 },
  )
  assert.match(rejectionOf(odd), /no column named like a status/)
  const { options, doubts, notes, isSure } = proposalFor(odd, { isRequested: true })
  assert.deepEqual(options.columns, { id: 'id', status: 'lage', startedAt: 'wann' })
  // No row has these words, so a guess decides nothing.
  assert.deepEqual(options.statuses, { active: 'running', failed: 'failed' })
  assert.match(notes.join('\n'), /"running" for active is a guess: .* one of "rennt", "aus"\?/)
  assert.deepEqual([isSure, doubts], [false, ['little in it suggests work']])

  const fixed = makeTable('crawl_runs', { id: 'text key', state: 'enum status' }, ['auf', 'zu'])
  const asked = proposalFor(fixed, { isRequested: true })
  assert.deepEqual(asked.options.statuses, { active: 'running' })
  assert.match(asked.doubts.join(), /has no time/)
})

test('the column of the status can be named', () => {
  const words = { running: 1, failed: 2 }
  const table = makeTable(
    'runs',
    { ...COMMON_COLUMNS, state: 'text', where_it_is: 'text status' },
    words,
  )
  const named = proposalFor(table, { isRequested: true, status: 'Where_It_Is' })
  assert.equal(named.options.columns.status, 'where_it_is')
  for (const [status, because] of [
    ['nowhere', /no usable column "nowhere", only id, created_at, state, where_it_is/],
    ['created_at', /created_at is neither text nor a number nor a boolean/],
  ] as const) {
    const answer = propose(table, { isRequested: true, status })
    assert.match((answer as RejectedTable).because, because)
  }
})

test('a cancelled status is offered if the column allows any value and has none yet', () => {
  const word = (columns: Record<string, string>, words: StatusCounts): string | null =>
    proposalFor(
      makeTable('runs', { ...COMMON_COLUMNS, ...columns, finished_at: 'timestamptz' }, words),
    ).cancelledValue
  const open = { status: 'text status' }
  assert.equal(word(open, { RUNNING: 1, FAILED: 1 }), 'CANCELLED')
  assert.equal(word(open, { running: 1, aborted: 1 }), null)
  assert.equal(word(open, ['running', 'failed']), null)
})

test('a runs table is mapped as targets on request', () => {
  const { options } = proposalFor(CASES[6]!.table, { kind: 'targets' })
  assert.equal(options.kind, 'targets')
  assert.equal(options.statuses.planned, 'queued')
  assert.equal(options.columns.attempts, 'attempts')
})

test('the proposal lists what to review', () => {
  const notes = (at: number): string => proposalFor(CASES[at]!.table).notes.join('\n')
  assert.match(notes(1), /"failed" for failed is a guess/)
  assert.match(notes(1), /no time zone and are read as UTC/)
  assert.match(notes(1), /no heartbeat: rows are assessed by age/)
  assert.match(notes(2), /"PENDING" counts as active\. If .* move it to queued/)
  assert.match(notes(3), /lost when its heartbeat is older than 60m/)
  const paused = makeTable(
    'runs',
    { ...COMMON_COLUMNS, status: 'text status' },
    { running: 1, paused: 2 },
  )
  assert.match(proposalFor(paused).notes.join('\n'), /Rows with "paused" count as ended/)
  assert.deepEqual(Object.keys(proposalFor(paused).options.statuses), ['active', 'failed'])
})

test('a column with a path is a checkpoint file or an output folder', () => {
  const columns = {
    ...COMMON_COLUMNS,
    status: 'text status',
    checkpoint_path: 'text',
    output_dir: 'text',
  }
  const { paths } = proposalFor(makeTable('runs', columns, { running: 1 }))
  assert.deepEqual(paths, { checkpoint: 'checkpoint_path', outputDir: 'output_dir' })
})

test('hostile names and status values never get into a mapping', () => {
  for (const text of HOSTILE_TEXTS) {
    const evil = `${text}\u202e'; DROP`
    const columns = {
      ...COMMON_COLUMNS,
      status: 'text status',
      [`${evil}_status`]: 'text status',
      [evil]: 'text',
      [`error ${evil}`]: 'text',
    }
    const table = makeTable('crawl_runs', columns, { running: 1, [evil]: 3, [`${evil} failed`]: 1 })
    assert.doesNotMatch(JSON.stringify(proposalFor(table).options), /DROP/)
    assert.match(rejectionOf({ ...table, table: evil }), /cannot be used/)
    assert.match(rejectionOf({ ...table, schema: evil }), /cannot be used/)
  }
})

for (const [check, words] of [
  [`CHECK (status IN ('running', 'it''s done'))`, ['running', "it's done"]],
  [
    `CHECK (((status)::text = ANY ((ARRAY['a'::character varying, 'b'::character varying])::text[])))`,
    ['a', 'b'],
  ],
  [`CHECK ("Status" = 'a' OR "Status" = 'b')`, ['a', 'b']],
  [`CHECK (status <> '' AND other = 'x')`, null],
  [`CHECK (status = 'a' OR status IS NULL)`, ['a']],
  [`CHECK (length(status) > 0)`, null],
  [`CHECK (status <> '')`, null],
  [`CHECK (((status)::text <> ''::text))`, null],
  [`CHECK (status != 'gone')`, null],
  [`CHECK (status ~ '^(a|b)$')`, null],
  [`CHECK (status > 'a')`, null],
  [`CHECK ((status IN ('gone')) = 0)`, null],
] as const) {
  test(`the values of ${check}: ${JSON.stringify(words)}`, () => {
    assert.deepEqual(valuesInCheck(check, 'status'), words)
  })
}

/** One line: what is decided about a table, without the reasons given for it. */
function describeDecision(result: Proposal | RejectedTable): string {
  if (!('options' in result)) return `rejected${result.hasNoStatus ? ', has no status' : ''}`
  const { kind, isSure, options, unused, paths, cancelledValue } = result
  const text = JSON.stringify([options.columns, options.statuses, paths])
  return [kind, isSure ? 'sure' : 'unsure', text, `offers ${cancelledValue}`, ...unused].join(' ')
}

test('the decisions about all fixture tables equal the recorded ones', async () => {
  using folder = temporaryFolder()
  const url = `sqlite:${join(folder.path, 'app.db')}`
  for (const table of Object.values(USER_TABLES)) await createUserTable(url, table)
  await runUserSql(
    url,
    `INSERT INTO crawl_runs (id, course_id, status, started_at) VALUES ('a', 'b', 'running', '2026-01-01');
    INSERT INTO runs (portal_name, status) VALUES ('ted', 'completed'), ('ted', 'failed');
    INSERT INTO qualification_runs (id, status, createdAt) VALUES ('a', 'PENDING', 1), ('b', 'PROCESSING', 2);
    INSERT INTO yp_targets (slug, status) VALUES ('a', 'PLANNED'), ('b', 'IN_PROGRESS'), ('c', 'PARKED');`,
  )
  const tables = [
    ...CASES.map(({ table }) => table),
    ...NOT_RUN_TABLES.map(([table]) => table),
    ...(await findTables(url)).tables,
  ]
  const requests = [{}, { isRequested: true }, { kind: 'runs' }, { kind: 'targets' }] as const
  const lines = tables.flatMap((table) =>
    requests.map((options) => {
      const decision = describeDecision(propose(table, options))
      return `${table.table} ${JSON.stringify(options)}: ${decision}\n`
    }),
  )
  const recorded = readFileSync(join(import.meta.dirname, 'recorded-decisions.txt'), 'utf8')
  assert.deepEqual(lines.join('').split('\n'), recorded.split('\n'))
})
