import type { Registry } from 'prom-client'
import { LATENCY_BUCKETS, type LatencyHistogram } from '../../core/model/latency.ts'
import type { Counts, RunStatus } from '../../core/model/run.ts'
import { loadPeer } from '../../lib/optional-peer.ts'

/** The figures behind the metrics. Every label has few values, all known beforehand: no source, no id, no address. */
export type Figures = {
  readonly runs: Readonly<Record<RunStatus, number>>
  /** The counters of all runs. */
  readonly counters: Counts
  readonly liveRuns: Readonly<Record<string, number>>
  readonly workers: Readonly<Record<string, number>>
  /** Age of the last activity of the least recently active live run; null when none is live. */
  readonly idleSeconds: number | null
  readonly alertsOpen: number
  readonly checkpoint: LatencyHistogram
  readonly claim: LatencyHistogram
  /** By reason; null until the audit log is read. */
  readonly orphaned: Readonly<Record<string, number>> | null
  readonly orphanedDuration: LatencyHistogram | null
  readonly recoveryDuration: LatencyHistogram
}

/** Buckets from seconds to a day. */
export const RECOVERY_BOUNDS = [0.5, 1, 2.5, 5, 10, 15, 30, 60, 300, 900, 3_600, 21_600, 86_400]

type Value = {
  readonly value: number
  readonly labels: Record<string, string | number>
  /** Suffix of the name of a histogram's series. */
  readonly part?: '_bucket' | '_sum' | '_count'
}

type Metric = {
  readonly name: string
  readonly help: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels?: readonly string[]
  values(figures: Figures): readonly Value[]
}

export const METRICS: readonly Metric[] = [
  {
    name: 'unstuck_runs',
    help: 'Runs there are, by status.',
    type: 'gauge',
    labels: ['status'],
    values: ({ runs }) => byLabel('status', runs),
  },
  {
    name: 'unstuck_live_runs',
    help: 'Runs that have not ended, by how they fare: orphaned, stalled and dead ones are stuck.',
    type: 'gauge',
    labels: ['health'],
    values: ({ liveRuns }) => byLabel('health', liveRuns),
  },
  {
    name: 'unstuck_oldest_activity_seconds',
    help: 'How long the live run that has been still for longest has been so; 0 when none is live.',
    type: 'gauge',
    values: ({ idleSeconds }) => single(idleSeconds ?? 0),
  },
  {
    name: 'unstuck_targets',
    help: 'Targets of all runs, by status.',
    type: 'gauge',
    labels: ['status'],
    values: ({ counters }) => byLabel('status', counters.targets),
  },
  {
    name: 'unstuck_workers',
    help: 'Workers that have not ended, by liveness.',
    type: 'gauge',
    labels: ['liveness'],
    values: ({ workers }) => byLabel('liveness', workers),
  },
  {
    name: 'unstuck_alerts_open',
    help: 'Alerts that are open.',
    type: 'gauge',
    values: ({ alertsOpen }) => single(alertsOpen),
  },
  {
    name: 'unstuck_pages_total',
    help: 'Pages saved.',
    type: 'counter',
    values: ({ counters }) => single(counters.pages),
  },
  {
    name: 'unstuck_items_total',
    help: 'Items saved: new ones, ones whose data had changed, and ones that were as before.',
    type: 'counter',
    labels: ['kind'],
    values: ({ counters: { itemsNew, itemsUpdated, itemsUnchanged } }) =>
      byLabel('kind', { new: itemsNew, updated: itemsUpdated, unchanged: itemsUnchanged }),
  },
  {
    name: 'unstuck_fenced_writes_total',
    help: 'Writes by a worker that had lost its claim. They were refused; nothing was saved twice.',
    type: 'counter',
    values: ({ counters }) => single(counters.refused),
  },
  {
    name: 'unstuck_orphaned_runs_recovered_total',
    help: 'Runs that were recovered from a worker that was lost, or from standing still.',
    type: 'counter',
    labels: ['reason'],
    values: ({ orphaned }) => (orphaned ? byLabel('reason', orphaned) : []),
  },
  {
    name: 'unstuck_orphaned_runs_duration_seconds',
    help: 'From the last heartbeat of a lost run until it was recovered.',
    type: 'histogram',
    values: ({ orphanedDuration }) =>
      orphanedDuration ? buckets(orphanedDuration, RECOVERY_BOUNDS) : [],
  },
  {
    name: 'unstuck_recovery_seconds',
    help: 'Time from the last heartbeat of a lost worker until another worker claimed its target. Counted since the first scrape of this process.',
    type: 'histogram',
    values: ({ recoveryDuration }) => buckets(recoveryDuration, RECOVERY_BOUNDS),
  },
  {
    name: 'unstuck_checkpoint_duration_seconds',
    help: 'How long workers waited for the database to save a page.',
    type: 'histogram',
    values: ({ checkpoint }) => buckets(checkpoint, LATENCY_BUCKETS),
  },
  {
    name: 'unstuck_claim_duration_seconds',
    help: 'How long workers waited for the database to give them targets.',
    type: 'histogram',
    values: ({ claim }) => buckets(claim, LATENCY_BUCKETS),
  },
]

