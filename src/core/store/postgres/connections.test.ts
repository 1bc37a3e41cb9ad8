import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Client } from 'pg'
import { StoreUnavailableError, type UnstuckError } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import {
  itemsOf,
  assertAllOk,
  claim,
  claimOne,
  registerWorker,
  unwrap,
  nextCheckpoint,
  makeItems,
  SOURCE,
  enqueueCrawl,
} from '../../../testing/fixtures.ts'
import { assertCountersConsistent } from '../../../testing/assert-counters.ts'
import { postgresEngine as engine } from '../../../testing/postgres-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { openStore } from '../open.ts'
import type { StatementMoment } from '../statement-channel.ts'
import type { Store } from '../store.ts'

/** Those of unstuck; the tests' own have another name. */
const SESSIONS = `SELECT pid, query FROM pg_stat_activity
  WHERE datname = current_database() AND application_name = 'unstuck'`

async function openOn(
  stack: AsyncDisposableStack,
  db: TestDatabase,
  connections?: number,
): Promise<Store> {
  const store = await openStore(db.url, connections === undefined ? {} : { connections })
  stack.defer(() => store.close())
  return store
}

/** A function for a page's transaction that ends when it is told to. */
function makePause() {
  const started = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const work = async (): Promise<void> => {
    started.resolve()
    await end.promise
  }
  return { work, started: started.promise, end: () => end.resolve() }
}

test('a store has two connections, however many pages are saved at once', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db)
  await enqueueCrawl(store, 20)
  const claims = await claim(store, await registerWorker(store), 20)

  const saving = claims.map((one) =>
    store.checkpoint([nextCheckpoint(one)], (tx) => tx.query('SELECT 1')),
  )
  const looks = await Promise.all([db.raw(SESSIONS), db.raw(SESSIONS), db.raw(SESSIONS)])
  for (const saved of await Promise.all(saving)) assertAllOk(saved)

  for (const look of [...looks, await db.raw(SESSIONS)])
    assert.ok(look.length <= 2, `${look.length}`)
})

test('the address can name another number of connections', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openStore(`${db.url}?connection_limit=3`)
  stack.defer(() => store.close())
  await enqueueCrawl(store, 4)
  const claims = await claim(store, await registerWorker(store), 4)
  const pauses = claims.map(() => makePause())

  const saving = claims.map((one, n) => store.checkpoint([nextCheckpoint(one)], pauses[n]!.work))
  await pauses[1]!.started
  assert.ok(await store.run((await store.liveRun(SOURCE))!.id))
  const sessions = await db.raw(SESSIONS)
  for (const { end } of pauses) end()
  for (const saved of await Promise.all(saving)) assertAllOk(saved)

  assert.equal(sessions.length, 3)
})

test("a page whose function takes long leaves a connection for other pages, and the next one's function waits", async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db)
  await enqueueCrawl(store, 3)
  const worker = await registerWorker(store)
  const [first, second, third] = await claim(store, worker, 3)
  const slow = makePause()
  const next = makePause()

  const saving = store.checkpoint([nextCheckpoint(first!)], slow.work)
  await slow.started
  const waiting = store.checkpoint([nextCheckpoint(second!)], next.work)
  assert.equal(unwrap((await store.checkpoint([nextCheckpoint(third!)]))[0]!).seq, 1)
  await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
  slow.end()
  assert.equal(unwrap((await saving)[0]!).seq, 1)
  await next.started
  next.end()

  assert.equal(unwrap((await waiting)[0]!).seq, 1)
})

test('pages that wait for a connection are saved in one statement', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db, 1)
  await enqueueCrawl(store, 12)
  const claims = await claim(store, await registerWorker(store), 12)
  const statements: string[] = []
  const listen = (message: unknown): void => {
    const { name, moment } = message as StatementMoment
    if (moment === 'before') statements.push(name)
  }
  subscribe('unstuck:statement', listen)
  stack.defer(() => void unsubscribe('unstuck:statement', listen))

  const saved = await Promise.all(claims.map((one) => store.checkpoint([nextCheckpoint(one)])))

  for (const outcomes of saved) assertAllOk(outcomes)
  assert.equal(statements.length, 2)
})

