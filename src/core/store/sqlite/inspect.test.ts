import assert from 'node:assert/strict'
import { hash } from 'node:crypto'
import { copyFileSync, existsSync, readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { UnusableStore } from '../../model/errors.ts'
import { newId } from '../../model/id.ts'
import { hire, startCrawl } from '../../../testing/fixtures.ts'
import { otherProcess } from '../../../testing/other-process.ts'
import { sqliteEngine as engine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { lookAtDatabase } from '../open.ts'

test('P9 an inspection lets go of no lock of its own process, registered, ended or not known yet', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await using other = await otherProcess(db.url)
  const id = newId()
  const { presence, release } = await store.holdPresence(id)
  const path = join(`${store.where}-workers`, `${id}.lock`)
  const longAgo = new Date(Date.now() - 3_600_000)
  utimesSync(path, longAgo, longAgo)

  const unknown = await store.inspect()
  assert.deepEqual(unknown.leftoverLocks, [{ path, fault: 'worker-unknown' }])
  await hire(store, { id, presence })
  assert.deepEqual((await store.inspect()).leftoverLocks, [])
  await db.raw(`UPDATE worker SET ended_at = 1`)
  assert.deepEqual((await store.inspect()).leftoverLocks, [], 'its process lives and holds it')
  await db.raw(`UPDATE worker SET ended_at = NULL`)

  const [witnessed] = await other.call(0, 'workers')
  assert.equal(witnessed?.evidence.presence, 'held')
  await release()
})

test('a look leaves the files as they were, to the byte: at work, closed, and as a kill left them', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await startCrawl(store, 50)
  const killed = `${store.where}.killed`
  for (const end of ['', '-wal']) copyFileSync(store.where + end, killed + end)
  const look = async (path: string): Promise<void> => {
    const before = [hashOf(path), hashOf(`${path}-wal`)]

    const { version, known, engine } = await lookAtDatabase(`sqlite:${path}`)

    assert.equal(version, known)
    assert.partialDeepStrictEqual(engine, { journalMode: 'wal', readOnly: null, network: null })
    assert.deepEqual([hashOf(path), hashOf(`${path}-wal`)], before)
  }

  await look(store.where)
  await look(killed)
  await store.close()
  await look(store.where)
})

function hashOf(path: string): string {
  return hash('sha256', existsSync(path) ? readFileSync(path) : '')
}

test('what is no database is refused by a look as by an opening', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'text.db')
  writeFileSync(path, 'This is not a database, it is a text of some length.\n'.repeat(100))

  await assert.rejects(lookAtDatabase(`sqlite:${path}`), UnusableStore)
  await assert.rejects(lookAtDatabase(`sqlite:${folder.path}`), UnusableStore)
})
