import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ENGINES,
  openTestTable,
  openUserTable,
  valuesOf,
} from '../../../testing/open-test-table.ts'
import { HOSTILE_TEXTS } from '../../../testing/hostile-text.ts'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import {
  crawlRuns,
  insertRows,
  createUserTable,
  type NewRow,
  qualificationRuns,
  tenderRuns,
  runUserSql,
  ypTargets,
} from '../../../testing/user-tables.ts'
import type { AdoptedOptions } from '../mapping.ts'
import { parseTimestamp } from './timestamps.ts'
import type { AdoptedRow, AdoptedTable, RowFilter } from './table.ts'

const NOW = Date.UTC(2026, 10, 16, 12, 0, 0)
const minutesAgo = (minutes: number): Date => new Date(NOW - minutes * 60_000)
const UUIDS = [1, 2, 3].map((n) => `00000000-0000-4000-8000-00000000000${n}`)
const STATUSES = { active: 'running', failed: 'failed' }

for (const engine of ENGINES) {
  test(`${engine.name}: a row of each example table is read correctly`, async () => {
    await using db = await engine.empty()

    await using crawls = await openUserTable(db.url, crawlRuns)
    await insertRows(db.url, crawlRuns, [
      { id: UUIDS[0]!, course_id: 'algebra', started_at: minutesAgo(10), extracted_total: 7 },
    ])
    const crawl = (await crawls.table.row(UUIDS[0]!))!
    assert.equal(crawl.key, UUIDS[0])
    assert.deepEqual(
      [crawl.status, crawl.source, crawl.startedAt, crawl.finishedAt, crawl.error],
      ['running', 'algebra', NOW - 600_000, null, null],
    )
    assert.deepEqual([crawl.extracted, crawl.skipped, crawl.done, crawl.total], [7, 0, null, null])

    await using tenders = await openUserTable(db.url, tenderRuns)
    await insertRows(db.url, tenderRuns, [
      {
        portal_name: 'portal-a',
        status: 'failed',
        started_at: minutesAgo(9),
        completed_at: minutesAgo(1),
      },
    ])
    const tender = (await tenders.table.row('1'))!
    assert.deepEqual(
      [tender.key, tender.status, tender.startedAt, tender.finishedAt],
      ['1', 'failed', NOW - 540_000, NOW - 60_000],
    )

    await using qualifications = await openUserTable(db.url, qualificationRuns)
    await insertRows(db.url, qualificationRuns, [
      { id: 'clx1', status: 'PROCESSING', total: 1, createdAt: minutesAgo(10) },
    ])
    const [qualification] = await qualifications.table.rows({
      statusValues: valuesOf('processing'),
      limit: 5,
    })
    assert.deepEqual(
      [qualification!.key, qualification!.done, qualification!.total, qualification!.startedAt],
      ['clx1', 0, 1, NOW - 600_000],
    )

    await using targets = await openUserTable(db.url, ypTargets)
    await insertRows(db.url, ypTargets, [
      { id: 5, slug: 'ca/plumbers', state: 'CA', status: 'IN_PROGRESS', claimed_by: 'host-1:77' },
      { id: 6, slug: 'ca/painters', state: 'CA', url: 'https://x/', page_current: 3 },
    ])
    await runUserSql(db.url, `UPDATE yp_targets SET page_target = 12, attempts = 2 WHERE id = 6`)
    const [painters, plumbers] = await targets.table.rows({ limit: 5 })
    assert.deepEqual([plumbers!.owner, plumbers!.heartbeatAt], ['host-1:77', null])
    assert.deepEqual(painters!.target, {
      key: 'ca/painters',
      group: 'CA',
      url: 'https://x/',
      page: 3,
      pageTarget: 12,
      attempts: 2,
    })
    assert.deepEqual(await targets.table.counts(), [
      { status: 'IN_PROGRESS', hasError: false, group: 'CA', count: 1 },
      { status: 'PLANNED', hasError: false, group: 'CA', count: 1 },
    ])
    for (const { table } of [crawls, tenders, qualifications, targets]) {
      assert.deepEqual(table.warnings, [])
      assert.equal(await table.row('there-is-no-such-row'), null)
      assert.equal(await table.row('99999999999999999999\0'), null)
      const { now, serverStartedAt } = await table.clock()
      assert.ok(Math.abs(now - Date.now()) < 60_000)
      assert.equal(serverStartedAt === null, engine.name === 'sqlite')
    }
  })

  test(`${engine.name}: the rows with the latest times are found, whatever the columns hold`, async () => {
    await using db = await engine.empty()
    const ddl = `
      CREATE TABLE jobs (id integer PRIMARY KEY, status text, at integer, beat text, seen text);
      INSERT INTO jobs VALUES (1, 'done', 1700000000, 'never', '2026-11-16T11:00:00Z'),
        (2, 'done', 1700000300, '', NULL), (3, 'done', NULL, '2026-11-16 10:00:00', '2026-11-16T11:59:00Z');
    `
    await runUserSql(db.url, ddl)
    const times = { startedAt: 'at', heartbeatAt: 'beat', activityAt: 'seen' }
    const columns = { id: 'id', status: 'status', ...times }
    await using jobs = await openTestTable(db.url, { table: 'jobs', columns, statuses: STATUSES })
    const latest = await jobs.table.latestRows([
      'startedAt',
      'finishedAt',
      'heartbeatAt',
      'activityAt',
    ])
    assert.deepEqual(latest.map(keyOf), ['2', '3', '3'])
    assert.deepEqual(await jobs.table.latestRows(['finishedAt']), [])
    await runUserSql(db.url, `DELETE FROM jobs`)
    assert.deepEqual(await jobs.table.latestRows(['startedAt']), [])
  })

  test(`${engine.name}: rows come newest first, page by page, none twice and none left out`, async () => {
    await using db = await engine.empty()
    // Several in the same second, and some that never started.
    const rows: NewRow[] = Array.from({ length: 23 }, (_, n) => ({
      id: n + 1,
      slug: `t${n}`,
      claimed_at: n % 6 === 5 ? null : minutesAgo(n % 4),
    }))
    await using opening = await openUserTable(db.url, ypTargets)
    await insertRows(db.url, ypTargets, rows)
    const { table } = opening
    const whole = await table.rows({ limit: 100 })
    const paged = await readAllPages(table, 4)

    assert.equal(whole.length, 23)
    assert.deepEqual(paged.map(keyOf), whole.map(keyOf))
    const times = whole.map(({ startedAt }) => startedAt ?? -Infinity)
    assert.deepEqual(
      times,
      times.toSorted((a, b) => b - a),
    )
    const keys: string[] = []
    for (let page = await table.keys(null, 10); page.length > 0;) {
      keys.push(...page)
      page = await table.keys(page.at(-1)!, 10)
    }
    assert.deepEqual(
      keys,
      rows.map(({ id }) => String(id)),
    )
  })

  test(`${engine.name}: rows are found by status in any case, source, group, time and any part of their text`, async () => {
    await using db = await engine.empty()
    await using opening = await openUserTable(db.url, crawlRuns)
    const { table } = opening
    await insertRows(db.url, crawlRuns, [
      { id: UUIDS[0]!, course_id: 'algebra', status: 'Running', started_at: minutesAgo(1) },
      { id: UUIDS[1]!, course_id: '100%_\\', status: 'RUNNING', started_at: minutesAgo(5) },
      {
        id: UUIDS[2]!,
        course_id: 'Biology',
        status: 'odd',
        started_at: minutesAgo(9),
        error: `O'No`,
      },
    ])
    const found = async (filter: Omit<RowFilter, 'limit'>): Promise<number[]> => {
      const rows = await table.rows({ ...filter, limit: 10 })
      return rows.map(({ key }) => UUIDS.indexOf(key))
    }
    assert.deepEqual(await found({ statusValues: valuesOf('running') }), [0, 1])
    assert.deepEqual(await found({ statusValues: valuesOf('RUNNING', 'ODD') }), [0, 1, 2])
    assert.deepEqual(await found({ statusValues: valuesOf() }), [])
    assert.deepEqual(await found({ source: 'algebra' }), [0])
    assert.deepEqual(await found({ source: 'Algebra' }), [])
    assert.deepEqual(await found({ source: 'alg\0ebra' }), [])
    assert.deepEqual(await found({ group: 'CA' }), [])
    assert.deepEqual(await found({ since: NOW - 300_000 }), [0, 1])
    assert.deepEqual(await found({ search: 'GEB' }), [0])
    assert.deepEqual(await found({ search: '%' }), [1])
    assert.deepEqual(await found({ search: '_\\' }), [1])
    assert.deepEqual(await found({ search: `o'n` }), [2])
    assert.deepEqual(await found({ search: UUIDS[2]!.slice(-3) }), [2])
    assert.deepEqual(await found({ search: `' OR 1=1 --` }), [])
  })

  test(`${engine.name}: rows are found by status ignoring case, with and without an index`, async () => {
    await using db = await engine.empty()
    const words = ['In_progress', 'in_Progress', 'In_ProgRess', 'IN_PROGRESS', 'in_progress']
    const rows = [...words, 'other', 'in_progress '].map((value, n) => `(${n}, '${value}')`)
    await db.raw(/* sql */ `
      CREATE TABLE jobs (id integer PRIMARY KEY, status text);
      INSERT INTO jobs VALUES ${rows.join(', ')}, (99, NULL);
    `)
    const options: AdoptedOptions = {
      table: 'jobs',
      columns: { id: 'id', status: 'status' },
      statuses: { active: 'in_progress' },
    }
    for (const index of ['', 'CREATE INDEX jobs_status ON jobs (status)']) {
      if (index !== '') await db.raw(index)
      await using opening = await openTestTable(db.url, options)
      const found = await opening.table.rows({ statusValues: valuesOf('in_progress'), limit: 9 })
      assert.deepEqual(found.map(({ status }) => status).toReversed(), words, index)
      assert.deepEqual(
        await opening.table.rows({ statusValues: valuesOf('nothing'), limit: 9 }),
        [],
      )
    }
  })

  test(`${engine.name}: untrusted text is read unchanged`, async () => {
    await using db = await engine.empty()
    await using opening = await openUserTable(db.url, ypTargets)
    const rows = HOSTILE_TEXTS.map((text, n) => ({
      id: n,
      slug: `${text} ${n}`,
      state: text,
      url: text,
      status: text,
      claimed_by: text,
      last_error: text,
      claimed_at: minutesAgo(n),
    }))
    await insertRows(db.url, ypTargets, rows)
    const read = await opening.table.rows({ limit: 1_000 })
    assert.equal(read.length, HOSTILE_TEXTS.length)
    for (const [n, row] of read.entries()) {
      const text = HOSTILE_TEXTS[n]
      const { key, group, url } = row.target
      assert.deepEqual([key, group, url], [`${text} ${n}`, text, text])
      assert.deepEqual([row.status, row.owner, row.error], [text, text, text])
    }
    const words = await opening.table.counts()
    assert.deepEqual(new Set(words.map(({ status }) => status)), new Set(HOSTILE_TEXTS))
  })

  test(`${engine.name}: names and types may be odd, ids longer than a number, and anything null`, async () => {
    await using db = await engine.empty()
    const big = engine.name === 'sqlite' ? 'INTEGER' : 'bigint'
    await db.raw(/* sql */ `
      CREATE TABLE "order" (
        "user" ${big} PRIMARY KEY, "Select" varchar(20), "where" text, "createdAt" text,
        "a$b" text, "group" text
      );
      INSERT INTO "order" VALUES
        (9007199254740993, 'running', 'x', '2026-11-16T12:00:00+01:00', ' 12 ', '7.5'),
        (9007199254740994, NULL, NULL, NULL, NULL, NULL),
        (-5, 'running', NULL, 'yesterday', 'many', '')
    `)
    await using opening = await openTestTable(db.url, {
      table: 'order',
      columns: {
        id: 'user',
        status: 'Select',
        source: 'where',
        startedAt: 'createdAt',
        extracted: 'a$b',
        done: 'group',
      },
      statuses: STATUSES,
    })
    const [first, ...others] = await opening.table.rows({ limit: 5 })
    assert.deepEqual(
      [first!.key, first!.startedAt, first!.extracted, first!.done],
      ['9007199254740993', NOW - 3_600_000, 12, 7.5],
    )
    assert.deepEqual(
      others.map((row) => [
        row.key,
        row.status,
        row.source,
        row.startedAt,
        row.extracted,
        row.done,
      ]),
      [
        ['9007199254740994', '', null, null, 0, null],
        ['-5', 'running', null, null, 0, null],
      ],
    )
    assert.equal((await opening.table.row('9007199254740993'))!.source, 'x')
    assert.deepEqual(await opening.table.keys('-5', 1), ['9007199254740993'])
  })

  test(`${engine.name}: a checkpoint counts when something is in it`, async () => {
    await using db = await engine.empty()
    const json = engine.name === 'sqlite' ? 'TEXT' : 'jsonb'
    await db.raw(/* sql */ `
      CREATE TABLE jobs (id integer PRIMARY KEY, state text, progress ${json}, note text);
      INSERT INTO jobs VALUES (1, 'running', '{"page": 3}', '4'), (2, 'running', '{}', ' '),
                              (3, 'running', NULL, NULL), (4, 'running', 'null', '{ }');
    `)
    for (const [checkpoint, having] of [
      ['progress', ['1']],
      ['note', ['1']],
    ] as const) {
      const columns = { id: 'id', status: 'state', checkpoint }
      await using opening = await openTestTable(db.url, {
        table: 'jobs',
        columns,
        statuses: STATUSES,
      })
      const rows = await opening.table.rows({ limit: 9 })
      assert.deepEqual(rows.filter((row) => row.hasCheckpoint).map(keyOf), having)
      assert.ok(rows.every(({ userRow }) => !(checkpoint in userRow)))
    }
  })

  test(`${engine.name}: functions of the user's see whole rows; without one only mapped columns are read`, async () => {
    await using db = await engine.empty()
    await createUserTable(db.url, tenderRuns)
    await insertRows(db.url, tenderRuns, [
      { portal_name: 'a', status: 'running', settings: '{"depth":3}', started_at: minutesAgo(1) },
    ])
    const options = tenderRuns.options[engine.name]
    await using plain = await openTestTable(db.url, options)
    await using asked = await openTestTable(db.url, { ...options, alive: () => true })
    const [first] = await plain.table.rows({ limit: 1 })
    assert.deepEqual(
      Object.keys(first!.userRow).toSorted(),
      Object.values(options.columns).toSorted(),
    )
    const whole = (await asked.table.row('1'))!.userRow
    assert.deepEqual([whole['id'], whole['portal_name']], [1, 'a'])
    assert.match(JSON.stringify(whole['settings']), /depth/)
  })
}