export const UP = 'unstuck_up'
export const BUILD_INFO = 'unstuck_build_info'

export type MetricSource = {
  readonly version: string
  readonly engine: string
  /** Returns null while the database is unavailable. Called for each metric of a scrape, so it should cache briefly. */
  figures(): Promise<Figures | null>
}

/** Loads prom-client, an optional peer. */
export async function loadPromClient() {
  return (await loadPeer('prom-client', 'Prometheus metrics', () => import('prom-client'))).default
}

/** Registers all metrics. Their values are read when the registry is scraped. */
export async function addMetrics(registry: Registry, source: MetricSource): Promise<void> {
  const { version, engine } = source
  const client = await loadPromClient()
  const kinds = { counter: client.Counter, gauge: client.Gauge, histogram: client.Histogram }
  const addMetric = (
    { name, help, type, labels = [] }: Omit<Metric, 'values'>,
    values: () => Promise<readonly Value[]>,
  ): void => {
    const metric = new kinds[type]({ name, help, labelNames: [...labels], registers: [registry] })
    // Read from the store, not counted here: an unknown figure has no value, which is not 0.
    const get = async () => ({
      name,
      help,
      type,
      values: (await values()).map(({ part = '', ...value }) => ({
        metricName: `${name}${part}`,
        ...value,
      })),
      aggregator: 'first',
    })
    Object.assign(metric, { get, getForPromString: get })
  }
  addMetric(
    { name: UP, help: 'Whether the database can be reached: 1 or 0.', type: 'gauge' },
    async () => single((await source.figures()) ? 1 : 0),
  )
  addMetric(
    {
      name: BUILD_INFO,
      help: 'Which version of Unstuck this is, and over which database. Always 1.',
      type: 'gauge',
      labels: ['version', 'engine'],
    },
    async () => [{ value: 1, labels: { version, engine } }],
  )
  for (const metric of METRICS) {
    addMetric(metric, async () => {
      const figures = await source.figures()
      return figures ? metric.values(figures) : []
    })
  }
}

function single(value: number): Value[] {
  return [{ value, labels: {} }]
}

function byLabel(label: string, counts: Readonly<Record<string, number>>): Value[] {
  return Object.entries(counts).map(([key, value]) => ({ value, labels: { [label]: key } }))
}

/** Returns cumulative buckets, as Prometheus expects them, then the sum and the count. */
function buckets({ counts, seconds }: LatencyHistogram, bounds: readonly number[]): Value[] {
  let sum = 0
  const upTo = [...bounds, '+Inf'].map((le, step): Value => {
    sum += counts[step] ?? 0
    return { value: sum, labels: { le }, part: '_bucket' }
  })
  return [
    ...upTo,
    { value: seconds, labels: {}, part: '_sum' },
    { value: sum, labels: {}, part: '_count' },
  ]
}
