import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { hostname } from 'node:os'
import { test } from 'node:test'
import { thisProcess } from '../core/host/identity.ts'
import { newId, type WorkerId } from '../core/model/id.ts'
import type { OperatorContext } from '../core/recovery/context.ts'
import type { Store } from '../core/store/store.ts'
import { tagVariable } from '../lib/process/process-tree.ts'
import {
  operatorContext,
  beginOne,
  claimOne,
  registerWorker,
  enqueueSingle,
  savePage,
  SOURCE,
  enqueueCrawl,
} from '../testing/fixtures.ts'
import { COMMAND_STORE } from '../features/commands/store/store.ts'
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

test('what continues interrupted runs is read at once, however many there are', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const sources = await store.extend(SOURCE_STORE)
  const commands = await store.extend(COMMAND_STORE)
  const names = ['a', 'b', 'c']
  for (const name of names) {
    const [crawl, single] = [`crawl-${name}`, `single-${name}`]
    const worker = await registerWorker(store, { source: crawl })
    await enqueueCrawl(store, 2, { source: crawl })
    await store.release([await claimOne(store, worker, { source: crawl })])
    const begun = await beginOne(store, worker, { source: single })
    await store.release([await savePage(store, begun)])
    await store.retireWorker(worker)
    const work = { command: `unstuck work ${name}.ts`, folder: '/srv', host: hostname() }
    await sources.setLastWork(crawl, work)
    const started = { run: begun.run, worker, host: 'box', end: null, startedAt: 1 }
    const [first, last] = [newId(), newId()].sort()
    for (const [id, file] of [
      [first!, 'first'],
      [last!, name],
    ] as const) {
      const command = ['python', `${file}.py`]
      await commands.startExecution({ ...started, id, command, outputDir: '/', log: '/l' })
    }
  }
  await store.settle()
  await database.advanceClock(2 * MINUTE_MS)
  const calls: string[] = []
  const counting: Store = {
    ...store,
    extend: async (extension) => {
      const methods = await store.extend(extension)
      return new Proxy(methods, {
        get(target, name) {
          if (name === 'executions' || name === 'sourceStates') calls.push(name)
          return Reflect.get(target, name) as unknown
        },
      })
    },
  }
  const context = { ...operatorContext(counting), folder: '/srv' } as OperatorContext
  const { attention } = await getOverview(context)
  assert.deepEqual(attention.map(({ command }) => command).toSorted(), [
    ...names.map((name) => `unstuck run single-${name} -- python ${name}.py`),
    ...names.map((name) => `unstuck work ${name}.ts`),
  ])
  // One of the two reads the pauses.
  assert.deepEqual(calls.toSorted(), ['executions', 'sourceStates', 'sourceStates'])
})

test('of very many paused sources the first are shown', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const sources = await store.extend(SOURCE_STORE)
  for (let n = 0; n < 205; n++)
    await sources.setPaused({ source: `s-${n}`, paused: true, actor: 'a', because: 'b' })
  const seen = await getOverview(operatorContext(store))
  assert.equal(seen.sources.length, 200)
})

test('which commands were given up and not acknowledged is read with their locks', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  for (const source of ['a', 'b', 'c']) {
    const worker = await registerWorker(store, { source })
    await store.lockSource({ source, worker, killTimeoutMs: 1_000, processTag: source })
    await store.unlockSource({ source, worker, gaveUp: 'it failed 5 times' })
  }
  let ofSource = 0
  const counting: Store = {
    ...store,
    runs: (filter) => {
      if (filter.source !== undefined) ofSource++
      return store.runs(filter)
    },
  }
  const { attention } = await getOverview(operatorContext(counting))
  assert.deepEqual(
    attention.map(({ what }) => what),
    ['gave up', 'gave up', 'gave up'],
  )
  assert.equal(ofSource, 0)
})

/** A worker whose process the kernel shows as gone. */
function deadWorker(store: Store, source = SOURCE): Promise<WorkerId> {
  return registerWorker(store, {
    source,
    process: { ...thisProcess(), pid: 4_194_297, startTicks: 1 },
  })
}

