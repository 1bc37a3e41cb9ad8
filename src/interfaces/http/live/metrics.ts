import type { Registry } from 'prom-client'
import { registerMetrics as enter } from '../../../features/metrics/prometheus.ts'
import { storedPolicy, type PolicyOf } from '../../../core/recovery/assess.ts'
import type { Store } from '../../../core/store/store.ts'
import { VERSION } from '../../../core/host/version.ts'
import type { ServerContext } from '../route.ts'
import { MetricsCollector } from '../../../features/metrics/figures.ts'
import { registerHttpMetrics } from './http-metrics.ts'

/** Enters Unstuck's metrics into a registry of one's own. Answers how to end what was begun for them. */
export async function registerMetrics(
  registry: Registry,
  { store, policyOf = storedPolicy }: { readonly store: Store; readonly policyOf?: PolicyOf },
): Promise<() => void> {
  const collector = new MetricsCollector(store, policyOf)
  const figures = () => collector.collect()
  await enter(registry, { version: VERSION, engine: store.engine, figures })
  return () => collector.stop()
}

const registries = new WeakMap<ServerContext, Promise<Registry>>()

/** Everything in the words of Prometheus. Nothing is loaded or counted before the first who asks. */
export async function scrape(server: ServerContext): Promise<Response> {
  const made = registries.get(server) ?? makeRegistry(server)
  registries.set(server, made)
  // What went wrong is forgotten: the next who asks tries again.
  made.catch(() => registries.delete(server))
  const registry = await made
  return new Response(await registry.metrics(), {
    headers: { 'content-type': registry.contentType, 'cache-control': 'no-store' },
  })
}

async function makeRegistry({
  store,
  settings,
  errorLog,
  closing,
}: ServerContext): Promise<Registry> {
  const { default: client } = await import('prom-client')
  const registry = new client.Registry()
  const stop = await registerMetrics(registry, { store, policyOf: settings.policyOf })
  await registerHttpMetrics(registry, errorLog)
  closing.addEventListener('abort', stop, { once: true })
  return registry
}
