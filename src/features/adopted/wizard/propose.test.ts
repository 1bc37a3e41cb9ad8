import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { HOSTILE_TEXTS } from '../../../testing/hostile-text.ts'
import { wordsInCheck, type ColumnType, type FoundTable } from './found-table.ts'
import type { AdoptedOptions } from '../mapping.ts'
import { propose, type PassedOver, type Proposal } from './propose.ts'
import { readMapping } from '../read-mapping.ts'

type Words = Readonly<Record<string, number>> | readonly string[]

/** `id: 'uuid key'`; the words of a status by their counts, or in a list where a check or a type allows no others. */
function found(name: string, columns: Record<string, string>, status: Words = {}): FoundTable {
  const [table, schema] = name.split('.').reverse() as [string, string?]
  const isFixed = Array.isArray(status)
  return {
    schema: schema ?? null,
    table,
    unread: null,
    columns: Object.entries(columns).map(([name, said]) => {
      const [type, ...more] = said.split(' ') as [ColumnType, ...string[]]
      const isStatus = more.includes('status')
      const counts = isFixed ? [] : Object.entries(status)
      return {
        name,
        type,
        isKey: more.includes('key'),
        allowed: isStatus && isFixed ? [...status] : null,
        words: isStatus ? counts.map(([word, count]) => ({ word, count })) : null,
      }
    }),
  }
}

function proposed(table: FoundTable, how?: Parameters<typeof propose>[1]): Proposal {
  const answer = propose(table, how)
  assert.ok(
    'options' in answer,
    `${answer.table} is passed over: ${(answer as PassedOver).because}`,
  )
  const mistakes: string[] = []
  readMapping('proposed', answer.options, DEFAULT_POLICY, mistakes)
  assert.deepEqual(mistakes, [])
  return answer
}

