import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ENGINES, mappingOf, openTestTable, valuesOf } from '../../../testing/open-test-table.ts'
import { runUserSql } from '../../../testing/user-tables.ts'
import type { AdoptedOptions, MappedValue } from '../mapping.ts'
import { runStatusOf } from '../runs/status-mapping.ts'
import { openAdoptedTable } from './table.ts'

const NOW = Date.UTC(2026, 10, 16, 12, 0, 0)
const COLUMNS = { id: 'id', status: 'status', error: 'error' }

async function openError(url: string, options: AdoptedOptions): Promise<string> {
  try {
    await (await openAdoptedTable(mappingOf(options), url)).close()
  } catch (error) {
    return (error as Error).message
  }
  return 'nothing'
}

const INTEGER_TYPES = {
  sqlite: ['INTEGER', 'TINYINT(1)', 'BIGINT', ''],
  postgres: ['smallint', 'integer', 'bigint', 'small'],
}

for (const engine of ENGINES) {
  for (const type of INTEGER_TYPES[engine.name]) {
    test(`${engine.name}: a status in a column of type ${type || 'none'} is read, found, and written as a number`, async () => {
      await using db = await engine.empty()
      if (engine.name === 'postgres')
        await db.raw('CREATE DOMAIN small AS smallint CHECK (value < 10)')
      await db.raw(`
        CREATE TABLE jobs (id integer PRIMARY KEY, status ${type} NOT NULL DEFAULT 0, error text);
        CREATE INDEX jobs_status ON jobs (status);
        INSERT INTO jobs (id, status) VALUES (1, 0), (2, 1), (3, 1), (4, 2), (5, 7);
      `)
      await using opening = await openTestTable(db.url, {
        table: 'jobs',
        columns: COLUMNS,
        statuses: { queued: 0, active: 1, succeeded: ['2'], failed: [3, 4] },
      })
      const { table } = opening
      const active = await table.rows({ statusValues: valuesOf('1'), limit: 9 })
      assert.deepEqual(
        active.map(({ key, status }) => [key, status]),
        [
          ['3', '1'],
          ['2', '1'],
        ],
      )
      const counts = await table.counts()
      assert.deepEqual(
        counts.map((one) => [one.status, runStatusOf(table.mapping, one), one.count]),
        [
          ['0', 'queued', 1],
          ['1', 'running', 2],
          ['2', 'succeeded', 1],
          ['7', 'cancelled', 1],
        ],
      )

      const row = (await table.row('2'))!
      const failed = (await table.change(row, {
        status: '3',
        finishedAt: NOW,
        error: 'left behind',
      }))!
      assert.equal(failed.status, '3')
      const raw = await runUserSql(db.url, 'SELECT status FROM jobs WHERE id = 2')
      assert.equal(Number(raw[0]!['status']), 3)
      const kept = await runUserSql(
        db.url,
        engine.name === 'sqlite' ? 'SELECT typeof(status) AS kind FROM jobs' : 'SELECT 1 AS kind',
      )
      assert.deepEqual(
        new Set(kept.map(({ kind }) => kind)),
        new Set([engine.name === 'sqlite' ? 'integer' : 1]),
      )
      assert.equal(await table.change(row, { status: '3' }), null)
      const restored = await table.change(failed, { restore: row.snapshot })
      assert.deepEqual(restored?.snapshot, row.snapshot)
    })
  }

  test(`${engine.name}: a state that its column of numbers cannot hold is rejected with the type`, async () => {
    await using db = await engine.empty()
    await db.raw('CREATE TABLE jobs (id integer PRIMARY KEY, status integer, error text)')
    for (const active of ['running', '01', '1.0', true, 2 ** 40].slice(
      0,
      engine.name === 'sqlite' ? 3 : 5,
    )) {
      const options = { table: 'jobs', columns: COLUMNS, statuses: { active } }
      const found = await openError(db.url, options)
      assert.match(
        found,
        /statuses\.active: \S+ is not a whole number that status can hold, which is of type integer/i,
        String(active),
      )
    }
  })

  test(`${engine.name}: a boolean state tells active rows from ended ones, and an error failed ones from succeeded ones`, async () => {
    await using db = await engine.empty()
    await db.raw(`
      CREATE TABLE jobs (id integer PRIMARY KEY, status boolean NOT NULL, error text, finished_at text);
      INSERT INTO jobs (id, status, error) VALUES (1, true, NULL), (2, true, NULL), (3, false, ''), (4, false, 'no such page');
    `)
    await using opening = await openTestTable(db.url, {
      table: 'jobs',
      columns: { ...COLUMNS, finishedAt: 'finished_at' },
      statuses: { active: true, succeeded: false, failed: false },
    })
    const { table } = opening
    const statuses = async () =>
      (await table.rows({ limit: 9 })).map((row) => `${row.key} ${runStatusOf(table.mapping, row)}`)
    assert.deepEqual(await statuses(), ['4 failed', '3 succeeded', '2 running', '1 running'])
    const { statusValues } = table.mapping
    const keysOf = async (values: readonly MappedValue[]) =>
      (await table.rows({ statusValues: values, limit: 9 })).map(({ key }) => key)
    assert.deepEqual(await keysOf(statusValues.active), ['2', '1'])
    assert.deepEqual(await keysOf(statusValues.succeeded), ['3'])
    assert.deepEqual(await keysOf(statusValues.failed), ['4'])
    assert.deepEqual(
      (await table.counts())
        .map((one) => `${runStatusOf(table.mapping, one)} ${one.count}`)
        .toSorted(),
      ['failed 1', 'running 2', 'succeeded 1'],
    )

    const row = (await table.row('2'))!
    const failed = (await table.change(row, {
      status: statusValues.failed[0]!.value,
      finishedAt: NOW,
      error: 'left behind',
    }))!
    assert.equal(runStatusOf(table.mapping, failed), 'failed')
    assert.deepEqual(await statuses(), ['4 failed', '3 succeeded', '2 failed', '1 running'])
    assert.deepEqual(
      (await table.change(failed, { restore: row.snapshot }))?.snapshot,
      row.snapshot,
    )
  })

  test(`${engine.name}: a boolean column has no other states`, async () => {
    await using db = await engine.empty()
    await db.raw('CREATE TABLE jobs (id integer PRIMARY KEY, status boolean, error text)')
    const options = { table: 'jobs', columns: COLUMNS, statuses: { active: 'running' } }
    assert.match(
      await openError(db.url, options),
      engine.name === 'postgres'
        ? /running is neither true nor false, which status holds/
        : /running is not a whole number that status can hold/,
    )
  })
}
