import { fork, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import type { Presence } from '../core/model/worker.ts'
import type { Store } from '../core/store/store.ts'

/** What the child is asked, and what it answers. */
export type RpcRequest = { id: number; store: number; method: string; args: unknown[] }
export type RpcResponse = { id: number; value?: unknown; error?: { name: string; message: string } }

/** A real process with stores of its own, to race against and to kill. */
export type StoreProcess = AsyncDisposable & {
  readonly pid: number
  readonly process: ChildProcess
  /** Calls a verb of its n-th store there. */
  call<V extends StoreMethod>(
    store: number,
    method: V,
    ...args: Parameters<Store[V]>
  ): Promise<Awaited<ReturnType<Store[V]>>>
  /** Takes a presence there, held for as long as the process lives. */
  acquirePresence(worker: string): Promise<Presence>
  kill(signal: NodeJS.Signals): Promise<void>
}

type StoreMethod = Exclude<
  { [K in keyof Store]: Store[K] extends (...args: never[]) => unknown ? K : never }[keyof Store],
  'acquirePresence' | 'close'
>

/** Starts a process that has opened `stores` stores at the address. */
export async function startStoreProcess(url: string, stores = 1): Promise<StoreProcess> {
  const child = fork(new URL('./store-process-main.ts', import.meta.url), [url, String(stores)], {
    serialization: 'advanced',
  })
  const waiting = new Map<number, (answer: RpcResponse) => void>()
  let asked = 0
  child.on('message', (answer: RpcResponse) => {
    waiting.get(answer.id)?.(answer)
    waiting.delete(answer.id)
  })
  child.on('exit', () => {
    const error = { name: 'Error', message: 'the process has ended' }
    for (const [id, answer] of waiting) answer({ id, error })
  })

  const ask = async (store: number, verb: string, args: unknown[]): Promise<unknown> => {
    const id = ++asked
    const answer = await new Promise<RpcResponse>((resolve) => {
      waiting.set(id, resolve)
      child.send({ id, store, method: verb, args } satisfies RpcRequest)
    })
    if (answer.error) throw Object.assign(new Error(answer.error.message), answer.error)
    return answer.value
  }

  const kill = async (signal: NodeJS.Signals): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const ended = signal === 'SIGKILL' ? once(child, 'exit') : null
    child.kill(signal)
    await ended
  }

  const started = new Promise<RpcResponse>((resolve) => waiting.set(0, resolve))
  const { error } = await started
  if (error) throw Object.assign(new Error(error.message), error)
  return {
    pid: child.pid!,
    process: child,
    call: ((store, verb, ...args) => ask(store, verb, args)) as StoreProcess['call'],
    acquirePresence: async (worker) => (await ask(0, 'acquirePresence', [worker])) as Presence,
    kill,
    [Symbol.asyncDispose]: () => kill('SIGKILL'),
  }
}

/** Several of them, ended together. */
export async function startStoreProcesses(
  url: string,
  count: number,
  stores = 1,
): Promise<AsyncDisposable & { all: StoreProcess[] }> {
  const all = await Promise.all(Array.from({ length: count }, () => startStoreProcess(url, stores)))
  return {
    all,
    [Symbol.asyncDispose]: async () =>
      void (await Promise.all(all.map((each) => each.kill('SIGKILL')))),
  }
}
