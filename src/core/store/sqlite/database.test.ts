import assert from 'node:assert/strict'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { HOST_CLOCK, StoreClock } from './clock.ts'
import { Connection, Database, sql } from './database.ts'
import { fileId, OpenFiles } from './open-files.ts'

const COUNT = sql('count')`SELECT count(*) AS n FROM one`
const ADD = sql('add')`INSERT INTO one VALUES (1)`

function openDatabase(folder: string): Database {
  const path = join(folder, 'test.db')
  const connect = (): Connection => new Connection(new DatabaseSync(path))
  const writer = connect()
  writer.exec('PRAGMA journal_mode = WAL')
  writer.exec('CREATE TABLE one (n INTEGER UNIQUE)')
  const files = OpenFiles.of(path, fileId(path))!
  return new Database('test.db', {
    writer,
    reader: connect(),
    files,
    clock: new StoreClock(HOST_CLOCK),
  })
}

test('a snapshot throws the error of its reads, also when SQLite has already ended the transaction', async () => {
  using folder = temporaryFolder()
  const db = openDatabase(folder.path)

  assert.throws(
    () =>
      db.snapshot((tx) => {
        // SQLite does this by itself after an I/O error, or when memory or the disk is full.
        tx.exec('ROLLBACK')
        throw new Error('disk I/O error')
      }),
    { message: 'disk I/O error' },
  )
  assert.equal(db.snapshot((tx) => tx.get<{ n: number }>(COUNT))!.n, 0)
  await db.close()
})

test('after a failed snapshot the next one starts and sees what was committed since', async () => {
  using folder = temporaryFolder()
  const db = openDatabase(folder.path)
  const count = (): number => db.snapshot((tx) => tx.get<{ n: number }>(COUNT))!.n

  assert.throws(() =>
    db.snapshot((tx) => {
      tx.get(COUNT)
      throw new Error('not readable')
    }),
  )
  await db.write('add', (tx) => tx.run(ADD))

  assert.equal(count(), 1)
  await db.close()
})
