import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { Client } from 'pg'
import {
  ENGINES,
  openTestTable,
  openUserTable,
  valuesOf,
} from '../../../testing/open-test-table.ts'
import { HOSTILE_TEXTS } from '../../../testing/hostile-text.ts'
import { isLong } from '../../../testing/long-tests.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import {
  crawlRuns,
  engineOf,
  insertRows,
  createUserTable,
  type NewRow,
  qualificationRuns,
  tenderRuns,
  type UserTable,
  readUserRows,
  runUserSql,
  ypTargets,
} from '../../../testing/user-tables.ts'
import type { AdoptedOptions } from '../mapping.ts'

const NOW = Date.UTC(2026, 10, 16, 12, 0, 0)
const minutesAgo = (minutes: number): Date => new Date(NOW - minutes * 60_000)
const UUIDS = [1, 2].map((n) => `00000000-0000-4000-8000-00000000000${n}`)
const STATUSES = { active: 'running', failed: 'failed', interrupted: 'waiting' }

type Case = { users: UserTable; rows: NewRow[]; word: string; mapped: string[] }
const CASES: readonly Case[] = [
  {
    users: crawlRuns,
    rows: UUIDS.map((id) => ({ id, course_id: 'algebra', started_at: minutesAgo(9) })),
    word: 'failed',
    mapped: ['status', 'finished_at', 'error'],
  },
  {
    users: tenderRuns,
    rows: [1, 2].map((id) => ({
      id,
      portal_name: 'a',
      status: 'running',
      started_at: minutesAgo(9),
      settings: '{"a":1}',
    })),
    word: 'failed',
    mapped: ['status', 'completed_at'],
  },
  {
    users: qualificationRuns,
    rows: ['a', 'b'].map((id) => ({
      id,
      status: 'PROCESSING',
      createdAt: minutesAgo(9),
      results: '[1,2]',
    })),
    word: 'FAILED',
    mapped: ['status', 'completedAt', 'errorMessage'],
  },
  {
    users: ypTargets,
    rows: [1, 2].map((id) => ({
      id,
      slug: `s${id}`,
      status: 'IN_PROGRESS',
      claimed_by: 'host-1',
      heartbeat_at: minutesAgo(90),
    })),
    word: 'PLANNED',
    mapped: ['status', 'finished_at', 'last_error', 'claimed_by', 'heartbeat_at'],
  },
]

