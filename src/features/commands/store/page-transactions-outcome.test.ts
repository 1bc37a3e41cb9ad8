import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { LeaseLostError, StoreUnavailableError, UsageError } from '../../../core/model/errors.ts'
import {
  claimOne,
  enqueueCrawl,
  makeItems,
  nextCheckpoint,
  recoverWorker,
  registerWorker,
} from '../../../testing/fixtures.ts'
import { setUpOwnProgram, waitUntilBlocked } from '../../../testing/own-program.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import { openExtended } from '../../../testing/test-database.ts'
import { PAGE_TRANSACTIONS } from './page-transactions.ts'

const INSERT = 'INSERT INTO ledger VALUES (1)'

describe('a COMMIT whose reply got lost', () => {
  test('P5 is in or not as its page is, whenever the connection ends', async () => {
    await using scene = await setUpOwnProgram()
    const { store, claimed, connect, ledger } = scene
    let saved = 0
    for (let round = 0; round < 20; round++) {
      const program = await connect()
      const page = nextCheckpoint({ ...claimed, seq: saved, page: saved })
      await program.begin(store, page)
      await program.query(INSERT)
      // The server gets the bytes that were written before the end of the connection, or only the end.
      const isSent = round % 2 === 0
      const reply = isSent ? program.query('COMMIT').catch(() => {}) : undefined
      program.disconnect()
      await reply

      const isIn = await store.isSaved(page)
      if (isIn) saved += 1
      assert.equal(await ledger(), saved)
      assert.equal(isIn, isSent)
    }
    assert.equal(saved, 10)
  })

  for (const isIn of [true, false]) {
    test(`P5 is waited for while the server is at it: it ${isIn ? 'succeeds' : 'fails'}`, async () => {
      await using scene = await setUpOwnProgram()
      const { db, store, claimed, program, connect, ledger } = scene
      await db.raw(/* sql */ `
        CREATE FUNCTION hold() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
          PERFORM pg_advisory_xact_lock(7);
          ${isIn ? '' : `RAISE EXCEPTION 'not this time';`}
          RETURN NULL;
        END $$;
        CREATE CONSTRAINT TRIGGER hold AFTER INSERT ON ledger DEFERRABLE INITIALLY DEFERRED
          FOR EACH ROW EXECUTE FUNCTION hold();
      `)
      const holder = await connect()
      await holder.query('SELECT pg_advisory_lock(7)')
      const page = nextCheckpoint(claimed, { items: makeItems(0, 1) })
      await program.begin(store, page)
      await program.query(INSERT)
      const reply = assert.rejects(program.query('COMMIT'))
      await waitUntilBlocked(db)
      program.disconnect()
      await reply

      const settled = store.isSaved(page)
      await waitUntilBlocked(db, 2)
      await holder.query('SELECT pg_advisory_unlock(7)')

      assert.equal(await settled, isIn)
      assert.equal(await ledger(), isIn ? 1 : 0)
    })
  }
})

test('a transaction that does not end is not waited for without limit: the call can be repeated', async () => {
  await using scene = await setUpOwnProgram()
  const { store, claimed, program } = scene
  const page = nextCheckpoint(claimed)
  await program.begin(store, page)

  await assert.rejects(store.isSaved(page), (error) => {
    assert.ok(error instanceof StoreUnavailableError)
    assert.match(error.message, /commit it or roll it back/)
    return true
  })
  await program.query('COMMIT')
  assert.equal(await store.isSaved(page), true)
})

test('the outcome is that of this claim, number and content alone', async () => {
  await using scene = await setUpOwnProgram()
  const { store, worker, claimed, program } = scene
  const page = nextCheckpoint(claimed)
  assert.equal(await store.isSaved(page), false)
  await program.save(store, page)

  assert.equal(await store.isSaved(page), true)
  assert.equal(await store.isSaved({ ...page, hash: 'another' }), false)
  assert.equal(await store.isSaved({ ...page, expectedSeq: 1 }), false)
  const claim = { ...page.claim, epoch: page.claim.epoch + 1 }
  await assert.rejects(store.isSaved({ ...page, claim }), LeaseLostError)
  await recoverWorker(store, worker)
  await assert.rejects(store.isSaved(page), LeaseLostError)
})

test('on SQLite it is refused, with what is needed', async () => {
  await using db = await sqliteEngine.fresh()
  const store = await openExtended(db, PAGE_TRANSACTIONS)
  await enqueueCrawl(store, 1)
  const page = nextCheckpoint(await claimOne(store, await registerWorker(store)))

  assert.throws(() => store.checkpointCall(page), UsageError)
  await assert.rejects(store.isSaved(page), /needs PostgreSQL/)
})
