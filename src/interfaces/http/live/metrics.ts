import type { Registry } from 'prom-client'
import { loadPromClient, registerMetrics as enter } from '../../../features/metrics/prometheus.ts'
import { MissingPeerError } from '../../../lib/optional-peer.ts'
import type { PolicyOf } from '../../../core/model/policy-of.ts'
import type { Store } from '../../../core/store/store.ts'
import { VERSION } from '../../../core/host/version.ts'
import type { ServerContext } from '../route.ts'
import { MetricsCollector } from '../../../features/metrics/figures.ts'
import { registerHttpMetrics } from './http-metrics.ts'

/** Enters Unstuck's metrics into the caller's registry. Returns a function that stops their background reads. */
export async function registerMetrics(
  registry: Registry,
  { store, policyOf }: { readonly store: Store; readonly policyOf: PolicyOf },
): Promise<() => void> {
  const collector = new MetricsCollector(store, policyOf)
  const figures = () => collector.collect()
  await enter(registry, { version: VERSION, engine: store.engine, figures })
  return () => collector.stop()
}

const registries = new WeakMap<ServerContext, Promise<Registry>>()

/** Returns all metrics in Prometheus' text format; 501 without prom-client. The first scrape loads it. */
export async function scrape(server: ServerContext): Promise<Response> {
  const made = registries.get(server) ?? makeRegistry(server)
  registries.set(server, made)
  // The next scrape tries again.
  made.catch(() => registries.delete(server))
  let registry: Registry
  try {
    registry = await made
  } catch (error) {
    if (!(error instanceof MissingPeerError)) throw error
    return new Response(`${error.message}\n`, { status: 501 })
  }
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
  const client = await loadPromClient()
  const registry = new client.Registry()
  const stop = await registerMetrics(registry, { store, policyOf: settings.policyOf })
  await registerHttpMetrics(registry, errorLog)
  closing.addEventListener('abort', stop, { once: true })
  return registry
}