/** Locks the source and starts a process of its command. */
async function startCopy(
  store: Store,
  processTag: string,
  worker?: WorkerId,
  source = SOURCE,
): Promise<AsyncDisposable> {
  worker ??= await registerWorker(store, { source })
  await store.lockSource({ source, worker, killTimeoutMs: 1_000, processTag })
  const env = { ...process.env, [tagVariable(processTag)]: '1' }
  const child = spawn('sleep', ['600'], { env, stdio: 'ignore' })
  await once(child, 'spawn')
  return {
    async [Symbol.asyncDispose]() {
      const ended = once(child, 'exit')
      if (child.kill('SIGKILL')) await ended
    },
  }
}

/** The store, with something that happens once, before or after workers are observed. */
function whenObserved(store: Store, order: 'before' | 'after', act: () => Promise<void>): Store {
  let isDone = false
  const once = async (): Promise<void> => {
    if (isDone) return
    isDone = true
    await act()
  }
  return {
    ...store,
    observations: async () => {
      if (order === 'before') await once()
      const found = await store.observations()
      if (order === 'after') await once()
      return found
    },
  }
}

test('a command that starts while workers are observed is no leftover', async () => {
  await using database = await sqliteEngine.fresh()
  await using ends = new AsyncDisposableStack()
  const store = await database.open()
  const seen = whenObserved(store, 'after', async () => {
    ends.use(await startCopy(store, newId()))
  })
  assert.deepEqual((await getOverview(operatorContext(seen))).attention, [])
})

test('a command that starts after another copy has ended is no leftover of it', async () => {
  await using database = await sqliteEngine.fresh()
  await using ends = new AsyncDisposableStack()
  const store = await database.open()
  const [worker, processTag] = [await registerWorker(store), newId()]
  await store.lockSource({ source: SOURCE, worker, killTimeoutMs: 1_000, processTag })
  const seen = whenObserved(store, 'before', async () => {
    await store.unlockSource({ source: SOURCE, worker })
    await store.retireWorker(worker)
    ends.use(await startCopy(store, processTag))
  })
  assert.deepEqual((await getOverview(operatorContext(seen))).attention, [])
})

test('a command that takes over from a dead copy while processes are searched is no leftover', async () => {
  await using database = await sqliteEngine.fresh()
  await using ends = new AsyncDisposableStack()
  const store = await database.open()
  const [worker, processTag] = [await deadWorker(store), newId()]
  await store.lockSource({ source: SOURCE, worker, killTimeoutMs: 1_000, processTag })
  const seen = whenObserved(store, 'after', async () => {
    await store.unlockSource({ source: SOURCE, worker })
    ends.use(await startCopy(store, processTag))
  })
  assert.deepEqual((await getOverview(operatorContext(seen))).attention, [])
})

test('of several dead copies each has its own processes, and all are found by one search', async (t) => {
  await using database = await sqliteEngine.fresh()
  await using ends = new AsyncDisposableStack()
  const store = await database.open()
  for (const source of ['atlas', 'shop', 'tenders']) {
    const worker = await deadWorker(store, source)
    if (source === 'shop') {
      await store.lockSource({ source, worker, killTimeoutMs: 1_000, processTag: newId() })
    } else ends.use(await startCopy(store, newId(), worker, source))
  }
  const list = t.mock.method(fs, 'readdirSync')
  syncBuiltinESMExports()
  const { attention } = await getOverview(operatorContext(store))
  const searches = list.mock.calls.filter(({ arguments: [folder] }) => folder === '/proc')
  list.mock.restore()
  syncBuiltinESMExports()
  assert.equal(searches.length, 1)
  assert.deepEqual(
    attention.map(({ source, what }) => `${source}: ${what}`),
    ['atlas', 'tenders'].map((source) => `${source}: 1 process of an earlier copy still runs`),
  )
})
