import assert from 'node:assert/strict'
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { findTables } from './find-tables.ts'
import { qualifiedName } from './columns.ts'
import { openStore } from '../../../core/store/open.ts'
import { emptyProject } from '../../../testing/empty-project.ts'
import { noTerminal, createCliTestContext } from '../../../testing/cli-test-context.ts'
import { createDatabase } from '../../../testing/postgres.ts'
import { unstuck, type CliResult } from '../../../testing/unstuck-cli.ts'
import {
  crawlRuns,
  insertRows,
  createUserTable,
  qualificationRuns,
  tenderRuns,
  USER_TABLES,
  readUserRows,
  runUserSql,
  ypTargets,
} from '../../../testing/user-tables.ts'

type AdoptResult = {
  proposals: {
    table: string
    name: string | null
    kind: string
    sure: boolean
    adopted: boolean
    dryRun: {
      live: number
      actions: Record<string, number>
      examples: { row: string }[]
      warnings: string[]
    } | null
    dryRunError: string | null
  }[]
  rejected: { table: string; because: string }[]
  config: { path: string; action: string; text: string | null }
}

const minutesAgo = (minutes: number): Date => new Date(Date.now() - minutes * 60_000)
const HOSTILE_NAME = `evil"; DROP TABLE runs; --\u202e\u001b[2J`

/** A day's work of people who keep their own books, some of it stuck. */
async function fillTables(url: string): Promise<void> {
  for (const table of Object.values(USER_TABLES)) await createUserTable(url, table)
  await insertRows(url, crawlRuns, [
    { id: uuid(1), course_id: 'maths', status: 'running', started_at: minutesAgo(30 * 60) },
    {
      id: uuid(2),
      course_id: 'art',
      status: 'running',
      started_at: minutesAgo(9),
      extracted_total: 3,
    },
    { id: uuid(3), course_id: 'art', status: 'failed', started_at: minutesAgo(90 * 60) },
  ])
  await insertRows(url, tenderRuns, [
    { portal_name: 'ted', status: 'running', started_at: minutesAgo(5) },
  ])
  await insertRows(url, qualificationRuns, [
    { id: 'q1', status: 'PROCESSING', createdAt: minutesAgo(10), total: 1 },
    { id: 'q2', status: 'COMPLETED', createdAt: minutesAgo(90), completed: 1, total: 1 },
  ])
  await insertRows(url, ypTargets, [
    {
      slug: 'ca/la',
      status: 'IN_PROGRESS',
      claimed_by: 'w1',
      heartbeat_at: minutesAgo(90),
      page_current: 4,
    },
    {
      slug: 'ca/sf',
      status: 'IN_PROGRESS',
      claimed_by: 'w2',
      heartbeat_at: minutesAgo(20),
      page_current: 2,
    },
    { slug: 'tx/austin', status: 'PLANNED' },
  ])
}