for (const engine of ENGINES) {
  test(`${engine.name}: a change writes mapped columns of one row, and reverting it restores the row`, async () => {
    await using db = await engine.empty()
    for (const { users, rows, word, mapped } of CASES) {
      await using opening = await openUserTable(db.url, users)
      await insertRows(db.url, users, rows)
      const { table } = opening
      const schema = await schemaOf(db.url)
      const before = await readUserRows(db.url, users)
      const row = (await table.row(String(rows[0]!['id'])))!

      const after = (await table.change(row, {
        status: word,
        finishedAt: NOW,
        error: 'left behind',
        owner: null,
        heartbeatAt: null,
      }))!
      const [first, second] = await readUserRows(db.url, users)
      assert.deepEqual(second, before[1])
      const changed = Object.keys(first!).filter((name) => !isEqual(first![name], before[0]![name]))
      assert.deepEqual(changed.toSorted(), mapped.toSorted())
      assert.deepEqual(after, await table.row(row.key))
      assert.deepEqual([after.status, after.finishedAt, after.owner], [word, NOW, null])

      // Through JSON, as the trail keeps it.
      const restore = JSON.parse(JSON.stringify(row.snapshot)) as typeof row.snapshot
      const restored = await table.change(after, { restore })
      assert.deepEqual(restored?.snapshot, row.snapshot)
      assert.deepEqual(await readUserRows(db.url, users), before)
      assert.deepEqual(await schemaOf(db.url), schema)
    }
  })

  test(`${engine.name}: any write to the row between read and change wins`, async () => {
    await using db = await engine.empty()
    await using opening = await openUserTable(db.url, ypTargets)
    await insertRows(db.url, ypTargets, [
      {
        id: 1,
        slug: 's',
        status: 'IN_PROGRESS',
        heartbeat_at: minutesAgo(90),
        claimed_at: minutesAgo(91),
      },
    ])
    for (const write of [
      `status = 'DONE'`,
      `heartbeat_at = '2026-11-16T11:59:59.000Z'`,
      `page_current = page_current + 1`,
      `claimed_by = 'another'`,
      `attempts = 0`,
      `claimed_at = NULL`,
      `last_error = ''`,
    ]) {
      const row = (await opening.table.row('1'))!
      await runUserSql(db.url, `UPDATE yp_targets SET ${write} WHERE id = 1`)
      const [left] = await readUserRows(db.url, ypTargets)
      assert.equal(await opening.table.change(row, { status: 'PLANNED' }), null, write)
      assert.deepEqual(await readUserRows(db.url, ypTargets), [left])
    }
  })

  test(`${engine.name}: of many concurrent changes to one row, exactly one is applied`, async () => {
    await using db = await engine.empty()
    await createUserTable(db.url, crawlRuns)
    await insertRows(db.url, crawlRuns, [
      { id: UUIDS[0]!, course_id: 'a', started_at: minutesAgo(9) },
    ])
    const openings = await Promise.all(
      Array.from({ length: 5 }, () => openTestTable(db.url, crawlRuns.options[engine.name])),
    )
    const rows = await Promise.all(openings.map(({ table }) => table.row(UUIDS[0]!)))
    const results = await Promise.all(
      openings.map(({ table }, n) =>
        table.change(rows[n]!, { status: 'failed', error: `by ${n}` }),
      ),
    )
    assert.equal(results.filter((result) => result !== null).length, 1)
    await Promise.all(openings.map(({ table }) => table.close()))
  })

  test(`${engine.name}: rows with hostile text in them are changed like any other, and hostile reasons are kept`, async () => {
    await using db = await engine.empty()
    await using opening = await openUserTable(db.url, crawlRuns)
    await insertRows(db.url, crawlRuns, [
      { id: UUIDS[0]!, course_id: 'a', started_at: minutesAgo(9) },
    ])
    let row = (await opening.table.row(UUIDS[0]!))!
    for (const text of HOSTILE_TEXTS) {
      row = (await opening.table.change(row, { status: text, error: text }))!
      assert.deepEqual([row.status, row.error], [text, text])
    }
    const [whole] = await readUserRows(db.url, crawlRuns)
    assert.deepEqual([whole!['course_id'], whole!['triggered_by']], ['a', 'cron'])
  })

  test(`${engine.name}: a time is written as the others in its column are`, async () => {
    await using db = await engine.empty()
    const integer = engine.name === 'sqlite' ? 'INTEGER' : 'bigint'
    const float = engine.name === 'sqlite' ? 'REAL' : 'double precision'
    const shapes: [type: string, other: string | null, started: string, written: unknown][] = [
      [integer, '1700000000', '1700000000', NOW / 1_000],
      [integer, '1700000000000', '1700000000000', NOW],
      [integer, null, '1700000000', NOW / 1_000],
      [integer, null, 'NULL', NOW],
      [float, '1700000000.5', 'NULL', NOW / 1_000],
      ['text', `'2026-01-01 00:00:00'`, 'NULL', '2026-11-16 12:00:00'],
      ['text', `'2026-01-01T00:00:00.000+02:00'`, 'NULL', '2026-11-16T14:00:00.000+02:00'],
      ['text', null, `'2026-01-01T00:00:00.123456'`, '2026-11-16T12:00:00.000000'],
      ['text', `'1700000000'`, 'NULL', String(NOW / 1_000)],
      ['text', null, 'NULL', '2026-11-16T12:00:00.000Z'],
    ]
    const isWhole = engine.name === 'sqlite' || isLong
    for (const [n, [type, other, started, written]] of shapes.entries()) {
      if (!isWhole && n % 2 === 1) continue
      const name = `runs_${n}`
      await db.raw(/* sql */ `
        CREATE TABLE ${name} (id integer PRIMARY KEY, status text, at ${type}, ended ${type}, beat ${type});
        INSERT INTO ${name} VALUES (1, 'running', ${started}, NULL, NULL), (2, 'done', NULL, ${other ?? 'NULL'}, NULL);
      `)
      await using opening = await openTestTable(db.url, {
        table: name,
        columns: { id: 'id', status: 'status', startedAt: 'at', finishedAt: 'ended' },
        statuses: STATUSES,
      })
      const row = (await opening.table.row('1'))!
      const after = await opening.table.change(row, { status: 'failed', finishedAt: NOW })
      assert.equal(after!.finishedAt, NOW)
      const [left] = await runUserSql(db.url, `SELECT ended FROM ${name} WHERE id = 1`)
      const value = left!['ended']
      assert.equal(typeof written === 'number' ? Number(value) : value, written, `${n}`)
    }
  })

  test(`${engine.name}: a column that cannot be null keeps what it has, and rows that share an id are left alone`, async () => {
    await using db = await engine.empty()
    await db.raw(/* sql */ `
      CREATE TABLE jobs (id integer, status text NOT NULL, owner text NOT NULL, beat text, note text);
      INSERT INTO jobs VALUES (1, 'running', 'me', 'x', 'y'), (2, 'running', 'me', 'x', 'y'), (2, 'running', 'me', 'x', 'z');
    `)
    await using opening = await openTestTable(db.url, {
      table: 'jobs',
      columns: { id: 'id', status: 'status', owner: 'owner', heartbeatAt: 'beat' },
      statuses: STATUSES,
    })
    const { table } = opening
    assert.match(table.warnings.join(), /no unique index/)
    const [one, two] = [(await table.row('1'))!, (await table.row('2'))!]
    assert.equal(await table.change(two, { status: 'waiting' }), null)
    const after = await table.change(one, { status: 'waiting', owner: null, heartbeatAt: null })
    assert.deepEqual(
      [after!.status, after!.owner, after!.snapshot['beat']],
      ['waiting', 'me', null],
    )
    // Nothing of it is mapped: nothing is written, and whether it still is the same row is told all the same.
    assert.equal((await table.change(after!, { error: 'x' }))?.status, 'waiting')
    assert.equal(await table.change(one, { error: 'x' }), null)
  })

  test(`${engine.name}: a change rejected by the table's constraints is reported, and nothing is written`, async () => {
    await using db = await engine.empty()
    await db.raw(/* sql */ `
      CREATE TABLE jobs (id integer PRIMARY KEY, status text CHECK (status IN ('running', 'done')));
      INSERT INTO jobs VALUES (1, 'running');
    `)
    await using opening = await openTestTable(db.url, {
      table: 'jobs',
      columns: { id: 'id', status: 'status' },
      statuses: STATUSES,
    })
    const row = (await opening.table.row('1'))!
    await assert.rejects(opening.table.change(row, { status: 'failed' }), {
      name: 'RefusedError',
      message: /refused the change/,
    })
    assert.equal((await opening.table.row('1'))!.status, 'running')
    await db.raw('ALTER TABLE jobs RENAME COLUMN status TO state')
    await assert.rejects(opening.table.row('1'), { name: 'UsageError' })
  })
}

