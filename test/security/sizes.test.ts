import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { LIMITS } from '../../src/core/model/limits.ts'
import { allOk, claim, hire, startCrawl } from '../../src/testing/fixtures.ts'
import { httpStage, type HttpStage } from '../../src/testing/http-context.ts'
import { postgresEngine } from '../../src/testing/postgres-engine.ts'
import { sqliteEngine } from '../../src/testing/sqlite-engine.ts'

const MB = 1_048_576
/** That no database compresses. */
const noise = (bytes: number): string => randomBytes(Math.ceil(bytes / 2)).toString('hex')

async function bytesOf({ database, store }: HttpStage, table: string): Promise<number> {
  const size =
    store.engine === 'sqlite'
      ? `SELECT coalesce(sum(length(actor) + length(call) + length(selection) + length(result)), 0) AS bytes FROM ${table}`
      : `SELECT pg_total_relation_size('unstuck.${table}')::float8 AS bytes`
  return Number((await database.raw(size))[0]!['bytes'])
}

for (const engine of [sqliteEngine, postgresEngine]) {
  test(`S37 a list stays small whatever its targets hold, and one target comes whole, ${engine.name}`, async () => {
    await using stage = await httpStage({ engine })
    const { store } = stage
    const run = await startCrawl(store, 120)
    const claims = await claim(store, await hire(store), 120)
    const cursor = { large: noise(LIMITS.cursor - 100) }
    const error = noise(MB)
    for (const one of claims)
      allOk(await store.fail([{ ...one, error, retryInMs: null, nextCursor: cursor }]))
    await store.settle()

    const look = async (path: string): Promise<any> => {
      const { status, body } = await stage.call('GET', path, { as: 'viewer' })
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
    const { body } = await stage.call('GET', `/api/targets/${first.id}`, { as: 'viewer' })
    const { target } = body
    assert.deepEqual(target.cursor, cursor)
    assert.ok(target.lastError.startsWith(error.slice(0, 10_000)))
    assert.match(target.lastError, /cut; it had \d+ characters/)
    assert.ok(Buffer.byteLength(target.lastError) <= LIMITS.error)
    assert.equal(target.cut, undefined)
  })

  test(`S37 of the body of a refused call no more than a summary is stored, ${engine.name}`, async () => {
    await using stage = await httpStage({ engine })
    const before = await bytesOf(stage, 'operation')
    const bodies = Array.from({ length: 50 }, () => ({ runs: noise(250_000) }))
    for (const body of bodies) {
      const { status } = await stage.call('POST', '/api/recovery', { as: 'operator', body })
      assert.equal(status, 400)
    }
    const { items } = await stage.store.operations({ limit: 100 })
    assert.equal(items.length, 50)
    const selection = items[0]!.selection as object
    assert.deepEqual(Object.keys(selection).sort(), ['bytes', 'cut', 'sha256', 'start'])
    assert.ok(JSON.stringify(selection).length <= LIMITS.refusedBody)
    const grown = (await bytesOf(stage, 'operation')) - before
    assert.ok(grown < MB / 2, `the table has grown by ${grown} bytes`)
  })
}
