import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ENGINES, mappingOf, openTestTable, valuesOf } from '../../../testing/open-test-table.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import {
  crawlRuns,
  insertRows,
  createUserTable,
  qualificationRuns,
  readUserRows,
  runUserSql,
} from '../../../testing/user-tables.ts'
import type { AdoptedOptions } from '../mapping.ts'
import { openAdoptedTable } from './table.ts'

const JOBS: AdoptedOptions = {
  table: 'jobs',
  columns: { id: 'id', status: 'status' },
  statuses: { active: 'running', failed: 'failed' },
}

/** What is said about a mapping that does not fit. */
async function openError(url: string, options: AdoptedOptions): Promise<string> {
  try {
    await (await openAdoptedTable(mappingOf(options), url)).close()
  } catch (error) {
    assert.ok(error instanceof Error)
    assert.equal(error.name, 'UsageError', error.message)
    return error.message
  }
  return 'nothing'
}

for (const engine of ENGINES) {
  test(`${engine.name}: a missing table or column is named with a suggestion`, async () => {
    await using db = await engine.empty()
    await createUserTable(db.url, crawlRuns)
    const options = crawlRuns.options[engine.name]
    const near = await openError(db.url, {
      ...options,
      table: options.table.replace('runs', 'run'),
    })
    assert.match(
      near,
      /^adopted\.tested: there is no table .*crawl_run in .* did you mean .*crawl_runs\?/,
    )
    assert.match(
      await openError(db.url, { ...options, table: 'nothing' }),
      /no table nothing .*\.$/,
    )
    const columns = { ...options.columns, status: 'Satus', error: 'nothing_like_it' }
    const both = await openError(db.url, { ...options, columns })
    assert.match(both, /columns\.status: there is no column Satus; did you mean status\?/)
    assert.match(both, /columns\.error: there is no column nothing_like_it\./)
  })

  test(`${engine.name}: a table that cannot be written is rejected before any verdict`, async () => {
    await using db = await engine.empty()
    await db.raw(/* sql */ `
      CREATE TABLE jobs (id integer PRIMARY KEY, word text, status text GENERATED ALWAYS AS (lower(word)) STORED);
      CREATE VIEW seen AS SELECT id, max(word) AS status FROM jobs GROUP BY id;
    `)
    assert.match(await openError(db.url, JOBS), /columns\.status: status is computed/)
    assert.match(await openError(db.url, { ...JOBS, table: 'seen' }), /seen is a view/)
  })

  test(`${engine.name}: a large table without an index on its status gets a warning`, async () => {
    await using db = await engine.empty()
    await db.raw(/* sql */ `
      CREATE TABLE jobs (id integer PRIMARY KEY, status text);
      INSERT INTO jobs WITH RECURSIVE n (id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM n WHERE id <= 10000)
        SELECT id, 'done' FROM n;
    `)
    await using big = await openTestTable(db.url, JOBS)
    assert.match(big.table.warnings.join(), /more than 10000 rows and no index on status/)
    await db.raw('CREATE INDEX jobs_status ON jobs (status, id)')
    await using indexed = await openTestTable(db.url, JOBS)
    assert.deepEqual(indexed.table.warnings, [])
  })
}

test('sqlite: a file that is not there is not made, and a schema is no part of a name', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'none.db')
  await assert.rejects(openAdoptedTable(mappingOf(JOBS), `sqlite:${path}`), {
    code: 'E_DB_UNUSABLE',
  })
  assert.equal(existsSync(path), false)
  await runUserSql(`sqlite:${path}`, 'CREATE TABLE jobs (id BLOB PRIMARY KEY, status TEXT)')
  const url = `sqlite:${path}`
  assert.match(await openError(url, { ...JOBS, table: 'app.jobs' }), /SQLite has none/)
  assert.match(await openError(url, JOBS), /columns\.id: id is of type BLOB/)
  assert.match(await openError(url, { ...JOBS, table: 'sqlite_schema' }), /no table sqlite_schema/)
})

