import { AsyncLocalStorage } from 'node:async_hooks'
import { UsageError } from '../model/errors.ts'

type Call = { readonly database: object; isOver: boolean }

const calls = new AsyncLocalStorage<Call>()

/** Runs a user's function inside the transaction of a page. */
export async function callUserFunction(database: object, work: () => unknown): Promise<void> {
  const call: Call = { database, isOver: false }
  try {
    await calls.run(call, work)
  } finally {
    call.isOver = true
  }
}

/** Throws where the caller is such a function: this write would wait for the page, and the page for the function. */
export function refuseInUserFunction(database: object): void {
  const call = calls.getStore()
  if (call === undefined || call.isOver || call.database !== database) return
  throw new UsageError(
    'The function given to checkpoint() or inTransaction called Unstuck to write something. That would wait for the ' +
      'page, which waits for the function. Use only tx.query() in it, and do the rest after the page.',
  )
}