const JOBS: AdoptedOptions = {
  table: 'jobs',
  columns: { id: 'id', status: 'status', activityAt: 'updated_at', checkpoint: 'progress' },
  statuses: STATUSES,
}

test('sqlite: the result includes changes made by triggers, and a new checkpoint makes a new row hash', async () => {
  await using db = await sqliteEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE jobs (id TEXT PRIMARY KEY, status TEXT, progress BLOB, updated_at TEXT);
    INSERT INTO jobs VALUES ('a', 'running', x'0001ff', '2026-01-01 00:00:00');
    CREATE TRIGGER touched AFTER UPDATE ON jobs
      BEGIN UPDATE jobs SET updated_at = '2026-11-16 12:00:00' WHERE id = new.id; END;
  `)
  await using opening = await openTestTable(db.url, JOBS)
  const row = (await opening.table.row('a'))!
  const after = (await opening.table.change(row, { status: 'waiting' }))!
  assert.equal(after.activityAt, NOW)
  assert.equal((await opening.table.change(after, { status: 'running' }))?.status, 'running')
  const again = (await opening.table.row('a'))!
  await db.raw(`UPDATE jobs SET progress = x'0002ff'`)
  assert.equal(await opening.table.change(again, { status: 'failed' }), null)
})

test('sqlite: while another program writes, this waits, and its journal stays the one it was', async () => {
  await using db = await sqliteEngine.empty()
  await db.raw('PRAGMA journal_mode = DELETE')
  await using opening = await openUserTable(db.url, crawlRuns)
  await insertRows(db.url, crawlRuns, [{ id: 'a', course_id: 'x', started_at: minutesAgo(1) }])
  const row = (await opening.table.row('a'))!
  using other = new DatabaseSync(db.url.slice('sqlite:'.length))
  other.exec('BEGIN EXCLUSIVE')
  const [reading, changing] = [
    opening.table.row('a'),
    opening.table.change(row, { status: 'failed' }),
  ]
  other.exec(`UPDATE crawl_runs SET extracted_total = 5`)
  other.exec('COMMIT')
  assert.equal(await changing, null)
  assert.equal((await reading)!.extracted, 5)
  const [mode] = await db.raw('PRAGMA journal_mode')
  assert.equal(mode!['journal_mode'], 'delete')
})

test('sqlite: a change whose commit waits for a reader is repeated, and made once', async () => {
  await using db = await sqliteEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE jobs (id INTEGER PRIMARY KEY, status TEXT);
    INSERT INTO jobs VALUES (1, 'running'), (2, 'running');
  `)
  using other = new DatabaseSync(db.url.slice('sqlite:'.length))
  other.exec('PRAGMA journal_mode = DELETE')
  const columns = { id: 'id', status: 'status' }
  await using opening = await openTestTable(db.url, { table: 'jobs', columns, statuses: STATUSES })
  const { table } = opening
  const row = (await table.row('1'))!
  const reader = other.prepare('SELECT id FROM jobs').iterate()
  reader.next()
  const changing = table.change(row, { status: 'failed' })
  // By then the first commit was refused.
  setTimeout(() => reader.return!(), 100)
  assert.equal((await changing)?.status, 'failed')
  assert.equal(await table.change(row, { status: 'failed' }), null)
})

