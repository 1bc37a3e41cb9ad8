import type { Registry } from 'prom-client'
import { registerMetrics as enter } from '../../../features/metrics/prometheus.ts'
import { storedPolicy, type PolicyOf } from '../../../core/recovery/assess.ts'
import type { Store } from '../../../core/store/store.ts'
import { VERSION } from '../../../core/host/version.ts'
import type { Ground } from '../route.ts'
import { FigureKeeper } from '../../../features/metrics/figures.ts'
import { registerHttpMetrics } from './http-metrics.ts'

/** Enters Unstuck's metrics into a registry of one's own. Answers how to end what was begun for them. */
export async function registerMetrics(
  registry: Registry,
  { store, policyOf = storedPolicy }: { readonly store: Store; readonly policyOf?: PolicyOf },
): Promise<() => void> {
  const keeper = new FigureKeeper(store, policyOf)
  const figures = () => keeper.figures()
  await enter(registry, { version: VERSION, engine: store.engine, figures })
  return () => keeper.stop()
}

const registries = new WeakMap<Ground, Promise<Registry>>()

/** Everything in the words of Prometheus. Nothing is loaded or counted before the first who asks. */
export async function scrape(ground: Ground): Promise<Response> {
  const made = registries.get(ground) ?? makeRegistry(ground)
  registries.set(ground, made)
  // What went wrong is forgotten: the next who asks tries again.
  made.catch(() => registries.delete(ground))
  const registry = await made
  return new Response(await registry.metrics(), {
    headers: { 'content-type': registry.contentType, 'cache-control': 'no-store' },
  })
}

async function makeRegistry({ store, settings, refusals, closing }: Ground): Promise<Registry> {
  const { default: client } = await import('prom-client')
  const registry = new client.Registry()
  const stop = await registerMetrics(registry, { store, policyOf: settings.policyOf })
  await registerHttpMetrics(registry, refusals)
  closing.addEventListener('abort', stop, { once: true })
  return registry
}