test("sqlite: Unstuck's own tables are not the user's, though they may stand in one file", async () => {
  await using db = await sqliteEngine.fresh()
  await db.raw('CREATE TABLE jobs (id INTEGER PRIMARY KEY, status TEXT)')
  assert.equal(await openError(db.url, JOBS), 'nothing')
  assert.match(await openError(db.url, { ...JOBS, table: 'run' }), /there is no table run in/)
  assert.match(await openError(db.url, { ...JOBS, table: 'Target' }), /there is no table Target in/)
  await using theirs = await sqliteEngine.empty()
  await theirs.raw('CREATE TABLE run (id INTEGER PRIMARY KEY, status TEXT)')
  assert.equal(await openError(theirs.url, { ...JOBS, table: 'run' }), 'nothing')
})

test('sqlite: names are the same in any case, as they are to SQLite', async () => {
  await using db = await sqliteEngine.empty()
  await db.raw(
    `CREATE TABLE Jobs (ID TEXT PRIMARY KEY, Status); INSERT INTO Jobs VALUES ('a', 'running')`,
  )
  await using opening = await openTestTable(db.url, JOBS)
  const row = (await opening.table.row('a'))!
  assert.deepEqual(row.snapshot, { id: 'a', status: 'running' })
  assert.equal((await opening.table.change(row, { status: 'failed' }))?.status, 'failed')
})

test('postgres: a table is found in its schema, however that is called, or where the search path leads', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE SCHEMA "Course$Crawler";
    CREATE TABLE "Course$Crawler"."Runs" ("ID" uuid PRIMARY KEY, "order" text);
    INSERT INTO "Course$Crawler"."Runs" VALUES (gen_random_uuid(), 'running');
    CREATE SCHEMA unstuck; CREATE TABLE unstuck.run (id uuid PRIMARY KEY, status text);
  `)
  const columns = { id: 'ID', status: 'order' }
  await using opening = await openTestTable(db.url, {
    ...JOBS,
    table: 'Course$Crawler.Runs',
    columns,
  })
  const [row] = await opening.table.rows({ statusValues: valuesOf('RUNNING'), limit: 1 })
  assert.equal((await opening.table.change(row!, { status: 'failed' }))?.status, 'failed')
  assert.match(
    await openError(db.url, { ...JOBS, table: 'Runs' }),
    /did you mean Course\$Crawler\.Runs/,
  )
  assert.match(
    await openError(db.url, { ...JOBS, table: 'Course_Crawler.Runs' }),
    /did you mean Course\$Crawler\.Runs/,
  )
  assert.match(await openError(db.url, { ...JOBS, table: 'pg_catalog.pg_class' }), /no table/)
  assert.match(await openError(db.url, { ...JOBS, table: 'unstuck.run' }), /no table/)
})

test('postgres: a view is as good as a table if what is written in it is a column of one, or a trigger takes it', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE work (id integer PRIMARY KEY, word text);
    INSERT INTO work VALUES (1, 'running');
    CREATE VIEW plain AS SELECT id, word AS status, lower(word) AS error FROM work;
    CREATE VIEW jobs AS SELECT id, lower(word) AS status FROM work;
  `)
  await using plain = await openTestTable(db.url, { ...JOBS, table: 'plain' })
  const row = (await plain.table.row('1'))!
  assert.equal((await plain.table.change(row, { status: 'failed' }))?.status, 'failed')
  const columns = { ...JOBS.columns, error: 'error' }
  assert.match(await openError(db.url, { ...JOBS, table: 'plain', columns }), /error is computed/)
  assert.match(await openError(db.url, JOBS), /columns\.status: status is computed/)

  await db.raw(/* sql */ `
    CREATE FUNCTION written() RETURNS trigger LANGUAGE plpgsql
      AS $$ BEGIN UPDATE work SET word = NEW.status WHERE id = NEW.id; RETURN NEW; END $$;
    CREATE TRIGGER written INSTEAD OF UPDATE ON jobs FOR EACH ROW EXECUTE FUNCTION written();
  `)
  assert.equal(await openError(db.url, JOBS), 'nothing')
})