test('postgres: a time in text is read in SQL as it is in JavaScript', async () => {
  await using db = await postgresEngine.empty()
  const texts = [
    ['2026-11-16T12:34:56.789Z', '2026-11-16 14:34:56.789123 +0200', '2026-11-16 07:04-05:30'],
    ['2026-11-16', '2026-02-30 00:00:00', '2026-10-25 02:30:00', '2026-03-29 02:30:00'],
    ['2026-11-16t12:34:56z', '2026-11-16 12:34:56 UTC', '0001-01-01 00:00:00', '9999-12-31'],
    ['1794832496', '1794832496.789', ' 1794832496789 ', '1794832496789123', '0', '00012'],
    [
      '',
      'now',
      '-5',
      '0000-00-00',
      '0000-01-01',
      '2026-13-01',
      '2026-11-16 24:00:00',
      '16.11.2026',
      'NaN',
    ],
    ['20261116', '202611161200', '20261116123456', '2461361.25', '999999999', '1000000000'],
    ['9'.repeat(400), '1e300', `2026-11-16'; DROP TABLE times; --`, '2026-11-16T12:34:56.7+02'],
  ].flat()
  await db.raw('CREATE TABLE times (id integer PRIMARY KEY, status text, at text)')
  await runUserSql(
    db.url,
    `INSERT INTO times SELECT n, 'running', at FROM json_array_elements_text($1::json) WITH ORDINALITY AS t (at, n)`,
    [JSON.stringify(texts)],
  )
  for (const timeZone of ['UTC', 'Europe/Berlin', 'Australia/Lord_Howe']) {
    await using opening = await openTestTable(db.url, {
      table: 'times',
      columns: { id: 'id', status: 'status', startedAt: 'at' },
      statuses: STATUSES,
      timeZone,
    })
    const rows = await opening.table.rows({ limit: 100 })
    assert.equal(rows.length, texts.length)
    for (const { key, startedAt } of rows) {
      const text = texts[Number(key) - 1]!
      assert.equal(startedAt, parseTimestamp(text, timeZone), `${text} in ${timeZone}`)
    }
    assert.deepEqual((await readAllPages(opening.table, 5)).map(keyOf), rows.map(keyOf))
  }
})

