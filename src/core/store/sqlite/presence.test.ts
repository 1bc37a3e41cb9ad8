import assert from 'node:assert/strict'
import { existsSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { newId } from '../../model/id.ts'
import type { Presence, ProcessIdentity } from '../../model/worker.ts'
import { startStoreProcess } from '../../../testing/store-process.ts'
import { sqliteEngine as engine } from '../../../testing/sqlite-engine.ts'
import type { TestDatabase } from '../../../testing/test-database.ts'
import { thisProcess } from '../../host/identity.ts'
import { probePresence } from './presence.ts'

test('P9 a missing or replaced lock file is no evidence about its holder', async () => {
  await using db = await engine.fresh()
  await using other = await startStoreProcess(db.url)
  const presence = await other.acquirePresence(newId())
  const folder = lockFolder(db)
  const path = join(folder, (presence as { path: string }).path)
  const probe = () => probePresence(folder, presence, otherHost(other.pid))
  assert.equal(probe(), 'held')

  renameSync(path, `${path}.moved`)
  assert.equal(probe(), 'unknown', 'missing')
  assert.equal(existsSync(path), false, 'the probe made a file')
  writeFileSync(path, '')
  assert.equal(probe(), 'unknown', 'another inode')
  rmSync(path)
  renameSync(`${path}.moved`, path)
  assert.equal(probe(), 'held')
})

test('P9 a lock file from another boot is no evidence about its holder', async () => {
  await using db = await engine.fresh()
  await using other = await startStoreProcess(db.url)
  const presence = await other.acquirePresence(newId())

  const holder = { ...otherHost(other.pid), bootId: newId() }

  assert.equal(probePresence(lockFolder(db), presence, holder), 'unknown')
})

test('a lock is free when its holder was killed, and stays in place for others to look at', async () => {
  await using db = await engine.fresh()
  await using other = await startStoreProcess(db.url)
  const presence = await other.acquirePresence(newId())
  const probe = () => probePresence(lockFolder(db), presence, otherHost(other.pid))
  for (let n = 0; n < 50; n++) assert.equal(probe(), 'held', 'probing must not free it')

  await other.kill('SIGKILL')

  assert.equal(probe(), 'free')
  assert.equal(probe(), 'free')
  assert.equal(readdirSync(lockFolder(db)).length, 1)
})

test('a process does not open its own lock: that would let it go', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await using other = await startStoreProcess(db.url)
  const id = newId()
  const held = await store.acquirePresence(id)
  await store.registerWorker({
    id,
    source: 'shop',
    process: thisProcess(),
    presence: held.presence,
    version: '0',
    heartbeatMs: 1_000,
    leaseMs: 15_000,
  })

  for (let n = 0; n < 5; n++) {
    assert.equal((await store.observations())[0]?.evidence.presence, 'held')
    assert.equal((await other.call(0, 'observations'))[0]?.evidence.presence, 'held')
  }
  await held.release()
  assert.deepEqual(readdirSync(lockFolder(db)), [])
})

test('retiring a worker removes its lock file', async () => {
  await using db = await engine.fresh()
  const store = await db.open()
  await using other = await startStoreProcess(db.url)
  const id = newId()
  await other.acquirePresence(id)
  await other.kill('SIGKILL')

  await store.retireWorker(id)

  assert.deepEqual(readdirSync(lockFolder(db)), [])
})

test('a presence of another kind is unknown here', () => {
  const kinds: Presence[] = [{ kind: 'none' }, { kind: 'session', key: '1' }]
  for (const presence of kinds) {
    assert.equal(probePresence('/nowhere', presence, thisProcess()), 'unknown')
  }
})

function lockFolder(db: TestDatabase): string {
  return `${db.url.slice('sqlite:'.length)}-workers`
}

function otherHost(pid: number): ProcessIdentity {
  return { ...thisProcess(), pid, startTicks: 1 }
}
