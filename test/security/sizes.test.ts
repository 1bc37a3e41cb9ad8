import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { LIMITS } from '../../src/core/model/limits.ts'
import {
  assertAllOk,
  claim,
  registerWorker,
  enqueueCrawl,
  listOperations,
} from '../../src/testing/fixtures.ts'
import { createHttpTestContext, type HttpTestContext } from '../../src/testing/http-test-context.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'

const MB = 1_048_576
/** That no database compresses. */
const randomText = (bytes: number): string => randomBytes(Math.ceil(bytes / 2)).toString('hex')

async function bytesOf({ database, store }: HttpTestContext, table: string): Promise<number> {
  const size =
    store.engine === 'sqlite'
      ? `SELECT coalesce(sum(length(actor) + length(call) + length(selection) + length(result)), 0) AS bytes FROM ${table}`
      : `SELECT pg_total_relation_size('unstuck.${table}')::float8 AS bytes`
  return Number((await database.raw(size))[0]!['bytes'])
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`S37 a list stays small whatever its targets hold, and one target comes whole, ${engine.name}`, async () => {
    await using ctx = await createHttpTestContext({ engine })
    const { store } = ctx
    const run = await enqueueCrawl(store, 120)
    const claims = await claim(store, await registerWorker(store), 120)
    const cursor = { large: randomText(LIMITS.cursor - 100) }
    const error = randomText(MB)
    for (const one of claims)
      assertAllOk(await store.fail([{ ...one, error, becomes: 'failed', nextCursor: cursor }]))
    await store.settle()

    const look = async (path: string): Promise<any> => {
      const { status, body } = await ctx.call('GET', path, { as: 'viewer' })
      assert.equal(status, 200, path)
      const bytes = JSON.stringify(body).length
      assert.ok(bytes < MB, `${path} answers with ${bytes} bytes`)
      return body
    }
    const { items } = await look(`/api/runs/${run}/targets?limit=500`)
    assert.equal(items.length, 120)
    for (const { cursor: listed, lastError, cut } of items) {
      assert.deepEqual([listed.length, lastError.length, cut], [LIMITS.listed, LIMITS.listed, true])
    }
    for (const path of [
      `/api/runs/${run}`,
      '/api/runs',
      '/api/overview',
      '/api/dead-letters',
      '/api/history',
    ])
      await look(path)
    const { groups } = await look('/api/dead-letters')
    const kind = `/api/dead-letters/${groups[0].fingerprint}/targets?limit=500`
    const { items: letters } = await look(kind)
    assert.ok(letters.length === 120 && letters.every(({ cut }: { cut?: true }) => cut))

    const [first] = items
    const { body } = await ctx.call('GET', `/api/targets/${first.id}`, { as: 'viewer' })
    const { target } = body
    assert.deepEqual(target.cursor, cursor)
    assert.ok(target.lastError.startsWith(error.slice(0, 10_000)))
    assert.match(target.lastError, /cut; it had \d+ characters/)
    assert.ok(Buffer.byteLength(target.lastError) <= LIMITS.error)
    assert.equal(target.cut, undefined)
  })

  test(`S37 of the body of a refused call no more than a summary is stored, ${engine.name}`, async () => {
    await using ctx = await createHttpTestContext({ engine })
    const before = await bytesOf(ctx, 'operation')
    const bodies = Array.from({ length: 50 }, () => ({ runs: randomText(250_000) }))
    for (const body of bodies) {
      const { status } = await ctx.call('POST', '/api/recovery', { as: 'operator', body })
      assert.equal(status, 400)
    }
    const { items } = await listOperations(ctx.store, 100)
    assert.equal(items.length, 50)
    const selection = items[0]!.selection as object
    assert.deepEqual(Object.keys(selection).sort(), ['bytes', 'cut', 'sha256', 'start'])
    assert.ok(JSON.stringify(selection).length <= LIMITS.refusedBody)
    const grown = (await bytesOf(ctx, 'operation')) - before
    assert.ok(grown < MB / 2, `the table has grown by ${grown} bytes`)
  })
}