test('sqlite: text that is not UTF-8 cannot be compared, so its row is left alone, with a warning', async () => {
  await using db = await sqliteEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE jobs (id INTEGER PRIMARY KEY, status TEXT, updated_at TEXT, progress TEXT, note TEXT);
    INSERT INTO jobs VALUES (1, 'running', CAST(x'e9e8' AS TEXT), NULL, NULL), (2, 'running', NULL, NULL, CAST(x'e9e8' AS TEXT));
  `)
  await using opening = await openTestTable(db.url, JOBS)
  const [two, one] = await opening.table.rows({ limit: 2 })
  await assert.rejects(opening.table.change(one!, { status: 'failed' }), {
    name: 'RefusedError',
    message: /^Row 1 of tested is not changed: .* not UTF-8/,
  })
  assert.equal((await opening.table.change(two!, { status: 'failed' }))?.status, 'failed')
})

test('sqlite: rows whose ids are equal as text are left alone, in a column that distinguishes them', async () => {
  await using db = await sqliteEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE jobs (id UNIQUE, status TEXT, updated_at TEXT, progress TEXT);
    INSERT INTO jobs (id, status) VALUES (1, 'running'), ('1', 'running'), (2, 'running'), ('x', 'running');
  `)
  await using opening = await openTestTable(db.url, JOBS)
  const changed = []
  for (const row of await opening.table.rows({ limit: 4 }))
    changed.push([
      row.snapshot['id'],
      (await opening.table.change(row, { status: 'failed' }))?.status,
    ])
  assert.deepEqual(
    new Map(changed as [unknown, unknown][]),
    new Map<unknown, unknown>([
      ['x', 'failed'],
      [2, 'failed'],
      ['1', undefined],
      [1, undefined],
    ]),
  )
})

test('postgres: a row that another transaction holds is refused in time, and nothing is written to it later', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE jobs (id integer PRIMARY KEY, status text, updated_at text, progress text, note text);
    INSERT INTO jobs VALUES (1, 'running'), (2, 'running');
  `)
  await using opening = await openTestTable(db.url, JOBS)
  const [two, one] = await opening.table.rows({ limit: 2 })
  const other = new Client(db.url)
  await other.connect()
  try {
    await other.query(`BEGIN; UPDATE jobs SET note = 'held' WHERE id = 1`)
    await assert.rejects(opening.table.change(one!, { status: 'failed' }), {
      name: 'RefusedError',
      message: /^Row 1 of tested is not changed: another transaction has locked it/,
    })
    assert.equal((await opening.table.change(two!, { status: 'failed' }))?.status, 'failed')
  } finally {
    await other.query('COMMIT')
    await other.end()
  }
  assert.equal((await opening.table.row('1'))!.status, 'running')
  assert.equal((await opening.table.change(one!, { status: 'failed' }))?.status, 'failed')
})

test('postgres: values of any type are compared as they stand there, to the last digit', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE DOMAIN words AS varchar(12);
    CREATE TABLE jobs (
      id numeric PRIMARY KEY, status words, updated_at timestamptz(6), progress json, score float8, error varchar(10),
      ended date
    );
    INSERT INTO jobs VALUES (12345678901234567890.5, 'running', '2026-01-01 00:00:00.123456+00', '{"a" : 1}', 0.1, NULL, NULL);
  `)
  await using opening = await openTestTable(db.url, {
    ...JOBS,
    columns: { ...JOBS.columns, extracted: 'score', error: 'error', finishedAt: 'ended' },
  })
  const row = (await opening.table.row('12345678901234567890.5'))!
  assert.deepEqual([row.extracted, row.hasCheckpoint], [0.1, true])
  const after = await opening.table.change(row, {
    status: 'failed',
    error: 'longer than there is room\0',
    finishedAt: NOW,
  })
  assert.deepEqual([after!.error, after!.snapshot['ended']], ['longer tha', '2026-11-16'])
  await db.raw(`UPDATE jobs SET updated_at = '2026-01-01 00:00:00.123457+00'`)
  assert.equal(await opening.table.change(after!, { status: 'running' }), null)
  const moved = (await opening.table.row(row.key))!
  await db.raw(`UPDATE jobs SET progress = '{"a": 1}'`)
  assert.equal(await opening.table.change(moved, { status: 'running' }), null)
})

