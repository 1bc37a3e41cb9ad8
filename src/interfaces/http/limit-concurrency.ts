import { ConcurrencyLimit } from '../../lib/http/limit-concurrency.ts'
import { tooManyRequests } from './http-error.ts'
import type { Call, ServerContext } from '../../contracts/route.ts'

/** Expensive reads per caller: two run, eight wait, the rest get 429. */
const CONCURRENT_MAX = 2
const QUEUED_MAX = 8

/** Each server has its own. */
const LIMITS = new WeakMap<ServerContext, ConcurrencyLimit>()

/** Runs an expensive read. A caller with many of them delays only itself. */
export async function limitConcurrency<T>(
  { caller, server, signal }: Pick<Call<unknown, unknown, unknown>, 'caller' | 'server' | 'signal'>,
  read: () => Promise<T>,
): Promise<T> {
  const tooMany = () => tooManyRequests(1, 'of these at once')
  const limit = LIMITS.get(server) ?? new ConcurrencyLimit(CONCURRENT_MAX, QUEUED_MAX, tooMany)
  LIMITS.set(server, limit)
  const key = JSON.stringify([caller.name, caller.by === 'local' ? null : caller.address])
  return limit.run(key, [signal], read)
}
