import assert from 'node:assert/strict'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { postgresEngine } from '../../../testing/postgres-engine.ts'
import { createPreRelease } from '../../../testing/pre-release.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'
import type { Engine, TestDatabase } from '../../../testing/test-database.ts'
import { unstuck, type CliResult } from '../../../testing/unstuck-cli.ts'
import { readDatabaseInfo } from '../../../features/inspection/store/database-info.ts'

type Migration = { where: string; from: number; to: number; applied: string[]; pending: string[] }

async function migrate(db: TestDatabase, ...args: string[]): Promise<CliResult> {
  using folder = temporaryFolder()
  return await unstuck(['migrate', ...args, '--db', db.url], { cwd: folder.path })
}

async function json(db: TestDatabase, ...args: string[]): Promise<Migration> {
  const { code, stdout, stderr } = await migrate(db, '--json', ...args)
  assert.deepEqual([code, stderr], [0, ''])
  return JSON.parse(stdout) as Migration
}

for (const engine of [sqliteEngine, postgresEngine]) {
  describe(engine.name, () => testMigrate(engine))
}

function testMigrate(engine: Engine): void {
  test('a database of a pre-release is refused with 9 and left as it is, dry run or not', async () => {
    await using db = await engine.empty()
    const contents = await createPreRelease(db, engine)
    const before = await contents()

    for (const args of [[], ['--dry-run']]) {
      const { code, stdout, stderr } = await migrate(db, ...args)
      assert.deepEqual([code, stdout], [9, ''])
      assert.match(stderr, /E_SCHEMA_OLDER: The database was made by a pre-release of unstuck/)
    }

    assert.deepEqual(await contents(), before)
  })

  test('a schema that is up to date stays as it is', async () => {
    await using db = await engine.fresh()
    const { known, where } = await readDatabaseInfo(db.url)
    const before = await db.raw(`SELECT * FROM ${db.table('migration')}`)

    for (const args of [[], ['--dry-run']]) {
      const same = { where, from: known, to: known, applied: [], pending: [] }
      assert.deepEqual(await json(db, ...args), same)
      assert.equal(
        (await migrate(db, ...args)).stdout,
        `${where} is up to date: schema version ${known}.\n`,
      )
    }

    assert.deepEqual(await db.raw(`SELECT * FROM ${db.table('migration')}`), before)
  })

  test('an empty database gets the schema, but not with --dry-run', async () => {
    await using db = await engine.empty()

    const plan = await json(db, '--dry-run')
    assert.equal(plan.from, 0)
    assert.equal(plan.to, (await readDatabaseInfo(db.url)).known)
    assert.equal(plan.pending[0], 'initial')
    assert.equal((await readDatabaseInfo(db.url)).version, 0)

    const { code, stdout } = await migrate(db)
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(`from schema version 0 to ${plan.to}\\.`))
    assert.equal((await readDatabaseInfo(db.url)).version, plan.to)
  })

  test('a newer schema is refused with 9, dry run or not', async () => {
    await using db = await engine.fresh()
    const now = engine.name === 'sqlite' ? '0' : 'now()'
    await db.raw(
      `INSERT INTO ${db.table('migration')} (number, min_program_version, applied_at) VALUES (999, 1, ${now})`,
    )

    for (const args of [[], ['--dry-run']]) {
      const { code, stdout, stderr } = await migrate(db, ...args)
      assert.deepEqual([code, stdout], [9, ''])
      assert.match(stderr, /E_SCHEMA_NEWER: The database has schema version 999/)
    }
  })
}

test('a missing SQLite file is created with its folder, and reported', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, '.unstuck', 'unstuck.db')

  const plan = await unstuck(['migrate', '--dry-run'], { cwd: folder.path })
  assert.match(plan.stdout, /^There is no database yet, and one would be made: /)
  assert.equal(existsSync(path), false)

  const { code, stdout } = await unstuck(['migrate'], { cwd: folder.path })
  assert.equal(code, 0)
  assert.ok(stdout.startsWith(`Made a database: ${path}\n`))
  assert.ok(existsSync(path))
})

test('an unreachable database ends with 7', async () => {
  using folder = temporaryFolder()
  const args = ['migrate', '--db', 'postgres://me:hunter2@127.0.0.1:1/x']
  const { code, stderr } = await unstuck(args, { cwd: folder.path })
  assert.equal(code, 7)
  assert.match(stderr, /E_DB_UNREACHABLE/)
  assert.doesNotMatch(stderr, /hunter2/)
})

test('docs/reference/json-output.md names every field', async () => {
  const docs = readFileSync(
    new URL('../../../../docs/reference/json-output.md', import.meta.url),
    'utf8',
  )
  const section = docs.split('## `unstuck migrate`')[1]!.split(/^## /m)[0]!
  await using db = await sqliteEngine.fresh()
  for (const field of Object.keys(await json(db))) assert.ok(section.includes(`\`${field}\``))
})
