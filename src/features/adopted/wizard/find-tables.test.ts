import assert from 'node:assert/strict'
import { chmodSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Client } from 'pg'
import { ENGINES } from '../../../testing/open-test-table.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { createDatabase } from '../../../testing/postgres.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { runUserSql } from '../../../testing/user-tables.ts'
import { findTables } from './find-tables.ts'
import type { FoundColumn } from './columns.ts'
import { propose } from './propose.ts'

const HOSTILE = `a"b'; DROP TABLE jobs; --`
const QUOTED = `"${HOSTILE.replaceAll('"', '""')}"`

/** `status enum [queued, running] running 2`: a column with what is allowed in it, and what is there. */
function describeColumn({ name, type, isPrimaryKey, allowedValues, values }: FoundColumn): string {
  const parts = [
    name,
    type,
    isPrimaryKey && 'key',
    allowedValues && `[${allowedValues.join(', ')}]`,
    ...(values ?? []).map(({ value, count }) => `${value} ${count}`),
  ]
  return parts.filter(Boolean).join(' ')
}

async function findTablesByName(url: string, only?: string): Promise<Record<string, string[]>> {
  const { tables } = await findTables(url, only)
  return Object.fromEntries(
    tables.map(({ schema, table, columns }) => [
      [schema, table].filter(Boolean).join('.'),
      columns.map(describeColumn),
    ]),
  )
}

test('SQLite: finds every table with its columns, and the values of possible status columns', async () => {
  using folder = temporaryFolder()
  const url = `sqlite:${join(folder.path, 'app.db')}`
  await runUserSql(
    url,
    `
    CREATE TABLE jobs (id INTEGER PRIMARY KEY, "Status" VARCHAR(9) CHECK ("Status" IN ('running', 'done')), at DATETIME);
    INSERT INTO jobs VALUES (1, 'running', 1), (2, 'running', 2), (3, 'done', 3), (4, NULL, 4);
    CREATE TABLE parts (a TEXT, b INT, job_state, n BOOLEAN, j JSON, PRIMARY KEY (a, b)) WITHOUT ROWID;
    INSERT INTO parts VALUES ('x', 1, 'late', 0, '{}'), ('x', 2, 7, 0, '{}');
    CREATE TABLE ${QUOTED} (id INTEGER PRIMARY KEY, status TEXT);
    CREATE VIEW seen AS SELECT * FROM jobs;
  `,
  )
  assert.deepEqual(await findTablesByName(url), {
    [HOSTILE]: ['id number key', 'status text'],
    jobs: ['id number key', 'Status text [running, done] running 2 done 1', 'at timestamptz'],
    parts: ['a text', 'b number', 'job_state other late 1', 'n boolean', 'j json'],
  })
  assert.deepEqual(Object.keys(await findTablesByName(url, 'JOBS')), ['jobs'])
  // Of a table that was named, every word is read: its status may be called anything.
  const parts = ['a text x 2', 'b number', 'job_state other late 1', 'n boolean', 'j json']
  assert.deepEqual(await findTablesByName(url, 'parts'), { parts })
  assert.deepEqual(await findTablesByName(url, HOSTILE.slice(1)), {})
})

test(
  'SQLite: a file that cannot be read without writing next to it is reported with a remedy',
  { skip: process.platform === 'win32' && 'folders are not read-only there' },
  async () => {
    using folder = temporaryFolder()
    const path = join(folder.path, 'app.db')
    const url = `sqlite:${path}`
    await runUserSql(url, 'CREATE TABLE jobs (id INTEGER PRIMARY KEY); PRAGMA journal_mode = WAL')
    assert.deepEqual(Object.keys(await findTablesByName(url)), ['jobs'])
    for (const name of ['app.db-shm', 'app.db-wal'])
      rmSync(join(folder.path, name), { force: true })
    // Readable by all, whatever the umask.
    chmodSync(path, 0o644)
    chmodSync(folder.path, 0o555)
    const isRoot = process.geteuid?.() === 0
    // Who may do anything is kept from nothing.
    if (isRoot) process.seteuid!(65_534)
    try {
      await assert.rejects(findTables(url), {
        code: 'E_DB_UNUSABLE',
        message: /^SQLite cannot read .*app\.db: .* WAL .* copy .* --db/,
      })
    } finally {
      if (isRoot) process.seteuid!(0)
      chmodSync(folder.path, 0o700)
    }
  },
)

