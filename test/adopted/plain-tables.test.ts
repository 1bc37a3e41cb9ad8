import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import process from 'node:process'
import { test } from 'node:test'
import { createAdoptedProject } from '../../src/testing/adopted-project.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'
import { ENGINES } from '../../src/testing/open-test-table.ts'

/** Tables as Rails and Django make them, from the proposal to the recovery of a row, through the command line. */

const NO_PROCESS = 2 ** 22 + 1
const ago = (minutes: number): string =>
  new Date(Date.now() - minutes * 60_000).toISOString().slice(0, 19).replace('T', ' ')

for (const engine of ENGINES) {
  const time = engine.name === 'sqlite' ? 'datetime' : 'timestamp'
  const number = (value: unknown): number | null => (value === null ? null : Number(value))

  test(`${engine.name}: rows with the integers of an enum are assessed by their processes, and recovered and reverted as numbers`, async () => {
    const here = hostname()
    await using project = await createAdoptedProject(
      engine,
      `CREATE TABLE crawl_jobs (id integer PRIMARY KEY, portal varchar(80), status integer NOT NULL, error_message text NOT NULL DEFAULT '',
         host varchar(80), pid integer, created_at ${time} NOT NULL, started_at ${time}, finished_at ${time});
       INSERT INTO crawl_jobs (id, portal, status, host, pid, created_at, started_at) VALUES
         (1, 'a', 0, NULL, NULL, '${ago(90)}', NULL),
         (2, 'b', 1, '${here}', ${process.pid}, '${ago(90)}', '${ago(0)}'),
         (3, 'c', 1, '${here}', ${NO_PROCESS}, '${ago(90)}', '${ago(1)}'),
         (4, 'd', 1, 'another-host', ${NO_PROCESS}, '${ago(90)}', '${ago(1)}');
       INSERT INTO crawl_jobs (id, portal, status, error_message, created_at, started_at, finished_at) VALUES
         (5, 'a', 2, '', '${ago(90)}', '${ago(80)}', '${ago(70)}'), (6, 'a', 3, 'no such page', '${ago(90)}', '${ago(80)}', '${ago(70)}');`,
      {
        jobs: {
          table: 'crawl_jobs',
          columns: {
            id: 'id',
            status: 'status',
            source: 'portal',
            error: 'error_message',
            host: 'host',
            pid: 'pid',
            createdAt: 'created_at',
            startedAt: 'started_at',
            finishedAt: 'finished_at',
          },
          statuses: { queued: 0, active: 1, succeeded: 2, failed: 3, cancelled: 4 },
        },
      },
    )
    const proposed = await project.json('adopt', '--table', 'crawl_jobs', '--db', project.url)
    assert.match(JSON.stringify(proposed), /assessed by process, age, progress and checkpoint/)
    assert.deepEqual(proposed.proposals[0].mapping.statuses, {
      queued: 0,
      active: 1,
      succeeded: 2,
      failed: 3,
    })

    const { stdout } = await project.cli('adopt', '--table', 'crawl_jobs', '--db', project.url)
    assert.match(stdout, /^- \d not changed: queued, or not known to be dead$/m)
    assert.match(stdout, /^- wait .*queued for 90 min\.$/m)
    assert.doesNotMatch(stdout, /\bjudge|too young/)

    const { items } = await project.json('runs')
    const statuses = items.map(({ origin, status }: any) => `${origin.key} ${status}`)
    assert.deepEqual(statuses.toSorted(), [
      '1 queued',
      '2 running',
      '3 running',
      '4 running',
      '5 succeeded',
      '6 failed',
    ])
    assert.deepEqual(items.map(({ error }: any) => error).filter(Boolean), ['no such page'])
    assert.ok(
      items.every(({ error }: any) => error !== ''),
      'an empty text is no error',
    )
    const queued = items.find(({ origin }: any) => origin.key === '1')
    const ageMs = Date.now() - Date.parse(queued.createdAt)
    assert.ok(Math.abs(ageMs - 90 * 60_000) < 60_000, `${ageMs} is the age of the queued row`)
    assert.equal(queued.startedAt, null)

    const planned = await project.json('recover', '--dry-run')
    assert.deepEqual(
      planned.verdicts.map(({ source, action }: any) => [source, action]),
      [['c', 'fail']],
    )
    const { because, evidence } = planned.verdicts[0]
    assert.match(
      because,
      new RegExp(`process ${NO_PROCESS} on ${here}, of row 3 of jobs, no longer exists`),
    )
    assert.deepEqual(evidence.slice(-1), [`Its process ${NO_PROCESS} no longer exists on ${here}.`])

    const held = await project.cli('check', 'c')
    assert.match(held.stdout, /^Last held by row 3 of jobs, last activity /m, 'it has no heartbeat')

    assert.equal((await project.json('recover', '--yes')).applied, 1)
    const select = 'SELECT id, status, error_message, pid FROM crawl_jobs ORDER BY id'
    const rows = await project.sql(select)
    assert.deepEqual(
      rows.map(({ status }) => Number(status)),
      [0, 1, 3, 1, 2, 3],
    )
    assert.match(String(rows[2]!['error_message']), /^Unstuck: process ended unexpectedly/)
    assert.equal((await project.cli('revert', planned.verdicts[0].run)).code, 0)
    const reverted = (await project.sql(select))[2]!
    assert.deepEqual(
      [number(reverted['status']), reverted['error_message'], number(reverted['pid'])],
      [1, '', NO_PROCESS],
    )
  })

  test(`${engine.name}: a row that goes back in the queue no longer names the process that it had`, async () => {
    await using project = await createAdoptedProject(
      engine,
      `CREATE TABLE jobs (id integer PRIMARY KEY, status integer, host text, pid integer, place text, started_at ${time});
       INSERT INTO jobs (id, status, host, pid, place, started_at) VALUES (1, 1, '${hostname()}', ${NO_PROCESS}, 'page 7', '${ago(1)}');`,
      {
        jobs: {
          table: 'jobs',
          columns: {
            id: 'id',
            status: 'status',
            host: 'host',
            pid: 'pid',
            checkpoint: 'place',
            startedAt: 'started_at',
          },
          statuses: { queued: 0, active: 1 },
        },
      },
    )
    const { note } = await project.json('recover', '--dry-run')
    assert.match(note, /^1 row of your own would go back in the queue, which cannot be reverted;/)
    assert.equal((await project.json('recover', '--yes')).applied, 1)
    const [row] = await project.sql('SELECT status, pid, place FROM jobs')
    assert.deepEqual([number(row!['status']), row!['pid'], row!['place']], [0, null, 'page 7'])
  })
}