test('a time without a zone is of the zone that the mapping names, in a column of any type', async () => {
  for (const { engine, types } of [
    { engine: sqliteEngine, types: ['TEXT', 'DATETIME'] },
    { engine: postgresEngine, types: ['timestamp', 'timestamp(0)', 'text'] },
  ]) {
    await using db = await engine.empty()
    for (const [n, type] of types.entries()) {
      await db.raw(/* sql */ `
        CREATE TABLE runs_${n} (id integer PRIMARY KEY, status text, at ${type});
        INSERT INTO runs_${n} VALUES (1, 'running', '2026-07-01 12:00:00'), (2, 'running', '2026-12-01 12:00:00');
      `)
      await using opening = await openTestTable(db.url, {
        table: `runs_${n}`,
        columns: { id: 'id', status: 'status', startedAt: 'at' },
        statuses: STATUSES,
        timeZone: 'Europe/Berlin',
      } satisfies AdoptedOptions)
      const rows = await opening.table.rows({ limit: 2 })
      assert.deepEqual(
        rows.map(({ startedAt }) => startedAt),
        [Date.UTC(2026, 11, 1, 11), Date.UTC(2026, 6, 1, 10)],
      )
    }
  }
})

test('postgres: a day counts as its end, in the zone that the mapping names', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE TABLE runs (id integer PRIMARY KEY, status text, at date);
    INSERT INTO runs VALUES (1, 'running', '2026-10-24'), (2, 'running', 'infinity'), (3, 'running', '2026-12-31');
  `)
  await using opening = await openTestTable(db.url, {
    table: 'runs',
    columns: { id: 'id', status: 'status', startedAt: 'at' },
    statuses: STATUSES,
    timeZone: 'Europe/Berlin',
  })
  const rows = await opening.table.rows({ limit: 3 })
  assert.deepEqual(
    rows.map(({ key, startedAt }) => [key, startedAt]),
    [
      ['3', parseTimestamp('2026-12-31', 'Europe/Berlin')],
      ['1', parseTimestamp('2026-10-24', 'Europe/Berlin')],
      ['2', null],
    ],
  )
})

const keyOf = ({ key }: AdoptedRow): string => key

async function readAllPages(table: AdoptedTable, limit: number): Promise<AdoptedRow[]> {
  const all: AdoptedRow[] = []
  for (let page = await table.rows({ limit }); page.length > 0;) {
    all.push(...page)
    const { listedAt, key } = page.at(-1)!
    page = await table.rows({ after: { listedAt, key }, limit })
  }
  return all
}
