import type { Registry } from 'prom-client'
import { registerMetrics as register } from './features/metrics/route.ts'
import type { Unstuck } from './interfaces/library/types.ts'
import { UnstuckClient } from './interfaces/library/unstuck.ts'

/**
 * Registers Unstuck's metrics in a registry of prom-client. Disposing the result stops their background reads.
 * @throws {UsageError} prom-client is not installed, or `unstuck` is not from `open()`.
 * @example await registerMetrics(register, await open())
 */
export async function registerMetrics(registry: Registry, unstuck: Unstuck): Promise<Disposable> {
  const { store, settings } = UnstuckClient.internalsOf(unstuck)
  const stop = await register(registry, { store, policyOf: settings.policyOf })
  return { [Symbol.dispose]: stop }
}
