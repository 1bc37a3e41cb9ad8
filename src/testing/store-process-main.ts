import process from 'node:process'
import { messageOf } from '../core/model/errors.ts'
import { openStore } from '../core/store/open.ts'
import { thisProcess } from '../core/host/identity.ts'
import type { PresenceLock, Store } from '../core/store/store.ts'
import type { RpcResponse, RpcRequest } from './store-process.ts'

/** The other side of `otherProcess`: does with its stores what it is asked. */

const [url, count] = process.argv.slice(2)
/** Kept, so that nothing but the end of the process frees them. */
const presences: PresenceLock[] = []

try {
  const stores = await Promise.all(Array.from({ length: Number(count) }, () => openStore(url!)))
  process.on('message', (question: RpcRequest) => void handleRequest(stores, question))
  process.on('disconnect', () => process.exit())
  reply({ id: 0 })
} catch (error) {
  reply({ id: 0, error: { name: (error as Error).name, message: messageOf(error) } })
}

async function handleRequest(
  stores: Store[],
  { id, store, method, args }: RpcRequest,
): Promise<void> {
  try {
    reply({ id, value: await callMethod(stores[store]!, method, args) })
  } catch (error) {
    reply({ id, error: { name: (error as Error).name, message: messageOf(error) } })
  }
}

async function callMethod(store: Store, verb: string, args: unknown[]): Promise<unknown> {
  if (verb === 'acquirePresence') {
    const held = await store.acquirePresence(args[0] as string)
    presences.push(held)
    return held.presence
  }
  if (verb === 'registerWorker') {
    return store.registerWorker({
      ...(args[0] as Parameters<Store['registerWorker']>[0]),
      process: thisProcess(),
    })
  }
  const call = store[verb as keyof Store] as (...args: unknown[]) => Promise<unknown>
  return call(...args)
}

function reply(answer: RpcResponse): void {
  process.send?.(answer)
}
