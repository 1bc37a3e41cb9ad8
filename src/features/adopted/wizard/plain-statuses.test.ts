import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../../../core/model/policy.ts'
import { ENGINES } from '../../../testing/open-test-table.ts'
import { parseMapping } from '../parse-mapping.ts'
import { openAdoptedTable } from '../table/table.ts'
import { runStatusOf } from '../runs/status-mapping.ts'
import type { Engine } from '../../../testing/test-database.ts'
import type { FoundTable } from './columns.ts'
import { findTables } from './find-tables.ts'
import { propose, type ProposeOptions } from './propose.ts'

/** Statuses and times as Rails, Django and hand-made tables have them; the last part is all that differs. */
const TIMES = "'2026-01-01 10:00:00'"

async function proposalOf(engine: Engine, ddl: string, options: ProposeOptions = {}) {
  await using db = await engine.empty()
  await db.raw(ddl)
  // Of a table that is asked for, the values of all columns are read.
  const [{ table: name }] = (await findTables(db.url)).tables as [FoundTable]
  const only = options.isRequested ? name : undefined
  const [table] = (await findTables(db.url, only)).tables
  const found = propose(table!, options)
  if ('because' in found) return found
  const mistakes: string[] = []
  const mapping = parseMapping('work', found.options, DEFAULT_POLICY, mistakes)
  assert.deepEqual(mistakes, [])
  // What is proposed fits the table, and reads as it means.
  const opened = await openAdoptedTable(mapping!, db.url)
  try {
    const rows = await opened.rows({ limit: 50 })
    const statuses = rows.map((row) => `${row.key} ${runStatusOf(opened.mapping, row)}`)
    return { ...found, statuses: statuses.toSorted() }
  } finally {
    await opened.close()
  }
}

