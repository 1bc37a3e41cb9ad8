import assert from 'node:assert/strict'
import { hostname } from 'node:os'
import { test } from 'node:test'
import type { OperatorContext } from '../core/recovery/context.ts'
import {
  operatorContext,
  claimOne,
  registerWorker,
  enqueueSingle,
  savePage,
  SOURCE,
  enqueueCrawl,
} from '../testing/fixtures.ts'
import { SOURCE_STORE } from '../features/sources/store/store.ts'
import { sqliteEngine } from '../testing/sqlite-engine.ts'
import { assertDocumented } from '../testing/open-api.ts'
import { loadOverview, presentOverview } from './overview.ts'
import { toJson } from './presented.ts'

const getOverview = async (context: OperatorContext) =>
  toJson(presentOverview(await loadOverview(context)))

const MINUTE_MS = 60_000

test('of very many live runs the worst are shown, and how many there are', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  for (let n = 0; n < 100; n++) await enqueueSingle(store, `s-${n}`)
  const lost = await enqueueCrawl(store, 1, { source: 'lost' })
  const worker = await registerWorker(store, { source: 'lost' })
  await claimOne(store, worker, { source: 'lost' })
  await store.retireWorker(worker)
  for (let n = 100; n < 205; n++) await enqueueSingle(store, `s-${n}`)
  await database.advanceClock(MINUTE_MS)
  const seen = await getOverview(operatorContext(store))
  assertDocumented('Overview', seen)
  assert.deepEqual([seen.runs.length, seen.liveRuns, seen.state], [200, 206, 'stuck'])
  assert.equal(seen.runs[0]!.id, lost)
})

test('a run that is no longer sampled because it stands still has a pace of 0', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const pages = async (): Promise<(number | undefined)[]> => {
    const { runs } = await getOverview(operatorContext(store))
    return runs
      .toSorted((a, b) => a.source.localeCompare(b.source))
      .map(({ pace }) => pace?.pagesPerMinute)
  }
  const work = async (source: string) => {
    await enqueueCrawl(store, 1, { source })
    const worker = await registerWorker(store, { source, leaseMs: 1e9 })
    return savePage(store, await claimOne(store, worker, { source }))
  }
  let busy = await work('busy')
  await work('still')
  await database.advanceClock(90 * MINUTE_MS)
  assert.deepEqual(await pages(), [undefined, undefined], 'there is no sample')
  await store.takeSample()
  await database.raw(`DELETE FROM sample WHERE source = 'still'`)
  await database.advanceClock(2 * MINUTE_MS)
  for (let n = 0; n < 6; n++) busy = await savePage(store, busy)
  assert.deepEqual(await pages(), [3, 0])
})

test('an interrupted crawl names the host it was last started on, if that is another', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const worker = await registerWorker(store)
  await enqueueCrawl(store, 2)
  await store.release([await savePage(store, await claimOne(store, worker))])
  await store.retireWorker(worker)
  await store.settle()
  await database.advanceClock(2 * MINUTE_MS)
  const sources = await store.extend(SOURCE_STORE)
  const work = { command: 'unstuck work crawl.ts --workers=4', folder: '/srv/shop' }
  const context = { ...operatorContext(store), folder: '/srv/shop' } as OperatorContext
  const shown = async (host: string) => {
    await sources.setLastWork(SOURCE, { ...work, host })
    const { command, because } = (await getOverview(context)).attention[0]!
    return [command, /, last started on (.*)/.exec(because!)?.[1]]
  }
  assert.deepEqual(await shown(hostname()), [work.command, undefined])
  const { sections } = await getOverview(context)
  assert.match(
    sections.flatMap(({ sentences }) => sentences).join('\n'),
    /^- \S+: interrupted; .*\. Continue it: `unstuck work crawl\.ts --workers=4`\.$/m,
  )
  assert.deepEqual(await shown('web1'), [`cd /srv/shop && ${work.command}`, 'web1'])
})
