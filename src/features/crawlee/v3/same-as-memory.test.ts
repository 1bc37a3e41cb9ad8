import assert from 'node:assert/strict'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { after, before, describe, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { Configuration } from '@crawlee/cheerio'
import type { RequestQueueClient, RequestSchema, StorageClient } from '@crawlee/types'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { sqliteEngine } from '../../../testing/sqlite-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { crawleeStorage, type CrawleeStorage } from './storage.ts'

/**
 * The same calls on Crawlee's own memory storage and on ours: what they answer is compared, but for ids and times.
 * Each case has storages of its own, named after it.
 */
type Case = (client: StorageClient, name: string) => Promise<unknown>

const request = (path: string, more: Partial<RequestSchema> = {}): RequestSchema => ({
  url: `https://site.example/${path}`,
  uniqueKey: path,
  ...more,
})

const LOCK = { lockSecs: 60 }

/** Requests that two calls add within one millisecond have no order: each call begins in the next one. */
async function queueOf(client: StorageClient, name: string): Promise<RequestQueueClient> {
  const queue = client.requestQueue((await client.requestQueues().getOrCreate(name)).id)
  return new Proxy(queue, {
    get(_, method: keyof RequestQueueClient) {
      const call = queue[method] as ((...args: unknown[]) => Promise<unknown>) | undefined
      if (call === undefined) return undefined
      return async (...args: unknown[]) => {
        const now = Date.now()
        while (Date.now() === now) await setImmediate()
        return call.apply(queue, args)
      }
    },
  })
}

/** What is next, in order, and locked from now on. */
async function lock(queue: RequestQueueClient, limit = 4): Promise<string[]> {
  const { items } = await queue.listAndLockHead({ limit, ...LOCK })
  return items.map(({ uniqueKey }) => uniqueKey)
}

async function idOf(queue: RequestQueueClient, uniqueKey: string): Promise<string> {
  return (await queue.addRequest(request(uniqueKey))).requestId
}

async function update(
  queue: RequestQueueClient,
  uniqueKey: string,
  more: Partial<RequestSchema>,
  forefront = false,
): Promise<unknown> {
  const id = await idOf(queue, uniqueKey)
  return queue.updateRequest({ ...request(uniqueKey, more), id }, { forefront })
}

async function counts(queue: RequestQueueClient): Promise<unknown> {
  const info = (await queue.get())!
  return [info.totalRequestCount, info.handledRequestCount, info.pendingRequestCount]
}

/** That it throws is what counts; the words are our own. */
async function thrown(act: () => Promise<unknown>): Promise<string> {
  return act().then(
    () => 'no error',
    () => 'an error',
  )
}

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const read: T[] = []
  for await (const item of items) read.push(item)
  return read
}