for (const engine of ENGINES) {
  test(`${engine.name}: a status may be the text of another one and “ with an error”`, async () => {
    await using project = await createAdoptedProject(
      engine,
      `CREATE TABLE jobs (id integer PRIMARY KEY, state text, reason text);
       INSERT INTO jobs VALUES (1, 'busy', NULL), (2, 'finished', NULL), (3, 'finished with an error', NULL);`,
      {
        jobs: {
          table: 'jobs',
          columns: { id: 'id', status: 'state', error: 'reason' },
          statuses: { active: 'busy', succeeded: 'finished', failed: 'finished with an error' },
        },
      },
    )
    const failed = await project.json('runs', '--status', 'failed')
    assert.deepEqual(
      failed.items.map(({ origin }: any) => origin.key),
      ['3'],
    )
    assert.equal((await project.cli('fail', '1')).code, 0)
    const rows = await project.sql('SELECT state FROM jobs ORDER BY id')
    assert.deepEqual(
      rows.map(({ state }) => state),
      ['finished with an error', 'finished', 'finished with an error'],
    )
    assert.equal((await project.json('runs', '--status', 'failed')).items.length, 2)
  })
}

test('a worker that is known only from a row without times has no process id and no start', async () => {
  const owners = 'CREATE TABLE jobs (id integer PRIMARY KEY, state text, who text, beat text)'
  const beat = new Date().toISOString()
  await using project = await createAdoptedProject(
    sqliteEngine,
    `${owners}; INSERT INTO jobs VALUES (1, 'busy', 'anna', '${beat}');`,
    {
      jobs: {
        table: 'jobs',
        columns: { id: 'id', status: 'state', owner: 'who', heartbeatAt: 'beat' },
        statuses: { active: 'busy', failed: 'broken' },
      },
    },
  )
  const { items } = await project.json('workers')
  assert.deepEqual([items.length, items[0].pid, items[0].startedAt], [1, null, null])
  assert.equal(items[0].host, 'anna')
  assert.equal(items[0].lastHeartbeatAt, beat)
  assert.match((await project.cli('workers')).stdout, /row 1 of jobs \(anna\) .* – /)
})

