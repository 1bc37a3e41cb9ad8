import assert from 'node:assert/strict'
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { openStore } from '../../../core/store/open.ts'
import { toConnectionString } from '../../../lib/files/database-address.ts'
import {
  createCliTestContext,
  noTerminal,
  type CliTestContext,
} from '../../../testing/cli-test-context.ts'
import { claim, enqueueCrawl, registerWorker, savePage } from '../../../testing/fixtures.ts'
import { unstuck } from '../../../testing/unstuck-cli.ts'

const WRITERS = 16

const backUp = ({ cwd }: CliTestContext, file: string, db: string) =>
  unstuck(['backup', file, '--db', db], { cwd })

test('P4 a backup under sixteen writers is the database of one moment, and passes every check', async () => {
  await using ctx = await createCliTestContext()
  const stores = await Promise.all(Array.from({ length: WRITERS }, () => ctx.database.open()))
  const run = await enqueueCrawl(ctx.store, WRITERS)
  const stop = new AbortController()
  let saved = 0
  const writers = stores.map(async (store, n) => {
    const [worker] = [await registerWorker(store, { leaseMs: 600_000 })]
    let [held] = await claim(store, worker, 1)
    while (!stop.signal.aborted) {
      held = await savePage(store, held!, { items: [{ key: `${n}/${held!.page + 1}`, data: n }] })
      saved++
    }
  })

  try {
    for (const name of ['first', 'second', 'third']) {
      const before = saved
      while (saved < before + WRITERS) await nextTurn()
      const { checks, bytes } = await ctx.json(['backup', `${name}.db`])
      const file = join(ctx.cwd, `${name}.db`)
      assert.deepEqual(
        checks.map(({ check, result }: any) => `${check} ${result}`),
        ['integrity ok', 'counters ok', 'one-live-run ok', 'claims ok', 'ended-runs ok'],
      )
      assert.equal(statSync(file).size, bytes)
      assert.equal(statSync(file).mode & 0o777, 0o600)
      using db = new DatabaseSync(file, { readOnly: true })
      const { pages, items } = db
        .prepare(
          'SELECT (SELECT sum(page) FROM target) AS pages, (SELECT count(*) FROM item) AS items',
        )
        .get() as { pages: number; items: number }
      assert.equal(pages, items, 'each page has its item')
      assert.ok(items >= before)
    }
  } finally {
    stop.abort()
    await Promise.all(writers)
  }
  assert.deepEqual(
    readdirSync(ctx.cwd).filter((name) => name.endsWith('.part')),
    [],
    'nothing is left beside it',
  )

  // The copy is a database like any other: its claims are of workers that this process still runs.
  const copy = await openStore(`sqlite:${join(ctx.cwd, 'third.db')}`)
  assert.equal((await copy.run(run))!.counts.targets.in_progress, WRITERS)
  await copy.close()
})

test('a backup never replaces a file, unless --force allows it, and never the database itself', async () => {
  await using ctx = await createCliTestContext()
  await enqueueCrawl(ctx.store, 1)
  const own = ctx.database.url.slice('sqlite:'.length)
  const before = await ctx.dump()
  writeFileSync(join(ctx.cwd, 'mine.txt'), 'mine')
  mkdirSync(join(ctx.cwd, 'folder'))
  symlinkSync(own, join(ctx.cwd, 'symlink.db'))
  linkSync(own, join(ctx.cwd, 'hardlink.db'))
  writeFileSync(join(ctx.cwd, 'old.db-wal'), 'of another')
  writeFileSync(join(ctx.cwd, 'older.db-journal'), 'of another')
  const refused: [string[], RegExp, number][] = [
    [['mine.txt'], /mine\.txt exists\. Name another file, or replace it with --force/, 2],
    [['folder'], /is a folder/, 2],
    [['folder', '--force'], /is a folder/, 2],
    [['missing/x.db'], /There is no folder .*missing/, 2],
    [['old.db'], /old\.db-wal belongs to another database/, 2],
    [['old.db', '--force'], /old\.db-wal belongs to another database/, 2],
    [['older.db'], /older\.db-journal belongs to another database/, 2],
    ...[own, `${own}-wal`, `${own}-shm`, `${own}-journal`, 'symlink.db', 'hardlink.db'].map(
      (name) => [[name, '--force'], /is the database itself, or belongs to it/, 2] as any,
    ),
  ]
  for (const [args, message, code] of refused) {
    const { stderr } = await ctx.cli(['backup', ...args], code)
    assert.match(stderr, message, args.join(' '))
  }
  assert.equal(readFileSync(join(ctx.cwd, 'mine.txt'), 'utf8'), 'mine')
  assert.equal(await ctx.dump(), before)

  const { stdout } = await ctx.cli(['backup', 'mine.txt', '--force'])
  assert.match(
    stdout,
    /^Copied .*unstuck\.db to .*mine\.txt: \d+ kB in \d+ m?s\.\nThe copy was checked: integrity/,
  )
  assert.equal(
    JSON.parse((await unstuck(['runs', '--json', '--db', 'sqlite:mine.txt'], ctx)).stdout).items
      .length,
    1,
  )
  await ctx.cli(['backup', 'mine.txt'], 2)
})

