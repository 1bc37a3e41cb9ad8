import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  StoreReadOnlyError,
  StoreUnavailableError,
  UnstuckError,
  UnusableStoreError,
  UsageError,
} from '../../model/errors.ts'
import {
  itemsOf,
  beginOne,
  begin,
  listTargets,
  claim,
  claimOne,
  registerWorker,
  nextCheckpoint,
  savePage,
  makeItems,
  enqueueCrawl,
  getTarget,
  unwrap,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { startStoreProcesses } from '../../../testing/store-process.ts'
import { sqliteEngine as engine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { openStore } from '../open.ts'
import { storeError } from './errors.ts'
import { networkFileSystem } from './network-drive.ts'

test('four processes that saturate one file all get their share, without an error', async () => {
  await using db = await engine.fresh()
  const children = Array.from({ length: 4 }, (_, n) =>
    fork(new URL('../../../testing/saturate.ts', import.meta.url), [db.url, `s${n}`, '4000']),
  )
  await Promise.all(children.map((child) => once(child, 'message')))
  const answers = children.map((child) => once(child, 'message'))
  const ends = children.map((child) => once(child, 'exit'))
  for (const child of children) child.send('go')

  const pages = (await Promise.all(answers)).map(([answer]) => (answer as { pages: number }).pages)
  const codes = (await Promise.all(ends)).map(([code]) => code as number)

  assert.deepEqual(codes, [0, 0, 0, 0])
  const mean = pages.reduce((sum, n) => sum + n) / 4
  for (const n of pages) assert.ok(n >= mean / 10, `starved: ${pages.join(', ')} pages`)
})

test('waiting for the write lock does not block the event loop, and ends when the lock is free', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  const other = new DatabaseSync(store.location)
  other.exec('BEGIN IMMEDIATE')
  let longest = 0
  let last = performance.now()
  const ticking = setInterval(() => {
    longest = Math.max(longest, performance.now() - last)
    last = performance.now()
  }, 5)
  ticking.unref()

  const waiting = enqueueCrawl(store, 1)
  await sleep(3_000)
  assert.deepEqual((await store.runs({ limit: 10 })).items, [], 'reading goes on')
  other.exec('COMMIT')
  other.close()
  await waiting
  clearInterval(ticking)

  // Of the three seconds: a busy machine may take its part.
  assert.ok(longest < 2_000, `the event loop stood still for ${Math.round(longest)} ms`)
})

test('when a statement of the user makes SQLite roll back, the page fails with that error and no later statement runs', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await db.raw('CREATE TABLE ledger (page INTEGER UNIQUE)')
  const run = await enqueueCrawl(store, 1)
  const claimed = await claimOne(store, await registerWorker(store))
  const insert = 'INSERT OR ROLLBACK INTO ledger VALUES (?)'

  await assert.rejects(
    store.checkpoint([nextCheckpoint(claimed)], async (tx) => {
      await tx.query(insert, [1])
      await tx.query(insert, [1]).catch(() => {})
      await tx.query(insert, [2]).catch(() => {})
    }),
    /UNIQUE constraint failed/,
  )

  assert.deepEqual(await db.raw('SELECT * FROM ledger'), [])
  assert.equal((await getTarget(store, claimed.target)).seq, 0)
  await assertCountersConsistent(store, run)
})

test('sixteen writers on one file lose nothing', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await using processes = await startStoreProcesses(db.url, 4, 4)
  const worker = await registerWorker(store)
  const run = await enqueueCrawl(store, 16)
  const claims = await claim(store, worker, 16)

  await Promise.all(
    claims.map(async (claimed, n) => {
      for (let at = claimed; at.page < 20; at = { ...at, seq: at.seq + 1, page: at.page + 1 }) {
        const next = nextCheckpoint(at, {
          items: makeItems(n * 1_000 + at.page, 1),
          done: at.page === 19,
        })
        const [outcome] = await processes.all[n % 4]!.call(n >> 2, 'checkpoint', [next])
        assert.deepEqual(unwrap(outcome!), { seq: at.seq + 1 })
      }
    }),
  )

  assert.equal((await itemsOf(store)).length, 320)
  assert.partialDeepStrictEqual((await store.run(run))?.counts, { pages: 320, itemsNew: 320 })
  await assertCountersConsistent(store, run)
})

test('a jump of the wall clock expires no lease', async (t) => {
  await using db = await engine.fresh()
  const store = await db.open()
  const [worker, other] = [await registerWorker(store), await registerWorker(store)]
  await enqueueCrawl(store, 2)
  unwrap((await store.release([await claimOne(store, worker)]))[0]!)
  await store.acquireLeadership(worker, 60_000)
  const hour = 3_600_000
  for (const jump of [hour, -hour]) {
    t.mock.timers.enable({ apis: ['Date'], now: Date.now() + jump })

    const [witnessed] = await store.observations()
    assert.ok(
      witnessed!.evidence.heartbeatAgeMs < hour / 2,
      `age ${witnessed!.evidence.heartbeatAgeMs} ms`,
    )
    assert.deepEqual(await store.settle(), [], 'its worker lives')
    assert.equal(await store.acquireLeadership(other, 60_000), false)
    t.mock.timers.reset()
  }
})

