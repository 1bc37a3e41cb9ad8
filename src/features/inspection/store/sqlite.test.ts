import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { UnusableStoreError } from '../../../core/model/errors.ts'
import { newId } from '../../../core/model/id.ts'
import { registerWorker, enqueueCrawl } from '../../../testing/fixtures.ts'
import { startStoreProcess } from '../../../testing/store-process.ts'
import { sqliteEngine as engine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { readDatabaseInfo } from './database-info.ts'
import { INSPECTION_STORE } from './store.ts'

test('P9 an inspection releases no lock of its own process, registered, ended or unknown', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await using other = await startStoreProcess(db.url)
  const id = newId()
  const { presence, release } = await store.acquirePresence(id)
  const path = join(`${store.location}-workers`, `${id}.lock`)
  const longAgo = new Date(Date.now() - 3_600_000)
  utimesSync(path, longAgo, longAgo)

  const unknown = await (await store.extend(INSPECTION_STORE)).inspect()
  assert.deepEqual(unknown.leftoverLocks, [{ path, fault: 'worker-unknown' }])
  await registerWorker(store, { id, presence })
  assert.deepEqual((await (await store.extend(INSPECTION_STORE)).inspect()).leftoverLocks, [])
  await db.raw(`UPDATE worker SET ended_at = 1`)
  assert.deepEqual(
    (await (await store.extend(INSPECTION_STORE)).inspect()).leftoverLocks,
    [],
    'its process lives and holds it',
  )
  await db.raw(`UPDATE worker SET ended_at = NULL`)

  const [witnessed] = await other.call(0, 'observations')
  assert.equal(witnessed?.evidence.presence, 'held')
  await release()
})

test('an inspection leaves the files unchanged to the byte: in use, closed, and after a kill', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await enqueueCrawl(store, 50)
  const killed = `${store.location}.killed`
  for (const end of ['', '-wal']) copyFileSync(store.location + end, killed + end)
  const look = async (path: string): Promise<void> => {
    const before = [hashOf(path), hashOf(`${path}-wal`)]

    const { version, known, engine } = await readDatabaseInfo(`sqlite:${path}`)

    assert.equal(version, known)
    assert.partialDeepStrictEqual(engine, { journalMode: 'wal', readOnly: null, network: null })
    assert.deepEqual([hashOf(path), hashOf(`${path}-wal`)], before)
  }

  await look(store.location)
  await look(killed)
  await store.close()
  await look(store.location)
})

function hashOf(path: string): string {
  return hash('sha256', existsSync(path) ? readFileSync(path) : '')
}

test('a file that is no database is rejected by inspect as by open', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'text.db')
  writeFileSync(path, 'This is not a database, it is a text of some length.\n'.repeat(100))

  await assert.rejects(readDatabaseInfo(`sqlite:${path}`), UnusableStoreError)
  await assert.rejects(readDatabaseInfo(`sqlite:${folder.path}`), UnusableStoreError)
})
