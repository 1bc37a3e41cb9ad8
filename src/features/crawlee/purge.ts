import { UsageError } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { isLive, openTargets, type Run } from '../../core/model/run.ts'
import { isCrawlee } from '../../core/model/crawlee.ts'
import { iso } from '../../core/model/time.ts'
import { whenAvailable } from '../../core/store/open.ts'
import type { Storage, Store } from '../../core/store/store.ts'
import type { Depot } from './session.ts'

const DEFAULT = 'default'
/** What a person has put there for the next crawl stays for it. */
const INPUT = 'INPUT'
/** Of processes that start together one is the first: what it has just made is not set aside by the others. */
const JUST_MADE_MS = 10_000

/**
 * Makes room for a new crawl in the default storages, unless one is unfinished: then it goes on. That may be one on a queue
 * with a name, whose items are in the default dataset as well. Nothing is deleted: what the last crawl left is renamed, and its requests stay with its run. Every step names what it saw, and the
 * last one takes the queue away, so that it may be cut short anywhere and done by several at once.
 */
export async function purgeDefaults(depot: Depot): Promise<void> {
  const { store, log } = depot
  const dataset = await whenAvailable(() => store.storage('dataset', DEFAULT))
  const records = await whenAvailable(() => store.storage('records', DEFAULT))
  const queue = await whenAvailable(() => store.storage('queue', DEFAULT))
  const run = queue && (await depot.book(queue).run())
  const unfinished = await unfinishedRuns(store)
  for (const { id, source, counts } of unfinished)
    log(`run ${shortId(id)} of ${source} goes on: ${openTargets(counts)} requests are left`)
  if (unfinished.length > 0) {
    const isOther = run !== null && unfinished.every(({ id }) => id !== run.id)
    if (isOther)
      log(
        'until then the default storages stay as they are, and what was handled is not handled again',
      )
    return
  }
  const now = await whenAvailable(() => store.now())
  const isOld = (storage: Storage): boolean => now - storage.createdAt > JUST_MADE_MS
  const nameFor = (storage: Storage): string =>
    run ? setAsideName(run.finishedAt ?? now, run.id) : setAsideName(storage.modifiedAt, storage.id)

  if (dataset && (run || isOld(dataset)) && (await hasEntries(store, dataset)))
    await setAside(store, dataset, nameFor(dataset), log)
  if (records && (run || isOld(records)) && (await hasRecords(store, records))) {
    await carryInput(store, await setAside(store, records, nameFor(records), log))
  } else if (run) {
    // Cut short after the renaming, the last time.
    await carryInput(store, setAsideName(run.finishedAt ?? now, run.id))
  }
  if (queue && run) {
    // One that was cut short before its first request was in would live on without a queue.
    if (isLive(run.status)) await whenAvailable(() => store.finishPlanning(run.id))
    await whenAvailable(() => store.settle(run.id))
    await whenAvailable(() => store.dropStorage(queue.id))
  }
}

async function unfinishedRuns(store: Store): Promise<Run[]> {
  const live = await whenAvailable(() => store.liveRuns())
  return live.map(({ run }) => run).filter((run) => isCrawlee(run) && openTargets(run.counts) > 0)
}

function setAsideName(at: number, id: string): string {
  return `${DEFAULT}-${iso(at).slice(0, 10)}-${shortId(id)}`
}

/** Answers the name under which it is kept. */
async function setAside(
  store: Store,
  { id, kind }: Storage,
  name: string,
  log: (line: string) => void,
): Promise<string> {
  const what = kind === 'dataset' ? 'items' : 'records'
  // The name may be taken by what was there before this one.
  for (const free of [name, `${name}-${shortId(id)}`]) {
    try {
      await whenAvailable(() => store.renameStorage(id, free))
      log(`the ${what} of the last crawl are kept as ${free}`)
      return free
    } catch (error) {
      if (!(error instanceof UsageError) || free !== name) throw error
    }
  }
  return name
}

async function hasEntries(store: Store, { id }: Storage): Promise<boolean> {
  const page = { offset: 0, limit: 1, desc: false }
  return (await whenAvailable(() => store.entries(id, page))).total > 0
}

async function hasRecords(store: Store, { id }: Storage): Promise<boolean> {
  const keys = await whenAvailable(() => store.recordKeys(id, { limit: 2 }))
  return keys.some(({ key }) => key !== INPUT)
}

async function carryInput(store: Store, name: string): Promise<void> {
  const old = await whenAvailable(() => store.storage('records', name))
  const input = old && (await whenAvailable(() => store.record(old.id, INPUT)))
  if (!input) return
  const { id } = await whenAvailable(() => store.makeStorage('records', DEFAULT))
  if (await whenAvailable(() => store.hasRecord(id, INPUT))) return
  await whenAvailable(() => store.setRecord(id, input))
}