test('a missing database is not copied, and none is made', async () => {
  await using ctx = await createCliTestContext()
  const { stderr, code } = await backUp(ctx, 'x.db', 'sqlite:none.db')
  assert.equal(code, 2)
  assert.match(stderr, /There is no database at .*none\.db/)
  assert.equal(existsSync(join(ctx.cwd, 'none.db')) || existsSync(join(ctx.cwd, 'x.db')), false)
})

test('a damaged database is not copied', async () => {
  await using ctx = await createCliTestContext()
  await enqueueCrawl(
    ctx.store,
    Array.from({ length: 500 }, (_, n) => `https://shop.example/${n}`),
  )
  await ctx.cli(['backup', 'damaged.db'])
  const path = join(ctx.cwd, 'damaged.db')
  const bytes = readFileSync(path)
  const page = bytes.lastIndexOf('https://') & ~4_095
  bytes.fill(0xee, page, page + 2_048)
  writeFileSync(path, bytes)
  const { stderr, code } = await backUp(ctx, 'x.db', `sqlite:${path}`)
  assert.equal(code, 7, stderr)
  assert.match(stderr, /E_DB_UNUSABLE/)
  assert.equal(existsSync(join(ctx.cwd, 'x.db')), false)
})

test('a problem of the data is in the copy as well: it is kept and reported', async () => {
  await using ctx = await createCliTestContext()
  await enqueueCrawl(ctx.store, 2)
  await ctx.database.raw('UPDATE run_counters SET planned = planned + 1')
  const { stdout } = await ctx.cli(['backup', 'x.db'], 3)
  assert.match(stdout, /counters \(problem\)/)
  assert.ok(existsSync(join(ctx.cwd, 'x.db')))
})

test('for a server the exact command of pg_dump is printed, without the password', async () => {
  await using ctx = await createCliTestContext()
  const address =
    'postgres://me:hunter%402@db.example:5433/un%20stuck?connection_limit=4&sslmode=require'
  const { stderr, stdout, code } = await backUp(ctx, "it's.dump", address)
  assert.equal(code, 2)
  assert.equal(stdout, '')
  assert.ok(!stderr.includes('hunter'))
  const dump = /^ {2}(pg_dump .*)$/m.exec(stderr)![1]!
  assert.equal(
    dump,
    `pg_dump --format=custom --schema=unstuck --file='${ctx.cwd}/it'\\''s.dump' ` +
      `--dbname='host=db.example port=5433 dbname='\\''un stuck'\\'' user=me sslmode=require'`,
  )
  assert.equal(toConnectionString('postgres:///x?host=/run/pg'), 'host=/run/pg dbname=x')
  assert.equal(
    toConnectionString('postgresql://u:p@[::1]:5,b/x'),
    'host=::1,b port=5,5432 dbname=x user=u',
  )
})

test('on a terminal the copy reports where it is', { skip: noTerminal }, async () => {
  await using ctx = await createCliTestContext()
  await enqueueCrawl(ctx.store, 5)
  const { code, text } = await ctx.runInteractively(['backup', 'x.db'])
  assert.equal(code, 0)
  assert.match(text, /Copied .* to /)
})