for (const engine of ENGINES) {
  const boolean = 'boolean'
  const time = engine.name === 'sqlite' ? 'datetime' : 'timestamp'
  const name = (what: string): string => `${engine.name}: ${what}`

  test(
    name('the integers of a Rails enum get their meanings from the rows, as guesses'),
    async () => {
      const ddl = `
      CREATE TABLE crawl_jobs (id integer PRIMARY KEY, portal varchar(80), status integer NOT NULL DEFAULT 0,
        error_message text, created_at ${time} NOT NULL, updated_at ${time} NOT NULL, started_at ${time}, finished_at ${time});
      INSERT INTO crawl_jobs (id, portal, status, error_message, created_at, updated_at, started_at, finished_at) VALUES
        (1, 'a', 0, NULL, ${TIMES}, ${TIMES}, NULL, NULL),
        (2, 'a', 1, NULL, ${TIMES}, ${TIMES}, ${TIMES}, NULL),
        (3, 'a', 2, NULL, ${TIMES}, ${TIMES}, ${TIMES}, ${TIMES}),
        (4, 'b', 2, '', ${TIMES}, ${TIMES}, ${TIMES}, ${TIMES}),
        (5, 'b', 3, 'no such page', ${TIMES}, ${TIMES}, ${TIMES}, ${TIMES});
    `
      const found = await proposalOf(engine, ddl)
      assert.ok('options' in found)
      assert.deepEqual(found.options.statuses, { queued: 0, active: 1, succeeded: 2, failed: 3 })
      assert.equal(found.options.columns.createdAt, 'created_at')
      assert.equal(found.isSure, false)
      assert.match(found.notes.join('\n'), /What the numbers of status mean is read from its rows/)
      assert.deepEqual(found.statuses, [
        '1 queued',
        '2 running',
        '3 succeeded',
        '4 succeeded',
        '5 failed',
      ])
    },
  )

  test(name('a Django choice is found with the process that works on it'), async () => {
    const ddl = `
      CREATE TABLE scraper_task (id bigint PRIMARY KEY, state smallint NOT NULL CHECK (state >= 0), spider varchar(50),
        hostname varchar(50), pid integer, total_urls integer, date_created ${time}, started ${time}, finished ${time}, traceback text);
      INSERT INTO scraper_task (id, state, hostname, pid, date_created, started, finished, traceback) VALUES
        (1, 10, 'a1', 4711, ${TIMES}, ${TIMES}, NULL, NULL), (2, 10, 'a1', 4712, ${TIMES}, ${TIMES}, NULL, NULL),
        (3, 20, 'a1', 4711, ${TIMES}, ${TIMES}, ${TIMES}, NULL), (4, 30, 'a2', 1, ${TIMES}, ${TIMES}, ${TIMES}, 'Error');
    `
    const found = await proposalOf(engine, ddl, { isRequested: true })
    assert.ok('options' in found)
    assert.deepEqual(found.options.statuses, { active: 10, succeeded: 20, failed: 30 })
    const { host, pid, owner, total, startedAt, createdAt } = found.options.columns
    assert.deepEqual(
      { host, pid, owner, total, startedAt, createdAt },
      {
        host: 'hostname',
        pid: 'pid',
        owner: undefined,
        total: 'total_urls',
        startedAt: 'started',
        createdAt: 'date_created',
      },
    )
  })

  test(
    name('a flag such as is_running tells active rows, and the error tells failed ones'),
    async () => {
      const ddl = `
      CREATE TABLE import_runs (id integer PRIMARY KEY, feed text, is_running ${boolean} NOT NULL,
        started_at ${time}, last_error text);
      INSERT INTO import_runs (id, feed, is_running, started_at, last_error) VALUES
        (1, 'a', true, ${TIMES}, NULL), (2, 'a', false, ${TIMES}, NULL), (3, 'a', false, ${TIMES}, 'no such page');
    `
      const found = await proposalOf(engine, ddl)
      assert.ok('options' in found)
      assert.deepEqual(found.options.statuses, { active: true, succeeded: false, failed: false })
      assert.deepEqual(found.statuses, ['1 running', '2 succeeded', '3 failed'])
      const plain = await proposalOf(engine, ddl.replaceAll('last_error', 'remark'))
      assert.ok('options' in plain)
      assert.deepEqual(plain.options.statuses, { active: true, succeeded: false })
      const finished = ddl.replaceAll('is_running', 'finished')
      const ended = await proposalOf(engine, finished, { isRequested: true })
      assert.ok('options' in ended)
      assert.deepEqual(ended.options.statuses, { active: false, succeeded: true, failed: true })
    },
  )

  test(name('numbers whose rows show nothing are not guessed'), async () => {
    const ddl = `
      CREATE TABLE jobs (id integer PRIMARY KEY, status integer, name text, at ${time});
      INSERT INTO jobs (id, status, name) VALUES (1, 7, 'a'), (2, 8, 'b');
    `
    const found = await proposalOf(engine, ddl)
    assert.ok('because' in found, JSON.stringify(found))
    assert.match(
      found.because,
      /no row shows which number of its status means that work is in progress/,
    )
  })

  test(name('a column of free text is never proposed as the status'), async () => {
    const tables: Record<string, string> = {
      'titles and notes': `
        CREATE TABLE crawls (id integer PRIMARY KEY, title text, notes text, started_at ${time});
        INSERT INTO crawls (id, title, notes) VALUES (1, 'Done', 'ok'), (2, 'New', 'ok'), (3, 'Running shoes', 'ok'), (4, 'Garden', 'asked twice'),
          (5, 'Kitchen', 'ok'), (6, 'Bath', 'sent a mail, waits for an answer')`,
      'a status with sentences': `
        CREATE TABLE crawls (id integer PRIMARY KEY, status text, started_at ${time});
        INSERT INTO crawls (id, status) VALUES (1, 'page 3 of 17, 2 errors'), (2, 'The site did not answer.'), (3, 'done'), (4, 'Waits for Max, who is away')`,
      'titles that read like statuses': `
        CREATE TABLE crawls (id integer PRIMARY KEY, title text, body text, started_at ${time}, finished_at ${time}, error text);
        INSERT INTO crawls (id, title) VALUES (1, 'running'), (2, 'Running late'), (3, 'Done')`,
      'a status with messages beside two statuses': `
        CREATE TABLE crawls (id integer PRIMARY KEY, status text, started_at ${time});
        INSERT INTO crawls (id, status) VALUES (98, 'running'), (99, 'finished'),
          ${Array.from({ length: 16 }, (_, n) => `(${n}, 'Fetched page ${n} of 80')`).join(', ')}`,
      'logs that repeat': `
        CREATE TABLE crawls (id integer PRIMARY KEY, last_log text, url text, started_at ${time});
        INSERT INTO crawls (id, last_log, url) VALUES (1, 'started: opening the browser', 'https://a.example/1'),
          (2, 'started: opening the browser', 'https://a.example/1'), (3, 'started: opening the browser', 'https://a.example/1'),
          (4, 'started: opening the browser', 'https://a.example/1')`,
      'names of people': `
        CREATE TABLE crawls (id integer PRIMARY KEY, person text, started_at ${time});
        INSERT INTO crawls (id, person) VALUES (1, 'Ada'), (2, 'Max'), (3, 'Active Media Ltd.'), (4, 'Eve')`,
    }
    for (const [what, ddl] of Object.entries(tables)) {
      const found = await proposalOf(engine, ddl, { isRequested: true })
      assert.ok('because' in found, `${what}: ${JSON.stringify(found)}`)
    }
    const messages = Array.from({ length: 5 }, (_, n) => `(${n}, 'HTTP 50${n}: try again')`)
    const found = await proposalOf(
      engine,
      `CREATE TABLE crawls (id integer PRIMARY KEY, status text, started_at ${time});
       INSERT INTO crawls (id, status) VALUES ${messages.join(', ')},
         ${Array.from({ length: 9 }, (_, n) => `(1${n}, 'done')`).join(', ')}, (99, 'running')`,
      { isRequested: true },
    )
    assert.ok('options' in found, 'most rows have a status, and some an error in its place')
  })
}
