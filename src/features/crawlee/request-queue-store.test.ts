import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../core/model/id.ts'
import { DEFAULT_POLICY } from '../../core/model/policy.ts'
import type { Store } from '../../core/store/store.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import type { ClaimedRequest } from './claimed-request.ts'
import { requestId, type NewRequest } from './request.ts'
import { RequestQueueStore } from './request-queue-store.ts'
import { withStorages, type StorageDatabase } from './store/store.ts'

async function openQueueStore(
  store: StorageDatabase,
  db: string,
  log: (line: string) => void = () => {},
): Promise<RequestQueueStore> {
  return new RequestQueueStore(await store.makeStorage('queue', 'books'), {
    store,
    db,
    policy: { ...DEFAULT_POLICY, heartbeatMs: 100, leaseMs: 5_000 },
    actor: 'a test',
    nextWorkerId: newId,
    log,
    isStopping: () => false,
    onRunEnded: () => {},
    onActiveChange: () => {},
  })
}

function request(path: string): NewRequest {
  const url = `https://a.example/${path}`
  return { url, uniqueKey: url }
}

test('a finished request that a heartbeat sees before its own response is not reported as lost', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await withStorages(await database.open())
  const said: string[] = []
  /** Two beats after the transaction its answer is here. */
  const slow = (verb: 'checkpoint' | 'fail' | 'release'): Partial<Store> => ({
    [verb]: async (...args: never[]) => {
      const answer: unknown = await (store[verb] as (...given: never[]) => unknown)(...args)
      const beats = async (): Promise<number> => (await store.observations())[0]!.worker.heartbeats
      const enough = (await beats()) + 2
      while ((await beats()) < enough) await new Promise(setImmediate)
      return answer
    },
  })
  const verbs = { ...slow('checkpoint'), ...slow('fail'), ...slow('release') }
  const book = await openQueueStore({ ...store, ...verbs }, database.url, (line) => said.push(line))
  const requests = ['handled', 'again', 'given-up', 'released'].map(request)
  await book.add(requests, false)
  const { claimed } = await book.claim(4)
  for (const one of claimed) one.isStarted = true
  const dataset = await store.makeStorage('dataset', 'slow')
  claimed[0]!.entries.push({ key: null, data: '{"a":1}', dataset: dataset.id })

  const [handled, again, givenUp, released] = claimed
  const ended = await Promise.all([
    book.finish(handled!, requests[0]!, { kind: 'handled' }),
    book.finish(again!, requests[1]!, { kind: 'put back', error: 'no', forefront: false }),
    book.finish(givenUp!, requests[2]!, { kind: 'given up', error: 'no' }),
  ])
  await book.worker.release([released!])
  await book.worker.stopIfIdle()

  assert.deepEqual(ended, [true, true, true])
  assert.deepEqual(
    said.filter((line) => /claim on .* is lost|no longer ours/.test(line)),
    [],
  )
  const { total } = await store.entries(dataset.id, { offset: 0, limit: 1, desc: false })
  const { targets } = (await book.run())!.counts
  assert.deepEqual([total, targets.done, targets.planned, targets.failed], [1, 1, 2, 1])
})

test('data pushed while its request is being finished is saved after it', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await withStorages(await database.open())
  const dataset = await store.makeStorage('dataset', 'late')
  const push = (request: ClaimedRequest, data: string): unknown =>
    request.entries.push({ key: null, data, dataset: dataset.id })
  const checkpoint: Store['checkpoint'] = (...args) => {
    push(claimed!, '"late"')
    return store.checkpoint(...args)
  }
  const book = await openQueueStore({ ...store, checkpoint }, database.url)
  await book.add([request('late')], false)
  const [claimed] = (await book.claim(1)).claimed
  push(claimed!, '"in time"')
  await book.finish(claimed!, request('late'), { kind: 'handled' })
  await book.worker.stopIfIdle()

  const { items } = await store.entries(dataset.id, { offset: 0, limit: 9, desc: false })
  assert.deepEqual(items, ['"in time"', '"late"'])
})

test('a request that this process has added is found by its id without reading the queue', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await withStorages(await database.open())
  const targets = (): never => assert.fail('the whole queue')
  const book = await openQueueStore({ ...store, targets }, database.url)
  await book.add([request('a'), request('b')], false)

  const { url, uniqueKey } = request('b')
  assert.equal((await book.findById(requestId(uniqueKey)))?.url, url)
})
