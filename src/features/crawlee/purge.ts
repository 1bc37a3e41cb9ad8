import { UsageError } from '../../core/model/errors.ts'
import { shortId } from '../../core/model/id.ts'
import { isLive, countOpenTargets, type Run } from '../../core/model/run.ts'
import { iso } from '../../core/model/time.ts'
import { hasRecord, type Storage, type StorageDatabase } from './store/store.ts'
import type { CrawleeSession } from './session.ts'

const DEFAULT_NAME = 'default'
/** The input of the next crawl, which is kept for it. */
const INPUT_KEY = 'INPUT'
/** Of processes that start together, the later ones do not archive what the first one has just made. */
const JUST_CREATED_MS = 10_000

/**
 * Makes room for a new crawl in the default storages, unless a crawl is unfinished: then that one continues. It may be one on
 * a named queue, whose items are in the default dataset too. Nothing is deleted: the storages of the last crawl are renamed,
 * and its requests stay with its run. Dropping the queue is the last step, so that an interrupted purge is repeated, and
 * several processes may purge at once.
 */
export async function purgeDefaults(session: CrawleeSession): Promise<void> {
  const { store, log } = session
  const dataset = await store.storage('dataset', DEFAULT_NAME)
  const records = await store.storage('records', DEFAULT_NAME)
  const queue = await store.storage('queue', DEFAULT_NAME)
  const run = queue && (await session.queueStore(queue).run())
  const unfinished = await unfinishedRuns(store)
  for (const { id, source, counts } of unfinished)
    log(`run ${shortId(id)} of ${source} continues: ${countOpenTargets(counts)} requests are left`)
  if (unfinished.length > 0) {
    const isOtherRun = run !== null && unfinished.every(({ id }) => id !== run.id)
    if (isOtherRun)
      log(
        'until then the default storages stay as they are, and what was handled is not handled again',
      )
    return
  }
  const now = await store.now()
  const isOld = (storage: Storage): boolean => now - storage.createdAt > JUST_CREATED_MS
  const nameFor = (storage: Storage): string =>
    run ? archiveName(run.finishedAt ?? now, run.id) : archiveName(storage.modifiedAt, storage.id)

  if (dataset && (run || isOld(dataset)) && (await hasEntries(store, dataset)))
    await archiveStorage(store, dataset, nameFor(dataset), log)
  if (records && (run || isOld(records)) && (await hasRecords(store, records))) {
    await copyInput(store, await archiveStorage(store, records, nameFor(records), log))
  } else if (run) {
    // The last purge was interrupted after the renaming.
    await copyInput(store, archiveName(run.finishedAt ?? now, run.id))
  }
  if (queue && run) {
    // A run that was interrupted before its first request would stay live without a queue.
    if (isLive(run.status)) await store.finishPlanning(run.id)
    await store.settle(run.id)
    await store.dropStorage(queue.id)
  }
}

async function unfinishedRuns(store: StorageDatabase): Promise<Run[]> {
  const live = await store.liveRuns()
  return live
    .map(({ run }) => run)
    .filter((run) => run.traits.items === 'datasets' && countOpenTargets(run.counts) > 0)
}

function archiveName(at: number, id: string): string {
  return `${DEFAULT_NAME}-${iso(at).slice(0, 10)}-${shortId(id)}`
}

/** Returns the name under which it is kept. */
async function archiveStorage(
  store: StorageDatabase,
  { id, kind }: Storage,
  name: string,
  log: (line: string) => void,
): Promise<string> {
  const what = kind === 'dataset' ? 'items' : 'records'
  // The name may be taken by what was there before this one.
  for (const free of [name, `${name}-${shortId(id)}`]) {
    try {
      await store.renameStorage(id, free)
      log(`the ${what} of the last crawl are kept as ${free}`)
      return free
    } catch (error) {
      if (!(error instanceof UsageError) || free !== name) throw error
    }
  }
  return name
}

async function hasEntries(store: StorageDatabase, { id }: Storage): Promise<boolean> {
  const page = { offset: 0, limit: 1, desc: false }
  return (await store.entries(id, page)).total > 0
}

async function hasRecords(store: StorageDatabase, { id }: Storage): Promise<boolean> {
  const keys = await store.recordKeys(id, { limit: 2 })
  return keys.some(({ key }) => key !== INPUT_KEY)
}

async function copyInput(store: StorageDatabase, name: string): Promise<void> {
  const old = await store.storage('records', name)
  const input = old && (await store.record(old.id, INPUT_KEY))
  if (!input) return
  const { id } = await store.makeStorage('records', DEFAULT_NAME)
  if (!(await hasRecord(store, id, INPUT_KEY))) await store.setRecord(id, INPUT_KEY, input)
}
