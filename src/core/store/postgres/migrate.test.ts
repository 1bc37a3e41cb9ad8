import { setTimeout as sleep } from 'node:timers/promises'
import { test } from 'node:test'
import { Client } from 'pg'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { heart } from './migrations/001-heart.ts'
import { doors } from './migrations/002-doors.ts'
import { commands } from './migrations/003-commands.ts'

const WAITING = /* sql */ `
  SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'unstuck.target'::regclass
     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
`

test('workers keep heartbeating while new indexes are created', async () => {
  await using db = await postgresEngine.empty()
  await db.raw(/* sql */ `
    CREATE SCHEMA unstuck;
    CREATE TABLE unstuck.migration (number integer PRIMARY KEY, name text NOT NULL DEFAULT '',
      lowest integer NOT NULL, applied_at timestamptz NOT NULL DEFAULT clock_timestamp());
    ${heart} ${doors} ${commands}
    INSERT INTO unstuck.migration (number, lowest) VALUES (1, 1), (2, 1), (3, 1);
  `)
  const writer = new Client({ connectionString: db.url })
  writer.on('error', () => {})
  await writer.connect()
  // As long as this is not at its end, the index over all targets is not begun.
  await writer.query('BEGIN; DELETE FROM unstuck.target')
  const opened = db.open()
  while ((await db.raw(WAITING)).length === 0) await sleep(10)

  await db.raw(`SET lock_timeout = '1s'; UPDATE unstuck.worker SET beats = beats + 1`)

  await writer.query('COMMIT')
  await writer.end()
  await (await opened).observations()
})
