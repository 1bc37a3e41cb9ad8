import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { DEFAULT_POLICY } from '../../core/model/policy.ts'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { readAdopted } from './config.ts'
import { open } from '../../interfaces/library/unstuck.ts'

const table = (name: string, db?: string) => ({
  table: name,
  ...(db !== undefined && { db }),
  columns: { id: 'id', status: 'status' },
  statuses: { active: 'running' },
})

function configErrors(adopted: unknown, own?: string): string[] {
  const mistakes: string[] = []
  readAdopted(adopted, DEFAULT_POLICY, { folder: '/crawls', ownDb: own }, mistakes)
  return mistakes
}

test('one table under two names is a mistake, however its place is written', () => {
  const a = table('runs')
  const same = ['adopted.b is the same table as adopted.a']
  assert.deepEqual(configErrors({ a, b: a }), same)
  for (const b of [table('Runs'), table('main.runs'), table('runs', 'sqlite:own.db')])
    assert.deepEqual(configErrors({ a, b }, 'sqlite:/crawls/own.db'), same, JSON.stringify(b))
  for (const b of [table('runs_2'), table('runs', 'sqlite:other.db')])
    assert.deepEqual(configErrors({ a, b }, 'sqlite:own.db'), [])
  // Two tables to PostgreSQL.
  assert.deepEqual(configErrors({ a, b: table('Runs') }, 'postgres://host/crawls'), [])
})

test('open() finds the files of a table beside the config, whatever folder it is called in, as the commands do', async () => {
  using folder = temporaryFolder()
  const path = (name: string): string => join(folder.path, name)
  mkdirSync(path('below'))
  mkdirSync(path('checkpoints'))
  const crawls = {
    ...table('runs', 'sqlite:users.db'),
    columns: { id: 'id', status: 'status', startedAt: 'began' },
  }
  writeFileSync(
    path('unstuck.config.ts'),
    `export default { adopted: { crawls: {
      ...${JSON.stringify(crawls)}, checkpoint: ({ id }) => 'checkpoints/' + id } } }`,
  )
  writeFileSync(path('checkpoints/1'), 'data')
  // Longer ago than abandonAfter: nothing may be working on it.
  const then = new Date('2026-01-01')
  utimesSync(path('checkpoints/1'), then, then)
  const users = new DatabaseSync(path('users.db'))
  users.exec(`
    CREATE TABLE runs (id INTEGER PRIMARY KEY, status TEXT, began TEXT);
    INSERT INTO runs VALUES (1, 'running', '2026-01-01 00:00:00'), (2, 'running', '2026-01-01 00:00:00');
  `)
  users.close()
  const before = process.cwd()
  process.chdir(path('below'))
  try {
    await using unstuck = await open({ db: 'sqlite:own.db', signals: false })
    const { dead, resumable } = await unstuck.summary()
    assert.deepEqual([dead.length, resumable.length], [1, 1])
    await assert.rejects(
      open({
        config: {
          db: 'sqlite:users.db',
          adopted: { a: table('runs', 'sqlite:users.db'), b: table('RUNS') },
        },
      }),
      /adopted\.b is the same table as adopted\.a/,
    )
  } finally {
    process.chdir(before)
  }
})
