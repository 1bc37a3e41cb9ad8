import type { Feature } from '../../contracts/feature.ts'

/** Metrics for Prometheus. */
export const metrics: Feature = {
  name: 'metrics',
  routes: async () => (await import('./route.ts')).METRICS_ROUTES,
}