test('postgres: unsuitable column types and unknown enum values are rejected', async () => {
  await using db = await postgresEngine.empty()
  await createUserTable(db.url, qualificationRuns)
  await db.raw(`CREATE TABLE jobs (id bytea PRIMARY KEY, status integer, at interval, n boolean)`)
  const columns = { id: 'id', status: 'status', startedAt: 'at', done: 'n' }
  const all = await openError(db.url, { ...JOBS, columns })
  assert.match(all, /columns\.id: id is of type bytea, and must be text, a uuid or a whole number/)
  assert.match(
    all,
    /statuses\.active: running is not a whole number .* of type integer\. Write the number/,
  )
  assert.match(all, /columns\.startedAt: at is of type interval/)
  assert.match(all, /columns\.done: n is of type boolean, and must be a number/)

  const options = qualificationRuns.options.postgres
  const statuses = { ...options.statuses, active: ['Processing', 'RUNING'], failed: 'FAILD' }
  const words = await openError(db.url, { ...options, statuses })
  assert.doesNotMatch(words, /Processing is/)
  assert.match(words, /statuses\.active: RUNING is not a value of the enum/)
  assert.match(words, /statuses\.failed: FAILD is .* it has FAILED/)
})

test('postgres: many tables of one database share a few connections, and the last that is closed ends them', async () => {
  await using db = await postgresEngine.empty()
  const names = Array.from({ length: 12 }, (_, n) => `jobs_${n}`)
  for (const name of names) await db.raw(`CREATE TABLE ${name} (id int PRIMARY KEY, status text)`)
  const connections = async (): Promise<number> => {
    const [found] = await runUserSql(
      db.url,
      /* sql */ `
      SELECT count(*)::int AS n FROM pg_stat_activity
       WHERE datname = current_database() AND application_name = 'unstuck'`,
    )
    return found!['n'] as number
  }
  const tables = await Promise.all(
    names.map((table) => openAdoptedTable(mappingOf({ ...JOBS, table }), db.url)),
  )
  const askAll = (some: typeof tables) =>
    Promise.all(some.flatMap((table) => [table.counts(), table.clock()]))
  await askAll(tables)
  const most = await connections()
  assert.ok(most > 1 && most <= 5, `${most}`)

  const [last, ...others] = tables
  await Promise.all(others.flatMap((table) => [table.close(), table.close()]))
  await askAll([last!])
  await last!.close()
  for (const until = Date.now() + 60_000; (await connections()) > 0;)
    assert.ok(Date.now() < until, 'they are ended')
})

test('postgres: a status value longer than its column is rejected, not truncated', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(`CREATE TABLE jobs (id integer PRIMARY KEY, status varchar(8))`)
  const statuses = { ...JOBS.statuses, abandoned: ['Timeout', 'Timeout - cleaned'] }
  assert.match(
    await openError(db.url, { ...JOBS, statuses }),
    /statuses\.abandoned: Timeout - cleaned is longer than the 8 characters that status takes\.$/,
  )
})