const CASES: Record<string, Case> = {
  'a request added twice is one': async (client, name) => {
    const queue = await queueOf(client, name)
    return [
      await queue.addRequest(request('a')),
      await queue.addRequest(request('a', { userData: { second: true } })),
      await queue.getRequest(await idOf(queue, 'a')),
      await counts(queue),
    ]
  },

  'a batch is added in its order, and says what was there': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.addRequest(request('b'))
    return [
      await queue.batchAddRequests([request('a'), request('b'), request('c'), request('a')]),
      await lock(queue),
    ]
  },

  'the forefront comes first, the last one put there before the others': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b')])
    await queue.addRequest(request('c'), { forefront: true })
    await queue.batchAddRequests([request('d'), request('e')], { forefront: true })
    return [await lock(queue, 3), await lock(queue, 3), await lock(queue, 3)]
  },

  'a locked request is not handed out until it is unlocked': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b'), request('c')])
    const first = await lock(queue, 2)
    const second = await lock(queue, 2)
    await queue.deleteRequestLock(await idOf(queue, 'b'))
    return [first, second, await lock(queue, 2), await counts(queue)]
  },

  'a lock that is not there can neither be prolonged nor deleted': async (client, name) => {
    const queue = await queueOf(client, name)
    const id = await idOf(queue, 'a')
    return [
      await thrown(() => queue.deleteRequestLock(id)),
      await thrown(() => queue.prolongRequestLock('unknown', LOCK)),
    ]
  },

  'a handled request stays handled': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b')])
    await lock(queue)
    const handledAt = '2026-01-02T03:04:05.678Z'
    const id = await idOf(queue, 'a')
    return [
      await update(queue, 'a', { handledAt, loadedUrl: 'https://site.example/there' }),
      await queue.getRequest(id),
      await queue.addRequest(request('a')),
      await thrown(() => queue.deleteRequestLock(id)),
      await counts(queue),
      await lock(queue),
    ]
  },

  'a request that is put back keeps what was noted in it': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.addRequest(
      request('a', { userData: { depth: 1 }, headers: { accept: 'text/html' } }),
    )
    await lock(queue)
    const noted = { retryCount: 1, errorMessages: ['Error: no'], userData: { depth: 2 } }
    return [
      await update(queue, 'a', noted),
      await queue.getRequest(await idOf(queue, 'a')),
      await lock(queue),
      await counts(queue),
    ]
  },

  'a request that is put back to the forefront is the next': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b'), request('c')])
    await lock(queue, 2)
    await queue.addRequest(request('d'), { forefront: true })
    await update(queue, 'b', { retryCount: 1 }, true)
    return [await lock(queue, 1), await lock(queue, 1), await lock(queue, 1)]
  },

  'a request that is unlocked to the forefront is the next': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b'), request('c')])
    await queue.addRequest(request('d'), { forefront: true })
    await lock(queue, 3)
    await queue.deleteRequestLock(await idOf(queue, 'a'))
    await queue.deleteRequestLock(await idOf(queue, 'b'), { forefront: true })
    return [await lock(queue, 1), await lock(queue, 1), await lock(queue, 1)]
  },

  'a request that is unlocked keeps its place at the forefront': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b')])
    await lock(queue, 1)
    await queue.addRequest(request('c'), { forefront: true })
    await lock(queue, 1)
    await queue.deleteRequestLock(await idOf(queue, 'a'))
    await queue.deleteRequestLock(await idOf(queue, 'c'))
    return [await lock(queue, 1), await lock(queue, 1), await lock(queue, 1)]
  },

  'a request that is added as handled is not crawled': async (client, name) => {
    const queue = await queueOf(client, name)
    const handledAt = '2026-01-02T03:04:05.678Z'
    const added = await queue.addRequest(request('a', { handledAt }))
    const batch = await queue.batchAddRequests([request('b', { handledAt }), request('c')])
    return [
      added,
      batch,
      await queue.addRequest(request('a')),
      await queue.getRequest(await idOf(queue, 'a')),
      await lock(queue),
      await counts(queue),
    ]
  },

  'an unknown request that is updated as handled is not crawled': async (client, name) => {
    const queue = await queueOf(client, name)
    const id = await idOf(await queueOf(client, `${name} too`), 'a')
    const handledAt = '2026-01-02T03:04:05.678Z'
    return [
      await queue.updateRequest({ ...request('a', { handledAt }), id }),
      await lock(queue),
      await counts(queue),
    ]
  },

  'a request that is marked as handled twice stays handled': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.addRequest(request('a'))
    await lock(queue)
    const handledAt = '2026-01-02T03:04:05.678Z'
    return [
      await update(queue, 'a', { handledAt }),
      await update(queue, 'a', { handledAt }),
      await counts(queue),
      await lock(queue),
    ]
  },

  'the head is listed in the order in which it is claimed': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b'), request('c')])
    await queue.addRequest(request('d'), { forefront: true })
    await queue.addRequest(request('e'), { forefront: true })
    const { items } = await queue.listHead({ limit: 4 })
    return [items.map(({ uniqueKey }) => uniqueKey), await lock(queue, 4)]
  },

  'the head keeps its order while its requests are locked': async (client, name) => {
    const queue = await queueOf(client, name)
    await queue.batchAddRequests([request('a'), request('b')])
    await queue.addRequest(request('c'), { forefront: true })
    await queue.addRequest(request('d'), { forefront: true })
    const locked = await lock(queue, 4)
    const { items } = await queue.listHead({ limit: 4 })
    return [locked, items.map(({ uniqueKey }) => uniqueKey)]
  },

  'an update of an unknown request adds it, and a wrong id is refused': async (client, name) => {
    const queue = await queueOf(client, name)
    const id = await idOf(queue, 'a')
    const other = await queueOf(client, `${name} too`)
    return [
      await other.updateRequest({ ...request('a'), id }),
      await thrown(() => other.updateRequest({ ...request('b'), id })),
      await other.getRequest('unknown'),
      await counts(other),
    ]
  },

  'long keys and odd ones are as good as others': async (client, name) => {
    const queue = await queueOf(client, name)
    const keys = ['x'.repeat(5_000), 'a\'b"c', 'ü✓', '%_', `${'x'.repeat(5_000)}y`]
    const added = await queue.batchAddRequests(keys.map((uniqueKey) => request('p', { uniqueKey })))
    const locked = [...(await lock(queue, 3)), ...(await lock(queue, 3))]
    return [added.processedRequests.map(({ requestId }) => requestId), locked]
  },

  'items keep their order, whatever way they are pushed': async (client, name) => {
    const dataset = client.dataset((await client.datasets().getOrCreate(name)).id)
    await dataset.pushItems({ n: 0 })
    await dataset.pushItems([{ n: 1 }, { n: 2 }])
    await dataset.pushItems('{"n":3}')
    await dataset.pushItems(['{"n":4}', '{"n":5}'])
    return [
      await dataset.listItems(),
      await dataset.listItems({ offset: 2, limit: 3 }),
      await dataset.listItems({ desc: true, limit: 2 }),
      await dataset.listItems({ desc: true, offset: 1, limit: 2 }),
      await dataset.listItems({ offset: 10 }),
      await all(dataset.listItems({ offset: 1, limit: 3 })),
      await all(dataset.listEntries!({ offset: 4 })),
      (await dataset.listEntries!({ limit: 2 })).items,
      (await dataset.get())!.itemCount,
    ]
  },

  'only objects are items': async (client, name) => {
    const dataset = client.dataset((await client.datasets().getOrCreate(name)).id)
    return [
      await thrown(() => dataset.pushItems('[[1]]')),
      await thrown(() => dataset.pushItems('7')),
      await thrown(() => dataset.pushItems('no JSON')),
      await thrown(() => dataset.downloadItems()),
      (await dataset.listItems()).total,
    ]
  },

  'a storage is found by its new name, and not after its end': async (client, name) => {
    const datasets = client.datasets()
    const { id } = await datasets.getOrCreate(name)
    await datasets.getOrCreate(`${name} taken`)
    const dataset = client.dataset(id)
    await dataset.pushItems({ n: 1 })
    const renamed = (await dataset.update({ name: `${name} new` })).name
    const taken = await thrown(() => dataset.update({ name: `${name} taken` }))
    const found = (await client.dataset(`${name} new`).get())?.itemCount
    await dataset.delete()
    return [
      renamed,
      taken,
      found,
      await dataset.get(),
      await client.dataset(`${name} new`).get(),
      await thrown(() => client.dataset(`${name} new`).pushItems({ n: 2 })),
    ]
  },

  'records come back as what they were': async (client, name) => {
    const store = client.keyValueStore((await client.keyValueStores().getOrCreate(name)).id)
    await store.setRecord({ key: 'json', value: { a: [1, null, 'ü'] } })
    await store.setRecord({ key: 'number', value: 7 })
    await store.setRecord({ key: 'null', value: null })
    await store.setRecord({ key: 'text', value: 'ü\n' })
    await store.setRecord({ key: 'empty', value: '' })
    await store.setRecord({
      key: 'said to be JSON',
      value: '{"b":1}',
      contentType: 'application/json',
    })
    await store.setRecord({ key: 'xml', value: '<a/>', contentType: 'application/atom+xml' })
    await store.setRecord({ key: 'bytes', value: Buffer.from([0, 255, 10]) })
    await store.setRecord({ key: 'image', value: Buffer.from('png'), contentType: 'image/png' })
    await store.setRecord({
      key: 'stream',
      value: Readable.from([Buffer.from('a'), Buffer.from('b')]),
    })
    await store.setRecord({ key: 'text', value: 'again' })
    const keys = (await store.listKeys()).items.map(({ key }) => key)
    return Promise.all(keys.map((key) => store.getRecord(key)))
  },

  'a record can be had as bytes and as a stream': async (client, name) => {
    const store = client.keyValueStore((await client.keyValueStores().getOrCreate(name)).id)
    await store.setRecord({
      key: 'a',
      value: Buffer.from('{"a":1}'),
      contentType: 'application/json',
    })
    const streamed = (await store.getRecord('a', { stream: true }))!.value as Readable
    return [
      (await store.getRecord('a', { buffer: true }))!.value,
      (await buffer(streamed)).toString(),
      (await store.getRecord('a'))!.value,
      await store.getRecord('b'),
    ]
  },

  'keys are listed by prefix, from after one, and as many as asked for': async (client, name) => {
    const store = client.keyValueStore((await client.keyValueStores().getOrCreate(name)).id)
    for (const key of ['page-b', 'page-a', 'other', 'page%', 'page-c', 'page_'])
      await store.setRecord({ key, value: key.length })
    const some = await store.listKeys({ prefix: 'page-', limit: 2 })
    return [
      some,
      await store.listKeys({ prefix: 'page-', exclusiveStartKey: some.nextExclusiveStartKey! }),
      await all(store.keys!({ prefix: 'page-' })),
      await all(store.entries!({ prefix: 'page-', limit: 2 })),
      await store.values!({ prefix: 'page-' }),
      (await store.listKeys({ prefix: 'page%' })).items,
      (await store.listKeys({ prefix: 'nothing' })).items,
    ]
  },

  'a record is there until it is deleted': async (client, name) => {
    const store = client.keyValueStore((await client.keyValueStores().getOrCreate(name)).id)
    const seen = [await store.recordExists('a')]
    await store.setRecord({ key: 'a', value: 'a' })
    seen.push(await store.recordExists('a'))
    await store.deleteRecord('a')
    await store.deleteRecord('a')
    seen.push(await store.recordExists('a'))
    return [seen, await thrown(() => store.setRecord({ key: '', value: 'a' }))]
  },
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(`storages on ${engine.name} answer as Crawlee's own do`, () => {
    let database: TestDatabase
    let ours: CrawleeStorage
    const localDataDirectory = mkdtempSync(join(tmpdir(), 'unstuck-crawlee-'))
    const theirs = new Configuration({
      storageClientOptions: { localDataDirectory },
    }).getStorageClient()
    before(async () => {
      database = await engine.empty()
      ours = await crawleeStorage({ db: database.url, log: () => {} })
    })
    after(async () => {
      await ours.close()
      await database[Symbol.asyncDispose]()
      await theirs.teardown?.()
      rmSync(localDataDirectory, { recursive: true, force: true })
    })

    for (const [title, act] of Object.entries(CASES)) {
      test(title, async () => {
        const [seen, expected] = [await act(ours, title), await act(theirs, title)]
        assert.deepEqual(comparable(seen), comparable(expected))
      })
    }
  })
}

/** What a caller can see of it: fields that are not there and undefined ones are the same. */
function comparable(value: unknown): unknown {
  if (Buffer.isBuffer(value)) return `bytes ${value.toString('hex')}`
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([, one]) => one !== undefined)
  return Object.fromEntries(fields.map(([name, one]) => [name, comparable(one)]))
}