test('pages that are saved together have each its own outcome', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db, 1)
  const run = await enqueueCrawl(store, 12)
  const claims = await claim(store, await registerWorker(store), 12)
  const pages = claims.map((one, n) => {
    if (n === 5) return nextCheckpoint(one, { next: 'not storable: \0' })
    return nextCheckpoint(n === 7 ? { ...one, epoch: 99 } : one, { items: makeItems(2 * n, 2) })
  })

  const saved = await Promise.all(pages.map((one) => store.checkpoint([one])))

  const codes = saved.map(([outcome]) =>
    outcome!.ok ? 'ok' : (outcome!.error as UnstuckError).code,
  )
  assert.deepEqual(
    codes,
    codes.map((_, n) => (n === 5 ? 'E_PAGE_REJECTED' : n === 7 ? 'E_LEASE_LOST' : 'ok')),
  )
  assert.equal((await itemsOf(store)).length, 20)
  await assertCountersConsistent(store, run)
})

test('a call that gets no connection in time names the cause', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db, 1)
  await enqueueCrawl(store, 1)
  const claimed = await claimOne(store, await registerWorker(store))
  const slow = makePause()

  const saving = store.checkpoint([nextCheckpoint(claimed)], slow.work)
  await slow.started
  await assert.rejects(store.now(), (error) => {
    assert.ok(error instanceof StoreUnavailableError)
    assert.match(error.message, /one connection .* none came free/)
    return true
  })
  slow.end()

  assertAllOk(await saving)
})

test('a heartbeat waits for nothing else, and its connection holds the presence lock', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db, 1)
  const held = await store.acquirePresence(newId())
  stack.defer(() => held.release())
  const worker = await registerWorker(store, { presence: held.presence })
  await enqueueCrawl(store, 1)
  const slow = makePause()

  const saving = store.checkpoint([nextCheckpoint(await claimOne(store, worker))], slow.work)
  await slow.started
  await store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
  const locks = await db.raw(`SELECT a.query FROM pg_locks l JOIN pg_stat_activity a USING (pid)
    WHERE l.locktype = 'advisory' AND a.application_name = 'unstuck' AND a.datname = current_database()`)
  const sessions = await db.raw(SESSIONS)
  slow.end()
  assertAllOk(await saving)

  assert.equal(sessions.length, 2)
  assert.equal(locks.length, 1)
  assert.match(String(locks[0]!['query']), /UPDATE unstuck\.worker/)
})

test('when the session of the heartbeat is ended, the next heartbeat gets through and the lock is taken again', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db, 1)
  const held = await store.acquirePresence(newId())
  stack.defer(() => held.release())
  const worker = await registerWorker(store, { presence: held.presence })
  const beat = () => store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
  await beat()

  for (let round = 0; round < 3; round++) {
    await db.raw(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'
      AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
    // The first may still go to the session that has ended.
    await beat().catch((error: unknown) => assert.ok(error instanceof StoreUnavailableError))
    await beat()
    await waitUntilHeld(store, worker)
  }
})

/** Another session has the lock, as the server believes of one that died and that it does not yet know of. */
test('while the server still holds the lock for a dead session, heartbeats go on', async () => {
  await using db = await engine.fresh()
  await using stack = new AsyncDisposableStack()
  const store = await openOn(stack, db, 1)
  const held = await store.acquirePresence(newId())
  stack.defer(() => held.release())
  const worker = await registerWorker(store, { presence: held.presence })
  const beat = () => store.heartbeat({ worker, claimIds: [], loopLagMs: 0 })
  await beat()
  const other = new Client({ connectionString: db.url })
  await other.connect()
  stack.defer(() => other.end())
  const { key } = held.presence as { key: string }

  const taking = other.query(`SELECT pg_advisory_lock(${key})`)
  await db.raw(`SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
  await taking
  await beat().catch((error: unknown) => assert.ok(error instanceof StoreUnavailableError))
  await beat()
  await beat()
  await other.query(`SELECT pg_advisory_unlock(${key})`)

  await waitUntilHeld(store, worker)
})

async function waitUntilHeld(store: Store, worker: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    const seen = (await store.observations()).find((one) => one.worker.id === worker)
    if (seen!.evidence.presence === 'held') return
    assert.ok(tries < 1_000, 'the lock was not taken again')
    await sleep(20)
  }
}
