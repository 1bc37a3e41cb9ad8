import type { Registry } from 'prom-client'
import {
  defineRoute,
  type CallCounts,
  type Route,
  type ServerContext,
} from '../../contracts/route.ts'
import { VERSION } from '../../core/host/version.ts'
import type { PolicyOf } from '../../core/model/policy-of.ts'
import type { Store } from '../../core/store/store.ts'
import { MissingPeerError } from '../../lib/optional-peer.ts'
import { MetricsCollector } from './figures.ts'
import { addMetrics, loadPromClient } from './prometheus.ts'

export const METRICS_ROUTES: readonly Route<any, any, any, any>[] = [
  defineRoute('GET /metrics', {
    summary: 'Metrics in the text format of Prometheus.',
    response: null,
    produces: ['text/plain'],
    handle: ({ server }) => scrape(server),
  }),
]

/** Adds Unstuck's metrics to the caller's registry. Returns a function that stops their background reads. */
export async function registerMetrics(
  registry: Registry,
  { store, policyOf }: { readonly store: Store; readonly policyOf: PolicyOf },
): Promise<() => void> {
  const collector = new MetricsCollector(store, policyOf)
  const figures = () => collector.collect()
  await addMetrics(registry, { version: VERSION, engine: store.engine, figures })
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

async function makeRegistry(server: ServerContext): Promise<Registry> {
  const { store, settings, callCounts, closing } = server
  const client = await loadPromClient()
  const registry = new client.Registry()
  const stop = await registerMetrics(registry, { store, policyOf: settings.policyOf })
  await addHttpMetrics(registry, callCounts)
  closing.addEventListener('abort', stop, { once: true })
  return registry
}

/** Counters of this process since its start; available without the database. */
export const HTTP_METRICS = [
  {
    name: 'unstuck_http_logins_total',
    help: 'Logins to the dashboard, by result. Since this process started.',
    label: 'result',
    values: ({ logins }: CallCounts) => logins,
  },
  {
    name: 'unstuck_http_refused_total',
    help: 'Calls refused because of the caller, its origin or its rate, by code. Since this process started.',
    label: 'code',
    values: ({ errors }: CallCounts) => errors,
  },
] as const

async function addHttpMetrics(registry: Registry, counts: CallCounts): Promise<void> {
  const client = await loadPromClient()
  for (const { name, help, label, values } of HTTP_METRICS) {
    const counter = new client.Counter({
      name,
      help,
      labelNames: [label],
      registers: [],
      collect() {
        this.reset()
        for (const [key, value] of Object.entries(values(counts)))
          this.inc({ [label]: key.toLowerCase() }, value)
      },
    })
    registry.registerMetric(counter)
  }
}
