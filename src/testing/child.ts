import process from 'node:process'
import { messageOf } from '../core/model/errors.ts'
import { openStore } from '../core/store/open.ts'
import { thisProcess } from '../core/host/identity.ts'
import type { HeldPresence, Store } from '../core/store/store.ts'
import type { Answer, Question } from './other-process.ts'

/** The other side of `otherProcess`: does with its stores what it is asked. */

const [url, count] = process.argv.slice(2)
/** Kept, so that nothing but the end of the process frees them. */
const presences: HeldPresence[] = []

try {
  const stores = await Promise.all(Array.from({ length: Number(count) }, () => openStore(url!)))
  process.on('message', (question: Question) => void answer(stores, question))
  process.on('disconnect', () => process.exit())
  reply({ id: 0 })
} catch (error) {
  reply({ id: 0, error: { name: (error as Error).name, message: messageOf(error) } })
}

async function answer(stores: Store[], { id, store, verb, args }: Question): Promise<void> {
  try {
    reply({ id, value: await act(stores[store]!, verb, args) })
  } catch (error) {
    reply({ id, error: { name: (error as Error).name, message: messageOf(error) } })
  }
}

async function act(store: Store, verb: string, args: unknown[]): Promise<unknown> {
  if (verb === 'holdPresence') {
    const held = await store.holdPresence(args[0] as string)
    presences.push(held)
    return held.presence
  }
  if (verb === 'register') {
    return store.register({
      ...(args[0] as Parameters<Store['register']>[0]),
      process: thisProcess(),
    })
  }
  const call = store[verb as keyof Store] as (...args: unknown[]) => Promise<unknown>
  return call(...args)
}

function reply(answer: Answer): void {
  process.send?.(answer)
}