test('a target with an unreadable cursor is parked with a reason, and the others are claimed', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  const worker = await registerWorker(store)
  const run = await enqueueCrawl(store, 3)
  const [broken] = await listTargets(store, run)
  await db.raw(`UPDATE target SET cursor = '{"at": ' WHERE id = '${broken!.id}'`)

  const claimed = await claim(store, worker, 3)

  assert.equal(claimed.length, 2)
  const target = await getTarget(store, broken!.id)
  assert.equal(target.status, 'parked')
  assert.match(target.lastError ?? '', /cursor/)
  assert.equal(target.crashes, 0)
  await assertCountersConsistent(store, run)
})

test('a run with one target whose cursor can no longer be read ends, and the source is free again', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  const worker = await registerWorker(store)
  const claimed = await beginOne(store, worker)
  unwrap((await store.release([claimed]))[0]!)
  await db.raw(`UPDATE target SET cursor = 'nonsense'`)

  assert.deepEqual(await begin(store, worker), { claimed: null, blockingRun: claimed.run })

  assert.deepEqual(await store.settle(), [{ run: claimed.run, status: 'failed' }])
  assert.notEqual((await beginOne(store, worker)).run, claimed.run)
})

test('a full disk is a typed error; when there is room again work continues', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await enqueueCrawl(store, 1)
  let claimed = await claimOne(store, await registerWorker(store))
  const limit = async (pages: string) => {
    const next = nextCheckpoint(claimed)
    const [outcome] = await store.checkpoint([next], (tx) =>
      tx.query(`PRAGMA max_page_count = ${pages}`),
    )
    claimed = { ...claimed, ...unwrap(outcome!), page: next.page }
  }
  await limit('1')
  const big = nextCheckpoint(claimed, { items: makeItems(0, 50, 'x'.repeat(20_000)) })

  await assert.rejects(store.checkpoint([big]), (error) => {
    assert.ok(error instanceof StoreUnavailableError)
    assert.match(error.message, /full/)
    return true
  })
  assert.deepEqual(await itemsOf(store), [])
  await assert.rejects(store.checkpoint([big]), StoreUnavailableError)

  await limit('1000000')
  await savePage(store, claimed, { items: makeItems(0, 50, 'x'.repeat(20_000)) })
  assert.equal((await itemsOf(store)).length, 50)
})

test('a path that cannot be a database is rejected with advice', async () => {
  using folder = temporaryFolder()
  const at = (name: string): string => join(folder.path, name)
  mkdirSync(at('folder'))
  writeFileSync(at('text.db'), 'This is not a database, it is a text of some length.\n'.repeat(100))
  writeFileSync(at('file'), '')

  for (const name of ['folder', 'text.db', 'file/below.db']) {
    await assert.rejects(openStore(`sqlite:${at(name)}`), (error) => {
      assert.ok(error instanceof UnusableStoreError, `${name}: ${String(error)}`)
      assert.ok(error.message.includes(at(name)))
      return true
    })
  }
  await assert.rejects(openStore('mysql://somewhere'), UsageError)
})

test('a database is made where none is, with its folder, for the eyes of its owner only', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'deep', 'er', 'unstuck.db')

  const store = await openStore(`sqlite:${path}`)
  const held = await store.acquirePresence('01977777-0000-7000-8000-000000000000')

  const mode = (file: string): number => statSync(file).mode & 0o777
  assert.equal(mode(path), 0o600)
  assert.equal(mode(`${path}-wal`), 0o600)
  assert.equal(mode(join(folder.path, 'deep')), 0o700)
  assert.equal(mode(`${path}-workers`), 0o700)
  await held.release()
  await store.close()
})

test('a network file system is known by its type', () => {
  assert.equal(
    networkFileSystem('/', () => 0x6969),
    'NFS',
  )
  assert.equal(
    networkFileSystem('/', () => 0xff534d42),
    'CIFS',
  )
  assert.equal(
    networkFileSystem('/', () => 0xef53),
    null,
  )
  assert.equal(networkFileSystem(import.meta.dirname), null)
})

test('SQLite errors are mapped to typed errors', () => {
  const told = (errcode: number): unknown =>
    storeError({ code: 'ERR_SQLITE_ERROR', errcode, message: 'x' }, '/a.db')
  const FULL = 13
  const IOERR_WRITE = 10 | (3 << 8)
  const READONLY_DBMOVED = 8 | (4 << 8)

  assert.ok(told(5) instanceof StoreUnavailableError)
  assert.ok(told(FULL) instanceof StoreUnavailableError)
  assert.ok(told(IOERR_WRITE) instanceof StoreUnavailableError)
  assert.ok(told(READONLY_DBMOVED) instanceof StoreReadOnlyError)
  for (const code of [11, 14, 26]) assert.ok(told(code) instanceof UnusableStoreError)
  assert.ok(!(told(19) instanceof UnstuckError), 'a constraint is not the disk')
  const own = new UsageError('mine')
  assert.equal(storeError(own, '/a.db'), own)
})
