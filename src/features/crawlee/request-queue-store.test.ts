import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../../core/model/id.ts'
import { DEFAULT_POLICY } from '../../core/model/policy.ts'
import type { Store } from '../../core/store/store.ts'
import { sqliteEngine } from '../../testing/sqlite-engine.ts'
import type { InHand } from './claimed-request.ts'
import { requestId, type NewRequest } from './request.ts'
import { RequestBook } from './request-queue-store.ts'

async function openBook(
  store: Store,
  db: string,
  log: (line: string) => void = () => {},
): Promise<RequestBook> {
  return new RequestBook(await store.makeStorage('queue', 'books'), {
    store,
    db,
    policy: { ...DEFAULT_POLICY, heartbeatMs: 100, leaseMs: 5_000 },
    actor: 'a test',
    nextWorker: newId,
    log,
    isStopping: () => false,
    onEnded: () => {},
    onLife: () => {},
  })
}

function request(path: string): NewRequest {
  const url = `https://a.example/${path}`
  return { url, uniqueKey: url }
}

test('an end that a beat sees before its answer is here is no loss', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const said: string[] = []
  /** Two beats after the transaction its answer is here. */
  const slow = (verb: 'checkpoint' | 'fail' | 'release'): Partial<Store> => ({
    [verb]: async (...args: never[]) => {
      const answer: unknown = await (store[verb] as (...given: never[]) => unknown)(...args)
      const beats = async (): Promise<number> => (await store.workers())[0]!.worker.beats
      const enough = (await beats()) + 2
      while ((await beats()) < enough) await new Promise(setImmediate)
      return answer
    },
  })
  const verbs = { ...slow('checkpoint'), ...slow('fail'), ...slow('release') }
  const book = await openBook({ ...store, ...verbs }, database.url, (line) => said.push(line))
  const requests = ['handled', 'again', 'given-up', 'released'].map(request)
  await book.add(requests, false)
  const { claimed } = await book.claim(4)
  for (const one of claimed) one.isBegun = true
  const dataset = await store.makeStorage('dataset', 'slow')
  claimed[0]!.entries.push({ key: null, data: '{"a":1}', dataset: dataset.id })

  const [handled, again, givenUp, released] = claimed
  const ended = await Promise.all([
    book.end(handled!, requests[0]!, { as: 'handled' }),
    book.end(again!, requests[1]!, { as: 'put back', error: 'no', forefront: false }),
    book.end(givenUp!, requests[2]!, { as: 'given up', error: 'no' }),
  ])
  await book.worker.handBack([released!])
  await book.worker.rest()

  assert.deepEqual(ended, [true, true, true])
  assert.deepEqual(
    said.filter((line) => /taken back|no longer ours/.test(line)),
    [],
  )
  const { total } = await store.entries(dataset.id, { offset: 0, limit: 1, desc: false })
  const { targets } = (await book.run())!.counts
  assert.deepEqual([total, targets.done, targets.planned, targets.failed], [1, 1, 2, 1])
})

test('what is pushed while the end of its request is being saved is saved behind it', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const dataset = await store.makeStorage('dataset', 'late')
  const push = (request: InHand, data: string): unknown =>
    request.entries.push({ key: null, data, dataset: dataset.id })
  const checkpoint: Store['checkpoint'] = (...args) => {
    push(claimed!, '"late"')
    return store.checkpoint(...args)
  }
  const book = await openBook({ ...store, checkpoint }, database.url)
  await book.add([request('late')], false)
  const [claimed] = (await book.claim(1)).claimed
  push(claimed!, '"in time"')
  await book.end(claimed!, request('late'), { as: 'handled' })
  await book.worker.rest()

  const { items } = await store.entries(dataset.id, { offset: 0, limit: 9, desc: false })
  assert.deepEqual(items, ['"in time"', '"late"'])
})

test('a request that this process has added is found by its id without reading the queue', async () => {
  await using database = await sqliteEngine.fresh()
  const store = await database.open()
  const targets = (): never => assert.fail('the whole queue')
  const book = await openBook({ ...store, targets }, database.url)
  await book.add([request('a'), request('b')], false)

  const { url, uniqueKey } = request('b')
  assert.equal((await book.search(requestId(uniqueKey)))?.url, url)
})