const uuid = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`

async function adopt(
  args: readonly string[],
  where: Parameters<typeof unstuck>[1],
): Promise<AdoptResult> {
  const { code, stdout, stderr } = await unstuck(['adopt', ...args, '--json'], where)
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout) as AdoptResult
}

/** What `recover --dry-run` says by the written config, counted as the proposal counts it. */
async function verdictsByConfig(
  where: Parameters<typeof unstuck>[1],
): Promise<Map<string, number>> {
  const { stdout, stderr } = await unstuck(['recover', '--dry-run', '--json'], where)
  assert.notEqual(stdout, '', stderr)
  const { active, verdicts } = JSON.parse(stdout) as {
    active: { origin: { table: string; key: string }; action: string }[]
    verdicts: { source: string; target: string | null; action: string }[]
  }
  const lines = [
    ...active
      .filter(({ origin }) => origin.key !== '')
      .map(({ origin, action }) => `${origin.table} ${action}`),
    ...verdicts
      .filter(({ target, source }) => target !== null && source === 'yp_targets')
      .map(({ source, action }) => `${source} ${action}`),
  ]
  return new Map(
    Object.entries(Object.groupBy(lines, (line) => line)).map(([line, all]) => [line, all!.length]),
  )
}

function proposedVerdicts({ proposals }: AdoptResult): Map<string, number> {
  return new Map(
    proposals.flatMap(({ name, kind, dryRun }) =>
      Object.entries(dryRun?.actions ?? {})
        .filter(([action]) => kind === 'runs' || action !== 'leave')
        .map(([action, count]): [string, number] => [`${name} ${action}`, count]),
    ),
  )
}

async function dumpTables(url: string): Promise<unknown> {
  const rows = await Promise.all(
    Object.values(USER_TABLES).map((table) => readUserRows(url, table)),
  )
  const schema = url.startsWith('sqlite:')
    ? await runUserSql(url, 'SELECT * FROM sqlite_schema')
    : []
  return { rows, schema }
}

test('SQLite: runs tables are found, assessed and written to the config; the database is unchanged', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  const url = `sqlite:${join(cwd, 'app.db')}`
  await fillTables(url)
  await runUserSql(
    url,
    `CREATE TABLE users (id INTEGER PRIMARY KEY, status TEXT, email TEXT);
    INSERT INTO users VALUES (1, 'active', 'a@example.com');
    CREATE TABLE "${HOSTILE_NAME.replaceAll('"', '""')}" (id INTEGER PRIMARY KEY, status TEXT, started_at TEXT);
    INSERT INTO runs (portal_name, status) VALUES ('x', '${HOSTILE_NAME}')`,
  )
  const before = await dumpTables(url)

  const found = await adopt(['--db', 'sqlite:app.db'], { cwd })
  assert.deepEqual(
    found.proposals.map(({ table, kind, sure }) => [table, kind, sure]),
    [
      ['crawl_runs', 'runs', true],
      ['qualification_runs', 'runs', true],
      ['runs', 'runs', true],
      ['yp_targets', 'targets', true],
    ],
  )
  assert.deepEqual(Object.fromEntries(proposedVerdicts(found)), {
    'crawl_runs abandon': 1,
    'crawl_runs resumable': 1,
    'qualification_runs wait': 1,
    'runs wait': 1,
    'yp_targets resume': 1,
  })
  assert.deepEqual(
    found.rejected.map(({ table }) => table),
    [HOSTILE_NAME, 'users'],
  )
  assert.doesNotMatch(found.config.text!, /DROP/)
  assert.deepEqual(await dumpTables(url), before)
  assert.deepEqual(existsSync(join(cwd, '.unstuck')) || existsSync(found.config.path), false)

  const written = await unstuck(['adopt', '--db', 'sqlite:app.db', '--write'], { cwd })
  assert.equal(written.code, 0, written.stderr)
  assert.match(written.stdout, /^written .*unstuck\.config\.ts$/m)
  assert.match(
    written.stdout,
    /- abandon maths \(row 0{8}-.* of\s+crawl_runs\):\s+no owner is known, 30 h old, no progress/,
  )
  assert.match(written.stdout, /- resume target ca\/la of yp_targets: /)
  assert.doesNotMatch(written.stdout, /(?!\n)\p{Cc}|\u202e/u)
  assert.deepEqual(await verdictsByConfig({ cwd }), proposedVerdicts(found))

  const text = readFileSync(found.config.path, 'utf8')
  const again = await unstuck(['adopt', '--db', 'sqlite:app.db', '--write'], { cwd })
  assert.equal(again.code, 0, again.stderr)
  assert.match(again.stdout, /Already adopted as crawl_runs\.[^]*has all of this already\./)
  assert.equal(readFileSync(found.config.path, 'utf8'), text)
  assert.deepEqual(await dumpTables(url), before)
})

test('PostgreSQL: the config names a variable and no password, and reaches the verdicts shown', async () => {
  const database = await createDatabase()
  using project = emptyProject('project')
  const cwd = project.path
  try {
    const { url } = database
    await fillTables(url)
    const before = await dumpTables(url)
    const shown = await unstuck(['adopt', '--db', url], { cwd })
    assert.match(shown.stdout, /^ {2}Set DATABASE_URL to the address wherever Unstuck runs/m)
    const found = await adopt(['--db', url, '--write'], { cwd, env: { DATABASE_URL: url } })
    const tables = ['course_crawler.crawl_runs', 'qualification_runs', 'runs', 'yp_targets']
    assert.deepEqual(found.proposals.map(({ table }) => table).sort(), tables)
    assert.equal(found.config.action, 'written')
    const text = readFileSync(join(cwd, 'unstuck.config.ts'), 'utf8')
    assert.match(text, /^ {2}db: process\.env\['DATABASE_URL'\],$/m)
    assert.doesNotMatch(text, /postgres:\/\//)
    const schemas = `SELECT nspname FROM pg_namespace WHERE nspname = 'unstuck'`
    assert.deepEqual(await runUserSql(url, schemas), [])
    assert.deepEqual(
      await verdictsByConfig({ cwd, env: { DATABASE_URL: url } }),
      proposedVerdicts(found),
    )
    assert.deepEqual(await dumpTables(url), before)
    // Unstuck's own tables are there now, in their schema, and are not among those.
    assert.deepEqual((await findTables(url)).tables.map(qualifiedName).sort(), tables)

    await runUserSql(
      url,
      `CREATE ROLE reader_${process.pid} LOGIN PASSWORD 'r'; GRANT SELECT ON runs TO reader_${process.pid}`,
    )
    const reader = new URL(url)
    reader.username = `reader_${process.pid}`
    reader.password = 'r'
    const read = await adopt(['--db', reader.href, '--table', 'runs', '--name', 'other'], { cwd })
    assert.match(read.proposals[0]!.dryRun!.warnings.join(), /GRANT UPDATE \(status/)
    assert.doesNotMatch(JSON.stringify(read), /:r@/)

    await runUserSql(url, `REVOKE ALL ON runs FROM reader_${process.pid}`)
    const [nothing, named] = await Promise.all([
      unstuck(['adopt', '--db', reader.href], { cwd }),
      unstuck(['adopt', '--db', reader.href, '--table', 'runs'], { cwd }),
    ])
    assert.match(
      nothing.stdout,
      /^Not readable: .*public\.runs.*The login reader_\d+ lacks the right/m,
    )
    assert.match(nothing.stdout, /`GRANT USAGE ON SCHEMA course_crawler TO reader_\d+;`/)
    assert.doesNotMatch(nothing.stdout, /No table looks like runs/)
    assert.match(named.stderr, /may not read runs\. .* GRANT SELECT ON public\.runs TO reader_\d+;/)
    assert.deepEqual([nothing.code, named.code], [3, 2])
  } finally {
    await database.drop()
  }
})

test('an existing config is kept, unless --force is given', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  const url = `sqlite:${join(cwd, 'app.db')}`
  await createUserTable(url, tenderRuns)
  await insertRows(url, tenderRuns, [
    { portal_name: 'ted', status: 'running', started_at: minutesAgo(9) },
  ])
  const path = join(cwd, 'unstuck.config.ts')
  const mine = `export default { preset: 'development' }\n`
  writeFileSync(path, mine)

  const kept = await unstuck(['adopt', '--db', url, '--write'], { cwd })
  assert.equal(kept.code, 3)
  assert.equal(readFileSync(path, 'utf8'), mine)
  assert.match(kept.stdout, /exists and was not changed\. Add this to it/)
  assert.match(
    kept.stdout,
    /^ {2}adopted: \{\n {4}runs: \{\n {6}table: 'runs',\n {6}db: 'sqlite:app\.db',$/m,
  )
  // By the preset of the config that is there.
  assert.match(kept.stdout, /^- fail ted \(row 1 of runs\): .*9 min/m)

  const forced = await adopt(
    ['--db', url, '--table', 'runs', '--name', 'tenders', '--write', '--force'],
    { cwd },
  )
  assert.equal(forced.config.action, 'replaced')
  assert.match(readFileSync(path, 'utf8'), /defineConfig[^]*^ {4}tenders: \{$/m)
})

test('without a table to adopt, it prints that there is none', async () => {
  using project = emptyProject('project')
  const cwd = project.path
  const url = `sqlite:${join(cwd, 'app.db')}`
  await runUserSql(
    url,
    `CREATE TABLE users (id INTEGER PRIMARY KEY, status TEXT, created_at TEXT);
    CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT); INSERT INTO users VALUES (1, 'active', '2026-01-01')`,
  )
  await (await openStore(`sqlite:${join(cwd, 'own.db')}`)).close()
  const calls: [string[], number, RegExp][] = [
    [['--db', 'sqlite:own.db'], 3, /^0 tables in .*own\.db\./],
    [
      ['--db', url, '--write'],
      3,
      /- users: nothing else in it suggests work\.\n[^]*\n\nNo table looks like runs/,
    ],
    [
      ['--db', url],
      3,
      /- without a column named like a status: notes\. `--table NAME` examines one table/,
    ],
    [
      ['--db', url, '--table', 'notes'],
      3,
      /- notes: it has no column named like a status\.\n\n`--status-column COLUMN` names the column/,
    ],
    [['--db', url, '--table', 'notes', '--status-column', 'text'], 0, /status: 'text',/],
    [
      ['--db', url, '--status-column', 'text'],
      2,
      /--status-column is about one table: add --table/,
    ],
    [['--db', url, '--table', 'user'], 2, /There is no table "user" in .*Did you mean users\?/],
    [['--db', url, '--name', 'x'], 2, /--name is about one table: add --table/],
    [['--db', 'sqlite:other.db'], 2, /There is no database at sqlite:.*other\.db/],
    [['--db', 'mysql://app'], 2, /--db must be sqlite:PATH or postgres:/],
    [['--db', 'postgres://ann:secret@127.0.0.1:1/app'], 7, /127\.0\.0\.1:1\/app does not answer/],
  ]
  const said: CliResult[] = await Promise.all(
    calls.map(([args]) => unstuck(['adopt', ...args], { cwd })),
  )
  for (const [at, [args, code, words]] of calls.entries()) {
    const { stdout, stderr } = said[at]!
    assert.match(stdout + stderr, words, args.join(' '))
    assert.equal(said[at]!.code, code, args.join(' '))
    assert.doesNotMatch(stdout + stderr, /secret/)
  }
  // SQLite leaves its two beside a file that was only read.
  const files = readdirSync(cwd).filter((name) => !/-(shm|wal)$/.test(name))
  assert.deepEqual(files.sort(), ['app.db', 'node_modules', 'own.db', 'package.json'])
})

test(
  'on a terminal it asks before it writes, and shows the code whole',
  { skip: noTerminal },
  async () => {
    await using ctx = await createCliTestContext()
    const { url } = ctx.database
    // A table of the user's beside Unstuck's own, in one file.
    await createUserTable(url, tenderRuns)
    await insertRows(url, tenderRuns, [
      { portal_name: 'ted', status: 'running', started_at: minutesAgo(9) },
    ])
    const path = join(ctx.cwd, 'unstuck.config.ts')

    const no = await ctx.runInteractively(['adopt'], ['Write ', 'n\r'])
    assert.equal(no.code, 0, no.text)
    assert.match(no.text, /^1 table in /m)
    assert.match(no.text, /checkpoint: \(row\) => `checkpoints\/\$\{row\['id'\]\}\.json`,/)
    assert.match(no.text, / are failed when they have not changed for a while: 5 minutes$/m)
    assert.equal(existsSync(path), false)

    const yes = await ctx.runInteractively(['adopt'], ['Write ', 'y\r'])
    assert.equal(yes.code, 0, yes.text)
    assert.match(yes.text, /^written /m)
    assert.match(readFileSync(path, 'utf8'), /^ {6}db: 'sqlite:unstuck\.db',$/m)
  },
)