for (const engine of ENGINES) {
  test(`${engine.name}: the age, the last activity and the pages of a row that has no columns for them are unknown`, async () => {
    await using project = await createAdoptedProject(
      engine,
      `CREATE TABLE jobs (id integer PRIMARY KEY, state text); INSERT INTO jobs VALUES (1, 'busy'), (2, 'broken');`,
      {
        jobs: {
          table: 'jobs',
          columns: { id: 'id', status: 'state' },
          statuses: { active: 'busy', failed: 'broken' },
        },
      },
    )
    const { run, counts, groups } = await project.json('show', '1')
    assert.deepEqual([run.createdAt, run.startedAt, run.lastActivityAt], [null, null, null])
    assert.deepEqual([run.pages, counts.pages, groups[0].pages], [null, null, null])
    const { items } = await project.json('runs')
    assert.deepEqual(
      items.map((one: Record<string, unknown>) => [one['createdAt'], one['lastActivityAt']]),
      [
        [null, null],
        [null, null],
      ],
    )
    const commands = [
      'status',
      'runs',
      'show 1',
      'explain 1',
      'summary',
      'clean 1',
      'recover --dry-run',
      'check jobs',
    ]
    for (const command of commands) {
      const { stdout, stderr } = await project.cli(...command.split(' '))
      assert.notEqual(stdout + stderr, '', command)
      assert.doesNotMatch(stdout + stderr, /\bnow\b|\b[01] m?s\b/, command)
    }
  })
}

for (const engine of ENGINES) {
  const time = engine.name === 'sqlite' ? 'datetime' : 'timestamp'
  const ddl = `CREATE TABLE crawl_runs (id integer PRIMARY KEY, status integer NOT NULL DEFAULT 0, worker_host varchar(80),
      worker_pid integer, created_at ${time} NOT NULL, started_at ${time}, finished_at ${time}, total_items integer, error_message text);
    INSERT INTO crawl_runs (id, status, worker_host, worker_pid, created_at, started_at, finished_at, total_items) VALUES
      (1, 2, '${hostname()}', ${NO_PROCESS}, '${ago(90)}', '${ago(90)}', '${ago(60)}', 103),
      (2, 1, '${hostname()}', ${NO_PROCESS}, '${ago(50)}', '${ago(50)}', NULL, 120),
      (3, 1, NULL, NULL, '${ago(30 * 60)}', '${ago(30 * 60)}', NULL, 700),
      (4, 2, NULL, NULL, '${ago(90)}', '${ago(90)}', '${ago(60)}', 0);`
  const columns = {
    id: 'id',
    status: 'status',
    host: 'worker_host',
    pid: 'worker_pid',
    startedAt: 'started_at',
    finishedAt: 'finished_at',
    error: 'error_message',
  }
  const statuses = { queued: 0, active: 1, succeeded: 2, failed: 3 }

  test(`${engine.name}: of a row that has a total alone, what is done is unknown`, async () => {
    const crawls = { table: 'crawl_runs', columns: { ...columns, total: 'total_items' }, statuses }
    await using project = await createAdoptedProject(engine, ddl, { crawls })
    const { items } = await project.json('runs')
    const progress = items.map(({ origin, done, total }: any) => [origin.key, done, total])
    assert.deepEqual(progress.toSorted(), [
      ['1', null, 103],
      ['2', null, 120],
      ['3', null, 700],
      ['4', null, 0],
    ])
    const { stdout } = await project.cli('show', '1')
    assert.match(stdout, /progress +░+ \?\/103 done, share unknown$/m)
    for (const command of ['runs', 'status', 'explain 2', 'progress 2', 'recover --dry-run']) {
      const printed = (await project.cli(...command.split(' '))).stdout
      assert.match(printed, /\?\/120/, command)
      assert.doesNotMatch(printed, /\b0\/\d|null/, command)
    }
  })

  test(`${engine.name}: without a column for what is done, a total of items is proposed as what was saved`, async () => {
    await using project = await createAdoptedProject(engine, ddl, {})
    const adopt = ['adopt', '--table', 'crawl_runs', '--db', project.url]
    const { mapping, notes } = (await project.json(...adopt)).proposals[0]
    assert.deepEqual([mapping.columns.extracted, mapping.columns.total], ['total_items', undefined])
    assert.match(notes.join('\n'), /^total_items counts as what was saved.* move it to total\.$/m)

    await using adopted = await createAdoptedProject(engine, ddl, { crawls: mapping })
    const { active } = await adopted.json('recover', '--dry-run')
    const verdicts = active.map((run: any) => `${run.origin.key} ${run.action}: ${run.because}`)
    assert.match(verdicts[0], /^2 fail: process ended unexpectedly: process /)
    assert.equal(verdicts[1], '3 resumable: no owner is known, but it has progress: kept')
  })
}

