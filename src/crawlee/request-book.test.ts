import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '../model/id.ts'
import { DEFAULT_POLICY } from '../model/policy.ts'
import type { Store } from '../store/store.ts'
import { sqliteEngine } from '../testing/sqlite-engine.ts'
import { RequestBook } from './request-book.ts'

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
  const book = new RequestBook(await store.makeStorage('queue', 'slow'), {
    store: { ...store, ...verbs },
    db: database.url,
    policy: { ...DEFAULT_POLICY, heartbeatMs: 100, leaseMs: 5_000 },
    actor: 'a test',
    nextWorker: newId,
    log: (line) => said.push(line),
    isStopping: () => false,
    onEnded: () => {},
    onLife: () => {},
  })
  const urls = ['handled', 'again', 'given-up', 'released'].map((n) => `https://a.example/${n}`)
  const requests = urls.map((url) => ({ url, uniqueKey: url }))
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