test('postgres: timestamps without a zone in a non-UTC database get a warning, unless a zone is configured', async () => {
  await using db = await postgresEngine.empty()
  const name = new URL(db.url).pathname.slice(1)
  await db.raw(/* sql */ `
    CREATE TABLE jobs (id integer PRIMARY KEY, status text, began timestamp, ended timestamptz);
    ALTER DATABASE "${name}" SET timezone = 'America/New_York';
  `)
  const columns = { ...JOBS.columns, startedAt: 'began', finishedAt: 'ended' }
  const remarks = async (more: Partial<AdoptedOptions> = {}): Promise<readonly string[]> => {
    await using opening = await openTestTable(db.url, { ...JOBS, columns, ...more })
    return opening.table.warnings
  }
  assert.deepEqual(await remarks(), [
    'public.jobs: times in began have no time zone and are read as UTC, but the database uses America/New_York. ' +
      "Set timeZone: 'America/New_York' if they are in that zone, or timeZone: 'UTC'.",
  ])
  assert.deepEqual(await remarks({ timeZone: 'UTC' }), [])
  assert.deepEqual(await remarks({ columns: { ...columns, startedAt: 'ended' } }), [])
  await db.raw(`ALTER DATABASE "${name}" SET timezone = 'Etc/UTC'`)
  assert.deepEqual(await remarks(), [])
})

test('postgres: a login that may read the mapped columns can look, with UPDATE on them it can act, and no less is enough', async () => {
  await using db = await postgresEngine.empty()
  await createUserTable(db.url, crawlRuns)
  const id = '00000000-0000-4000-8000-000000000001'
  await insertRows(db.url, crawlRuns, [{ id, course_id: 'algebra', started_at: new Date() }])
  const { columns } = crawlRuns.options.postgres
  const login = `crawler_${process.pid}`
  const url = new URL(db.url)
  url.username = login
  url.password = 'crawler'
  const options = crawlRuns.options.postgres
  await db.raw(`CREATE ROLE ${login} LOGIN PASSWORD 'crawler'`)
  try {
    assert.match(
      await openError(url.href, options),
      /GRANT USAGE ON SCHEMA course_crawler TO crawler_/,
    )
    await db.raw(`GRANT USAGE ON SCHEMA course_crawler TO ${login}`)
    const rights = await openError(url.href, options)
    assert.match(rights, /GRANT SELECT \(id, .*\) ON course_crawler\.crawl_runs TO crawler_/)
    const read = Object.values(columns).join(', ')
    await db.raw(`GRANT SELECT (${read}) ON course_crawler.crawl_runs TO ${login}`)
    const grant = /GRANT UPDATE \(status, finished_at, error\) ON course_crawler\.crawl_runs TO/
    await using looking = await openTestTable(url.href, options)
    assert.match(looking.table.warnings.join(), grant)
    const seen = (await looking.table.row(id))!
    await assert.rejects(looking.table.change(seen, { status: 'failed' }), { message: grant })
    assert.equal(looking.table.isStale, true, 'the right may be there with the next look')

    await db.raw(
      `GRANT UPDATE (status, finished_at, error) ON course_crawler.crawl_runs TO ${login}`,
    )
    await using opening = await openTestTable(url.href, { ...options, alive: () => undefined })
    const { table } = opening
    const row = (await table.row(id))!
    assert.ok(!('triggered_by' in row.userRow))
    const change = { status: 'failed', finishedAt: Date.now(), error: 'left behind' }
    const after = (await table.change(row, change))!
    assert.equal((await table.change(after, { restore: row.snapshot }))?.status, 'running')
    assert.deepEqual([await table.keys(null, 5), (await table.counts()).length], [[id], 1])
    assert.equal((await readUserRows(db.url, crawlRuns)).length, 1)
  } finally {
    await db.raw(`DROP OWNED BY ${login}; DROP ROLE ${login}`)
  }
})

test('an unreachable server and an invalid address are reported', async () => {
  await assert.rejects(
    openAdoptedTable(mappingOf(JOBS), 'postgres://nobody:secret@127.0.0.1:1/x'),
    {
      code: 'E_DB_UNREACHABLE',
      message: /^(?!.*secret)/,
    },
  )
  await assert.rejects(openAdoptedTable(mappingOf(JOBS), 'mysql://nobody:secret@host/x'), {
    name: 'UsageError',
    message: /^(?!.*secret)/,
  })
})