function passedOver(table: FoundTable): string {
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
    table: found(
      'course_crawler.crawl_runs',
      {
        id: 'uuid key',
        course_id: 'text',
        status: 'text status',
        started_at: 'moment',
        finished_at: 'moment',
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
    table: found(
      'runs',
      {
        id: 'number key',
        portal_name: 'text',
        status: 'text status',
        extracted_total_tenders: 'number',
        skipped_existing_total: 'number',
        started_at: 'local',
        completed_at: 'local',
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
    table: found(
      'qualification_runs',
      {
        id: 'text key',
        status: 'enum status',
        completed: 'number',
        total: 'number',
        createdAt: 'local',
        completedAt: 'local',
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
    table: found(
      'yp_targets',
      {
        id: 'number key',
        slug: 'text',
        state: 'text',
        url: 'text',
        status: 'text status',
        claimed_by: 'text',
        claimed_at: 'moment',
        heartbeat_at: 'moment',
        page_current: 'number',
        page_target: 'number',
        attempts: 'number',
        last_error: 'text',
        finished_at: 'moment',
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
    table: found(
      'scraper_scrapejob',
      {
        id: 'number key',
        spider_name: 'text',
        status: 'text status',
        created_at: 'moment',
        started_at: 'moment',
        finished_at: 'moment',
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
    table: found(
      'imports',
      {
        id: 'number key',
        state: 'text status',
        feed_id: 'number',
        rows_processed: 'number',
        created_at: 'local',
        updated_at: 'local',
        completed_at: 'local',
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
    table: found(
      'jobs',
      {
        id: 'number key',
        queue: 'text',
        status: 'text status',
        locked_by: 'text',
        locked_at: 'moment',
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
    table: found(
      'scrape_jobs',
      {
        job_uuid: 'uuid key',
        site: 'text',
        state: 'enum status',
        startTime: 'moment',
        endTime: 'moment',
        lastHeartbeat: 'moment',
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
    table: found(
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
    table: found(
      'crawl_queue',
      {
        id: 'number key',
        url: 'text',
        status: 'text status',
        locked_by: 'text',
        locked_at: 'moment',
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
    table: found(
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
    table: found(
      'etl_executions',
      { id: 'number key', pipeline: 'text', status: 'text status', started_at: 'moment' },
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
      const proposal = proposed(table)
      const { table: _, ...options } = proposal.options
      assert.deepEqual(options, gives)
      assert.deepEqual(proposal.doubts, [])
      assert.equal(proposal.isSure, true)
      for (const { because } of [...proposal.columns, ...proposal.words]) assert.ok(because)
    })
  }
})

const KEPT = { id: 'number key', created_at: 'moment' }

/** Words that orders, people and payments have too. */
const NO_RUNS: readonly [FoundTable, RegExp][] = [
  [
    found('users', { ...KEPT, status: 'text status', email: 'text' }, { active: 9, inactive: 2 }),
    /nothing else/,
  ],
  [
    found('orders', { ...KEPT, status: 'text status' }, { pending: 2, processing: 3, shipped: 9 }),
    /nothing else/,
  ],
  [
    found(
      'subscriptions',
      { ...KEPT, status: 'text status', ended_at: 'moment' },
      { active: 5, canceled: 1 },
    ),
    /nothing else/,
  ],
  [found('posts', { ...KEPT, status: 'text status' }, { draft: 5, published: 1 }), /no word/],
  [found('requests', { ...KEPT, status: 'number' }), /not made of words/],
  [found('requests', { ...KEPT, http_status: 'text' }), /no column like a status/],
  [found('jobs', { ...KEPT, payload: 'text', reserved_at: 'number' }), /no column like a status/],
  [found('crawl_runs', { run: 'text', status: 'text status' }, { running: 1 }), /no primary key/],
  [found('crawl_runs', { id: 'text key', status: 'text status' }, { running: 1 }), /no time/],
  [found('crawl_runs', { ...KEPT, status: 'text status' }, ['open', 'shut']), /no word/],
  [found('pgboss.job', { ...KEPT, state: 'enum status' }, ['created', 'active']), /pg-boss's own/],
]

for (const [table, because] of NO_RUNS) {
  test(`${table.table} with ${table.columns.at(-1)!.name} is not proposed: ${because.source}`, () => {
    assert.match(passedOver(table), because)
  })
}

test('what looks like both is proposed with a doubt', () => {
  const payments = found(
    'payments',
    { ...KEPT, status: 'text status', finished_at: 'moment', error: 'text', amount: 'number' },
    { processing: 2, succeeded: 7 },
  )
  const { isSure, doubts } = proposed(payments)
  assert.equal(isSure, false)
  assert.deepEqual(doubts, ['its name says that it is something else', 'runs have no amount'])

  const todo = found(
    'tasks',
    { ...KEPT, status: 'text status', assignee: 'text', due_date: 'moment' },
    { in_progress: 2, todo: 7, done: 8 },
  )
  assert.deepEqual(
    [proposed(todo).isSure, proposed(todo).doubts],
    [false, ['runs have no assignee']],
  )
})

test('who names a table gets a mapping for it, with the doubt', () => {
  const orders = found('orders', { ...KEPT, status: 'text status' }, { processing: 3, shipped: 9 })
  const { isSure, doubts, options } = proposed(orders, { asked: true })
  assert.equal(isSure, false)
  assert.equal(doubts.length, 2)
  assert.deepEqual(options.statuses, { active: 'processing', failed: 'failed' })
})

test('French, Spanish and short words mean what they say; look-alikes mean nothing', () => {
  const statuses = (words: readonly string[]): unknown =>
    proposed(
      found(
        'runs',
        { ...KEPT, status: 'text status' },
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

test('who names a table gets something to edit, whatever its columns and words are called', () => {
  const odd = found(
    'vorgang',
    { id: 'number key', titel: 'text', lage: 'text status', wann: 'moment' },
    { rennt: 4, aus: 9 },
  )
  assert.match(passedOver(odd), /no column like a status/)
  const { options, doubts, notes, isSure } = proposed(odd, { asked: true })
  assert.deepEqual(options.columns, { id: 'id', status: 'lage', startedAt: 'wann' })
  // Words that no row has: nothing is judged by a guess.
  assert.deepEqual(options.statuses, { active: 'running', failed: 'failed' })
  assert.match(notes.join('\n'), /"running" for active is a guess: .* one of "rennt", "aus"\?/)
  assert.deepEqual([isSure, doubts], [false, ['little in it looks like work']])

  const fixed = found('crawl_runs', { id: 'text key', state: 'enum status' }, ['auf', 'zu'])
  const asked = proposed(fixed, { asked: true })
  assert.deepEqual(asked.options.statuses, { active: 'running' })
  assert.match(asked.doubts.join(), /no time to judge by/)
})

test('the column of the status can be named', () => {
  const words = { running: 1, failed: 2 }
  const table = found('runs', { ...KEPT, state: 'text', where_it_is: 'text status' }, words)
  const named = proposed(table, { asked: true, status: 'Where_It_Is' })
  assert.equal(named.options.columns.status, 'where_it_is')
  for (const [status, because] of [
    ['nowhere', /no column "nowhere" that can be used, only id, created_at, state, where_it_is/],
    ['created_at', /created_at is not made of words/],
  ] as const) {
    const answer = propose(table, { asked: true, status })
    assert.match((answer as PassedOver).because, because)
  }
})

test('a word to cancel by is offered where any word may stand and none is there', () => {
  const word = (columns: Record<string, string>, words: Words): string | null =>
    proposed(found('runs', { ...KEPT, ...columns, finished_at: 'moment' }, words)).cancelWord
  const open = { status: 'text status' }
  assert.equal(word(open, { RUNNING: 1, FAILED: 1 }), 'CANCELLED')
  assert.equal(word(open, { running: 1, aborted: 1 }), null)
  assert.equal(word(open, ['running', 'failed']), null)
})

test('a table of runs is one of targets if somebody says so', () => {
  const { options } = proposed(CASES[6]!.table, { kind: 'targets' })
  assert.equal(options.kind, 'targets')
  assert.equal(options.statuses.planned, 'queued')
  assert.equal(options.columns.attempts, 'attempts')
})

test('what a person should look at is said', () => {
  const notes = (at: number): string => proposed(CASES[at]!.table).notes.join('\n')
  assert.match(notes(1), /"failed" for failed is a guess/)
  assert.match(notes(1), /no zone and are read as UTC/)
  assert.match(notes(1), /no heartbeat: rows are judged by age/)
  assert.match(notes(2), /"PENDING" counts as at work\. If .* move the word to queued/)
  assert.match(notes(3), /A beat older than 60m counts as a lost worker/)
  const paused = found('runs', { ...KEPT, status: 'text status' }, { running: 1, paused: 2 })
  assert.match(proposed(paused).notes.join('\n'), /Rows that say "paused" count as ended/)
  assert.deepEqual(Object.keys(proposed(paused).options.statuses), ['active', 'failed'])
})

test('a column with a path is a checkpoint file or an output folder', () => {
  const columns = { ...KEPT, status: 'text status', checkpoint_path: 'text', output_dir: 'text' }
  const { paths } = proposed(found('runs', columns, { running: 1 }))
  assert.deepEqual(paths, { checkpoint: 'checkpoint_path', outputDir: 'output_dir' })
})

test('hostile names and words never get into a mapping', () => {
  for (const text of HOSTILE_TEXTS) {
    const evil = `${text}\u202e'; DROP`
    const columns = {
      ...KEPT,
      status: 'text status',
      [`${evil}_status`]: 'text status',
      [evil]: 'text',
      [`error ${evil}`]: 'text',
    }
    const table = found('crawl_runs', columns, { running: 1, [evil]: 3, [`${evil} failed`]: 1 })
    assert.doesNotMatch(JSON.stringify(proposed(table).options), /DROP/)
    assert.match(passedOver({ ...table, table: evil }), /cannot be used/)
    assert.match(passedOver({ ...table, schema: evil }), /cannot be used/)
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
  test(`the words of ${check}: ${JSON.stringify(words)}`, () => {
    assert.deepEqual(wordsInCheck(check, 'status'), words)
  })
}
