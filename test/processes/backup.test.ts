import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { openStore } from '../../src/core/store/open.ts'
import { readDatabaseInfo } from '../../src/features/inspection/store/database-info.ts'
import {
  claim,
  enqueueCrawl,
  nextCheckpoint,
  registerWorker,
  savePage,
} from '../../src/testing/fixtures.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine, temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'
import { ProcessTestContext } from './harness.ts'

const [TARGETS, PAGES] = [8, 12]
const ALL = Array.from(
  { length: TARGETS * PAGES },
  (_, n) => `${n % TARGETS}/${1 + Math.floor(n / TARGETS)}`,
)

const CRAWL = `
  *targets() { for (let n = 0; n < ${TARGETS}; n++) yield { key: String(n) } },
  async page({ target, page }) {
    mark('page', target.key, page)
    if (page > 3) await opened(page > 8 ? 'rest' : 'later')
    await sleep(5)
    return { items: [{ key: target.key + '/' + page, data: page }], next: page < ${PAGES} ? 'next' : null }
  },
`

function itemsIn(path: string): string[] {
  using db = new DatabaseSync(path, { readOnly: true })
  return db
    .prepare('SELECT key FROM item')
    .all()
    .map((row) => String(row['key']))
}

const readGuide = (): string =>
  readFileSync(new URL('../../docs/guides/backup.md', import.meta.url), 'utf8')

/** Runs the commands of docs/guides/backup.md that put a copy in place. */
function restoreAsInTheGuide(path: string, backup: string, cwd: string): void {
  const block = /^```sh\n(mkdir old && mv [^]*?)^unstuck doctor/m.exec(readGuide())![1]!
  const script = block
    .replaceAll('.unstuck/unstuck.db', path)
    .replaceAll('/var/backups/unstuck.db', backup)
  execFileSync('sh', ['-ec', script], { cwd })
}

for (const isOtherBoot of [false, true]) {
  const where = isOtherBoot ? 'after a reboot' : 'on the same machine'
  test(`P4 a backup of a running crawl is restored ${where}: all of its pages are there, and the crawl goes on`, async () => {
    await using ctx = await ProcessTestContext.create(sqliteEngine)
    const path = ctx.database.url.slice('sqlite:'.length)
    const crawl = ctx.crawl(CRAWL)
    const workers = [ctx.unstuck('work', crawl), ctx.unstuck('work', crawl)]
    await ctx.waitForMarks('page', 4)
    const backup = join(ctx.folder, 'backup.db')
    const env = { UNSTUCK_DB: ctx.database.url }
    const copied = await unstuck(['backup', backup], { cwd: ctx.folder, env })
    assert.equal(copied.code, 0, copied.stderr)
    ctx.openGate('later')
    await ctx.waitForMarks('page', ctx.marks('page').length + 8)
    for (const worker of workers) worker.signal('SIGKILL')
    await Promise.all(workers.map((worker) => worker.exited))

    const saved = itemsIn(backup)
    assert.ok(saved.length > 0 && saved.length < itemsIn(path).length, 'later pages are not in it')
    restoreAsInTheGuide(path, backup, ctx.folder)
    if (isOtherBoot) {
      using db = new DatabaseSync(path)
      const other = 'ffffffff-ffff-ffff-ffff-ffffffffffff'
      db.exec(
        `UPDATE clock SET id = '${other}' || substr(id, 37), offset_ms = offset_ms + 86400000`,
      )
    }
    const store = await openStore(ctx.database.url)
    const [before] = (await store.runs({ limit: 2 })).items
    assert.equal(before!.counts.pages, saved.length)
    await store.close()
    const checked = await unstuck(['doctor', '--json'], { cwd: ctx.folder, env })
    const results = JSON.parse(checked.stdout).checks.map(
      (one: any) => `${one.check} ${one.result}`,
    )
    for (const check of ['schema', 'counters', 'one-live-run', 'claims'])
      assert.ok(results.includes(`${check} ok`), `${check}: ${checked.stdout}`)

    ctx.openGate('rest')
    const again = ctx.unstuck('work', crawl, '--drain')
    assert.equal(await again.waitForExit(), 0, again.output)
    const [run, ...more] = (await (await ctx.store()).runs({ limit: 5 })).items
    assert.deepEqual([run!.id, run!.status, more], [before!.id, 'succeeded', []], 'the same run')
    assert.deepEqual(itemsIn(path).toSorted(), ALL.toSorted())
    assert.equal(run!.counts.pages, ALL.length, 'no page is counted twice')
  })
}

/** Why the dump cannot be made here; false where it can. */
async function noDump(url: string): Promise<string | false> {
  const { engine } = await readDatabaseInfo(url)
  const version = spawnSync('sh', ['-c', 'pg_dump --version'], { encoding: 'utf8' }).stdout ?? ''
  const own = Number.parseInt(/\d+/.exec(version)?.[0] ?? '0', 10)
  const server = engine?.name === 'postgres' ? Number.parseInt(engine.serverVersion, 10) : 0
  return own < server && `pg_dump is missing or older than the server, ${server}`
}

test('P4 a dump of PostgreSQL, made and restored as documented, passes every check, and later pages are refused', async (t) => {
  await using database = await postgresEngine.empty()
  const store = await database.open()
  const skipped = await noDump(database.url)
  if (skipped) return t.skip(skipped)
  using folder = temporaryFolder()
  const env = { UNSTUCK_DB: database.url }
  const call = (...args: string[]) => unstuck(args, { cwd: folder.path, env })
  const run = await enqueueCrawl(store, 3)
  const worker = await registerWorker(store)
  const [claimed] = await claim(store, worker, 1)
  const held = await savePage(store, claimed!, { items: [{ key: 'a', data: 1 }] })
  const dump = /^ {2}(pg_dump .*)$/m.exec((await call('backup', 'unstuck.dump')).stderr)![1]!
  const options = { cwd: folder.path, env: { ...process.env, DB: database.url } }
  execFileSync('sh', ['-ec', dump], options)
  await savePage(store, held, { items: [{ key: 'b', data: 1 }] })
  await store.retireWorker(worker)
  const restore = /^psql "\$DB"[^]*?(?=^unstuck doctor)/m.exec(readGuide())![0]
  execFileSync(
    'sh',
    ['-ec', restore.replaceAll('unstuck.dump', join(folder.path, 'unstuck.dump'))],
    options,
  )

  const { checks } = JSON.parse((await call('doctor', '--json')).stdout)
  for (const name of ['schema', 'counters', 'one-live-run', 'claims'])
    assert.equal(checks.find(({ check }: any) => check === name).result, 'ok', name)
  const [late] = await store.checkpoint([nextCheckpoint({ ...held, seq: held.seq + 1 })])
  assert.equal(late!.ok, false, 'a page after one that the restore has lost is refused')
  assert.equal((await store.run(run))!.counts.pages, 1)
})