for (const engine of ENGINES) {
  test(`${engine.name}: the pages of a table of targets are unknown: its rows have the page that they are at`, async () => {
    await using project = await createAdoptedProject(
      engine,
      `CREATE TABLE places (id integer PRIMARY KEY, state text, region text, at_page integer);
       INSERT INTO places VALUES (1, 'open', 'north', 3), (2, 'done', 'north', 10), (3, 'busy', 'south', 2);`,
      {
        places: {
          table: 'places',
          kind: 'targets',
          columns: { id: 'id', status: 'state', group: 'region', page: 'at_page' },
          statuses: { planned: 'open', active: 'busy', succeeded: 'done' },
        },
      },
    )
    const { run, counts, groups } = await project.json('show', 'places')
    const pages = [run, counts, ...groups].map((one) => one.pages)
    assert.deepEqual(pages, [null, null, null, null])
    const { items } = await project.json('progress', 'places')
    assert.deepEqual([items[0].counts.pages, items[0].rows[0].pages], [null, null])
    for (const command of ['status', 'show places', 'progress places', 'explain places', 'runs']) {
      const { stdout } = await project.cli(...command.split(' '))
      assert.doesNotMatch(stdout, /\b0 pages|pages +0|null/, command)
      if (command !== 'explain places' && command !== 'runs') assert.match(stdout, /–/, command)
    }
  })
}

test('the owner of a row is the process that it names, in lists as well; without one its host is unknown', async () => {
  const here = hostname()
  await using project = await createAdoptedProject(
    sqliteEngine,
    `CREATE TABLE jobs (id integer PRIMARY KEY, state text, host text, pid integer, beat text);
     INSERT INTO jobs VALUES (1, 'busy', '${here}', ${process.pid}, '${new Date().toISOString()}'),
       (2, 'busy', NULL, NULL, '${new Date().toISOString()}');`,
    {
      jobs: {
        table: 'jobs',
        columns: { id: 'id', status: 'state', host: 'host', pid: 'pid', heartbeatAt: 'beat' },
        statuses: { active: 'busy', failed: 'broken' },
      },
    },
  )
  const expected = [
    [here, process.pid],
    [null, null],
  ]
  const processOf = ({ host, pid }: any) => [host, pid]
  const { items } = await project.json('runs')
  const owners = items.toSorted((a: any, b: any) => a.origin.key - b.origin.key)
  assert.deepEqual(owners.map(({ owner }: any) => owner).map(processOf), expected)
  const workers = (await project.json('workers')).items
  assert.deepEqual(workers.map(processOf).toSorted().toReversed(), expected.toSorted().toReversed())
  const shown = await Promise.all(['1', '2'].map((id) => project.json('show', id)))
  assert.deepEqual(
    shown.map(({ owner }) => processOf(owner)),
    expected,
  )
  for (const command of ['workers', 'show 2', 'explain 2', 'status']) {
    const { stdout } = await project.cli(...command.split(' '))
    assert.doesNotMatch(stdout, /null/, command)
  }
})
