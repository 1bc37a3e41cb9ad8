import type { InTransaction, Transaction } from '../../model/checkpoint.ts'
import { messageOf, toError, UnstuckError, UsageError } from '../../model/errors.ts'
import { callUserFunction } from '../user-function.ts'
import { IDLE_MS, type Connection, type Database } from './database.ts'
import { isContention, storeError } from './errors.ts'

/** Keeps what the user's function threw apart from what the store throws: it is not for the store to interpret. */
export class UserCodeError extends Error {}

/** The writer of the counters in a page's transaction, for our own statements in it. */
export function writerOf(tx: Transaction): string {
  const writer = writers.get(tx)
  if (writer === undefined) throw new UsageError('This belongs into a checkpoint of its own store.')
  return writer
}

const writers = new WeakMap<Transaction, string>()

/** Functions of this program that join a page's transaction: they are quick, and hold no connection for long. */
export const internalFunctions = new WeakSet<InTransaction>()

/** Runs the user's own statements in a page's transaction. */
export async function runInTransaction(
  db: Database,
  connection: Connection,
  inTransaction: InTransaction,
): Promise<void> {
  let isOver = false
  let lastAskedAt = performance.now()

  const query = async (
    text: string,
    params: readonly unknown[] = [],
  ): Promise<Record<string, unknown>[]> => {
    if (isOver) throw new UsageError('The page is already committed: await each tx.query().')
    checkIdleTime(lastAskedAt)
    try {
      return await connection.query(text, params)
    } catch (error) {
      throw storeError(error, db.address.where)
    } finally {
      lastAskedAt = performance.now()
    }
  }

  try {
    const tx = { query }
    writers.set(tx, connection.writer)
    await callUserFunction(db, () => inTransaction(tx))
    checkIdleTime(lastAskedAt)
  } catch (thrown) {
    const error = toError(thrown)
    // What comes of the store is the store's, also when it went through the user's hands.
    if (error instanceof UnstuckError || isContention(error)) throw error
    throw new UserCodeError(messageOf(error), { cause: error })
  } finally {
    isOver = true
  }
}

/** The server ends a transaction that is idle for too long. Trying again would end the same way. */
function checkIdleTime(lastAskedAt: number): void {
  if (performance.now() - lastAskedAt < IDLE_MS) return
  throw new UsageError(
    `The function given to checkpoint() left its transaction idle for more than ${IDLE_MS / 1_000} s, so the ` +
      'server ended it. Nothing was saved. Do what takes long before the checkpoint.',
  )
}
