import assert from 'node:assert/strict'
import { existsSync, renameSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { UnusableStoreError } from '../../model/errors.ts'
import { enqueueCrawl } from '../../../testing/fixtures.ts'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { openStore } from '../open.ts'

test('a file that was deleted is neither read from nor written to, also when it is put back', async () => {
  using folder = temporaryFolder()
  const [path, away] = [join(folder.path, 'u.db'), join(folder.path, 'away.db')]
  const store = await openStore(`sqlite:${path}`)
  await enqueueCrawl(store, 1)

  renameSync(path, away)
  await assert.rejects(store.runs({ limit: 1 }), UnusableStoreError)
  renameSync(away, path)
  await assert.rejects(store.settle(), UnusableStoreError)

  await store.close()
})

test('a missing database is not made anew while its -wal file is there', async () => {
  using folder = temporaryFolder()
  const [path, away] = [join(folder.path, 'u.db'), join(folder.path, 'away.db')]
  const store = await openStore(`sqlite:${path}`)
  await enqueueCrawl(store, 1)
  renameSync(path, away)
  const { size } = statSync(`${path}-wal`)

  await assert.rejects(openStore(`sqlite:${path}`), /is missing, but its -wal file/)

  assert.equal(existsSync(path), false)
  assert.equal(statSync(`${path}-wal`).size, size)
  await store.close()
  rmSync(`${path}-wal`)
  await (await openStore(`sqlite:${path}`)).close()
})