test('postgres: a time is written as a number that its column can hold, whatever the other times are', async () => {
  await using db = await postgresEngine.empty()
  const shapes = [
    ['bigint', '1700000000000', 'integer'],
    ['float8', '1700000000.25', 'integer'],
    ['float8', '1700000000.25', 'bigint'],
    ['text', "'1700000000.25'", 'bigint'],
  ] as const
  for (const [n, [began, at, ended]] of shapes.entries()) {
    await db.raw(/* sql */ `
      CREATE TABLE jobs_${n} (id integer PRIMARY KEY, status text, at ${began}, ended ${ended});
      INSERT INTO jobs_${n} VALUES (1, 'running', ${at}, NULL);
    `)
    await using opening = await openTestTable(db.url, {
      table: `jobs_${n}`,
      columns: { id: 'id', status: 'status', startedAt: 'at', finishedAt: 'ended' },
      statuses: STATUSES,
    })
    const row = (await opening.table.row('1'))!
    const after = await opening.table.change(row, { status: 'failed', finishedAt: NOW })
    assert.deepEqual([after!.finishedAt, after!.snapshot['ended']], [NOW, String(NOW / 1_000)])
  }
})

test('postgres: a domain is as good as the type beneath it, however deep that is', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE TYPE state AS ENUM ('running', 'failed', 'waiting');
    CREATE DOMAIN some_state AS state;
    CREATE DOMAIN word AS varchar(7); CREATE DOMAIN good_word AS word NOT NULL; CREATE DOMAIN best_word AS good_word;
    CREATE DOMAIN key AS uuid; CREATE DOMAIN best_key AS key; CREATE DOMAIN moment AS timestamptz;
  `)
  for (const type of ['some_state', 'best_word']) {
    await db.raw(/* sql */ `
      CREATE TABLE jobs_${type} (id best_key PRIMARY KEY, status ${type}, ended moment, error best_word);
      INSERT INTO jobs_${type} VALUES ('${UUIDS[0]}', 'running', NULL, ''), ('${UUIDS[1]}', 'running', NULL, '');
      CREATE INDEX ON jobs_${type} (status);
    `)
    const options: AdoptedOptions = {
      table: `jobs_${type}`,
      columns: { id: 'id', status: 'status', finishedAt: 'ended', error: 'error' },
      statuses: STATUSES,
    }
    await using opening = await openTestTable(db.url, options)
    const { table } = opening
    const [row, ...others] = await table.rows({ statusValues: valuesOf('RUNNING'), limit: 5 })
    const { key } = row!
    assert.deepEqual([key, others.length], [UUIDS[1], 1])
    assert.equal((await table.rows({ limit: 5, after: { listedAt: null, key } })).length, 1)
    const change = { status: 'failed', finishedAt: NOW, error: 'too long for it' }
    const after = (await table.change((await table.row(key))!, change))!
    assert.deepEqual([after.status, after.finishedAt, after.error], ['failed', NOW, 'too lon'])
    // It cannot be null, which the domain beneath says.
    assert.equal((await table.change(after, { error: null }))?.error, 'too lon')
    const [long, wrong] = ['at-work!', 'nothing']
    const statuses = { active: type === 'best_word' ? long : wrong }
    await assert.rejects(
      openTestTable(db.url, { ...options, statuses }),
      /longer than the 7|value of the enum/,
    )
  }
})

/** Everything that the database has been told to have. */
function schemaOf(url: string): Promise<Record<string, unknown>[]> {
  return runUserSql(
    url,
    engineOf(url) === 'sqlite'
      ? 'SELECT type, name, sql FROM sqlite_schema ORDER BY name'
      : /* sql */ `
        SELECT c.relname, c.relkind, a.attname, a.atttypid, a.attnotnull
          FROM pg_class c LEFT JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'pg_toast'::regnamespace)
         ORDER BY 1, 3
      `,
  )
}

function isEqual(one: unknown, other: unknown): boolean {
  return JSON.stringify(one) === JSON.stringify(other)
}