for (const engine of ENGINES) {
  test(`${engine.name}: allowed values come only from a CHECK that lists them`, async () => {
    await using db = await engine.empty()
    await db.raw(/* sql */ `
      CREATE TABLE lists (id int PRIMARY KEY, status text CHECK (status <> '') CHECK (status IN ('a', 'b')));
      CREATE TABLE minds (id int PRIMARY KEY, status text CHECK (status <> ''));
    `)
    assert.deepEqual(await findTablesByName(db.url), {
      lists: ['id number key', 'status text [a, b]'],
      minds: ['id number key', 'status text'],
    })
  })
}

test('PostgreSQL: the same, with enums, checks, partitions, schemas and rights', async () => {
  const database = await createDatabase()
  try {
    const { url } = database
    await runUserSql(
      url,
      `
      CREATE SCHEMA "crawl$er";
      CREATE TYPE state AS ENUM ('queued', 'running');
      CREATE TABLE "crawl$er".jobs (id uuid PRIMARY KEY, state state, at timestamptz, done timestamp, n numeric(9, 2));
      INSERT INTO "crawl$er".jobs VALUES (gen_random_uuid(), 'running'), (gen_random_uuid(), 'running');
      CREATE TABLE runs (id int, status varchar(9) CHECK (status IN ('running', 'done')), day date, j jsonb) PARTITION BY RANGE (id);
      CREATE TABLE runs_1 PARTITION OF runs FOR VALUES FROM (0) TO (9);
      INSERT INTO runs VALUES (1, 'done'), (2, NULL);
      CREATE TABLE ${QUOTED} (id int PRIMARY KEY, status text);
      CREATE ROLE finder_${process.pid} LOGIN PASSWORD 'f'; GRANT SELECT (id, status) ON runs TO finder_${process.pid};
    `,
    )
    const all = await findTablesByName(url)
    const runs = ['id number', 'status text [running, done] done 1', 'day timestamp', 'j json']
    assert.deepEqual(all['runs'], runs)
    assert.deepEqual(all['crawl$er.jobs'], [
      'id uuid key',
      'state enum [queued, running] running 2',
      'at timestamptz',
      'done timestamp',
      'n number',
    ])
    assert.equal(Object.keys(all).length, 3)
    assert.deepEqual(Object.keys(await findTablesByName(url, 'crawl$er.jobs')), ['crawl$er.jobs'])

    const finder = new URL(url)
    finder.username = `finder_${process.pid}`
    finder.password = 'f'
    assert.deepEqual(await findTablesByName(finder.href), { runs: runs.slice(0, 2) })
    const { denied } = await findTables(finder.href)
    assert.deepEqual(denied, {
      login: finder.username,
      tables: [
        { schema: 'crawl$er', table: 'jobs' },
        { schema: 'public', table: HOSTILE },
      ],
    })
    assert.deepEqual((await findTables(url)).denied?.tables, [])
  } finally {
    await database.drop()
  }
})

test('PostgreSQL: a table whose rows cannot be read is reported, and the other tables are still found', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE held (id int PRIMARY KEY, status text, state text, started_at timestamptz);
    CREATE TABLE runs (id int PRIMARY KEY, status text, started_at timestamptz);
    INSERT INTO runs VALUES (1, 'running', now());
  `)
  const other = new Client(db.url)
  await other.connect()
  try {
    await other.query('BEGIN; LOCK TABLE held')
    const { tables } = await findTables(db.url)
    const because = tables.map((table) => [table.table, table.readError])
    assert.deepEqual(because, [
      ['held', 'another transaction has locked it'],
      ['runs', null],
    ])
    assert.deepEqual(propose(tables[0]!), {
      table: 'held',
      because: 'its rows could not be read: another transaction has locked it',
      hasNoStatus: false,
    })
    assert.deepEqual(tables[1]!.columns.map(describeColumn)[1], 'status text running 1')
  } finally {
    await other.end()
  }
})
