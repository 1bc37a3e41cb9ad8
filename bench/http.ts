import { setTimeout as sleep } from 'node:timers/promises'
import { openStore } from '../src/core/store/open.ts'
import type { Store } from '../src/core/store/store.ts'
import { beginOne, registerWorker, enqueueSingle, savePage } from '../src/testing/fixtures.ts'
import { registerClaimer, planTargets, SOURCE } from './workers.ts'
import { benchEngines, type BenchEngine } from './databases.ts'
import { ENDED_RUNS, fillWithEndedRuns, runMaintenance } from './fill.ts'
import { median, percentile, print } from './figures.ts'
import { openTabs, startBenchServer, type BenchServer } from './http-server.ts'
import { pageOf } from './page.ts'

const TARGETS = 1_000_000
const LIVE = 100
const TRIES = 200
const WARM_UP = 20
const TABS = 50
const IDLE_MS = 20_000
const ROUND_MS = 3_000
const ROUNDS = 7

/** What the API and open dashboards cost with a million targets and a hundred thousand runs. */
export async function benchHttp(engines: readonly string[]): Promise<void> {
  for (const engine of await benchEngines(engines)) {
    try {
      await measure(engine)
    } finally {
      await engine.close()
    }
  }
}

async function measure(engine: BenchEngine): Promise<void> {
  const db = await engine.create()
  const store = await openStore(db.url)
  await fillWithEndedRuns(db.url)
  await planTargets(store, TARGETS)
  await startWorkers(store)
  await runMaintenance(db.url)
  const served = await startBenchServer(db.url)
  try {
    await benchResponses(engine, served, store)
    await benchIdleTabs(engine, served)
    await benchWithCheckpoints(engine, served, store)
  } finally {
    await served.stop()
  }
  await store.close()
  await db.drop()
}

/** A hundred live runs, some held, some queued. */
async function startWorkers(store: Store): Promise<void> {
  const worker = await registerWorker(store, { source: '', leaseMs: 3_600_000 })
  for (let n = 0; n < LIVE; n++) {
    if (n % 4 === 0) await enqueueSingle(store, `live-${n}`)
    else await savePage(store, await beginOne(store, worker, { source: `live-${n}` }))
  }
}

/** How long each call takes, one after the other. */
async function benchResponses(
  engine: BenchEngine,
  { url }: BenchServer,
  store: Store,
): Promise<void> {
  const { id } = (await store.liveRun(SOURCE))!
  const middle = (await store.targets(id, { limit: 500 })).next!
  const calls = {
    overview: '/api/overview',
    runs: '/api/runs',
    'failed runs': '/api/runs?status=failed&limit=100',
    'runs of a source': '/api/runs?source=old-7',
    'a run': `/api/runs/${id}`,
    targets: `/api/runs/${id}/targets?limit=100`,
    'targets further on': `/api/runs/${id}/targets?limit=100&after=${encodeURIComponent(middle)}`,
    'planned targets': `/api/runs/${id}/targets?status=planned`,
    workers: '/api/workers',
    recovery: '/api/recovery',
    'dead letters': '/api/dead-letters',
    history: '/api/history',
    series: '/api/series',
    metrics: '/metrics',
  }
  for (const [name, path] of Object.entries(calls)) {
    const times: number[] = []
    for (let n = 0; n < TRIES; n++) {
      const startedAt = performance.now()
      const answer = await fetch(`${url}${path}`)
      await answer.arrayBuffer()
      times.push(performance.now() - startedAt)
      if (!answer.ok) throw new Error(`${path} answered ${answer.status}`)
    }
    const warm = times.slice(WARM_UP)
    print({
      bench: 'http',
      engine: engine.name,
      targets: TARGETS,
      'ended runs': ENDED_RUNS,
      call: name,
      'median ms': median(warm).toFixed(1),
      'p95 ms': percentile(warm, 0.95).toFixed(1),
    })
  }
}

/** Processor time of the server while nothing happens but looking. */
async function benchIdleTabs(engine: BenchEngine, served: BenchServer): Promise<void> {
  const share = async (): Promise<number> => {
    const before = served.cpuMs()
    await sleep(IDLE_MS)
    return ((served.cpuMs() - before) / IDLE_MS) * 100
  }
  const without = await share()
  const tabs = await openTabs(served.url, TABS)
  await sleep(2_000)
  const withTabs = await share()
  tabs.close()
  print({
    bench: 'http',
    engine: engine.name,
    tabs: TABS,
    '% of a core': withTabs.toFixed(1),
    'without tabs': without.toFixed(1),
    'events received': tabs.events(),
  })
}

/** Checkpoints per second with and without people who look, in turns. */
async function benchWithCheckpoints(
  engine: BenchEngine,
  served: BenchServer,
  store: Store,
): Promise<void> {
  const claim = await registerClaimer(store, 3_600_000)
  const alone: number[] = []
  const beside: number[] = []
  let asked = 0
  for (let round = 0; round < ROUNDS; round++) {
    alone.push(await checkpoints(store, claim))
    const stop = new AbortController()
    const tabs = await openTabs(served.url, 5)
    const calls = timeRequest(served.url, stop.signal)
    beside.push(await checkpoints(store, claim))
    stop.abort()
    tabs.close()
    asked += await calls
  }
  print({
    bench: 'http',
    engine: engine.name,
    'checkpoints/s': median(alone).toFixed(0),
    'beside 5 tabs and 2 calls/s': median(beside).toFixed(0),
    ratio: (median(beside) / median(alone)).toFixed(3),
    calls: asked,
  })
}

type Claim = Awaited<ReturnType<typeof registerClaimer>>

async function checkpoints(store: Store, claim: Claim): Promise<number> {
  const [claimed] = await claim(1)
  const startedAt = performance.now()
  let seq = 0
  for (; performance.now() - startedAt < ROUND_MS; seq++) {
    const [saved] = await store.checkpoint([pageOf(claimed!, seq)])
    if (!saved!.ok) throw saved!.error
  }
  return (seq * 1_000) / (performance.now() - startedAt)
}

/** Two people who open another page every second. Answers how often. */
async function timeRequest(url: string, signal: AbortSignal): Promise<number> {
  const paths = ['/api/overview', '/api/runs', '/api/workers', '/api/history', '/api/series']
  let asked = 0
  for (; !signal.aborted; asked++) {
    const answer = await fetch(`${url}${paths[asked % paths.length]}`)
    await answer.arrayBuffer()
    await sleep(500)
  }
  return asked
}
