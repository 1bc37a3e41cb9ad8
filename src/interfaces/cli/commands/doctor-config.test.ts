import assert from 'node:assert/strict'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { runDoctor } from '../../../testing/doctor-report.ts'
import { sqliteEngine, temporaryFolder } from '../../../testing/sqlite-engine.ts'

/** What `unstuck doctor` tells of the config, and of which database counts. */

const WRONG = `export default { dbb: 'sqlite:x.db', preset: 'prod' }`

test('a config with mistakes ends with 2, names them all, and the rest is looked at', async () => {
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'unstuck.config.ts'), WRONG)

  const said = await runDoctor([], { cwd: folder.path })

  assert.equal(said.code, 2)
  assert.equal(said.getCheck('config').details.length, 2)
  assert.match(said.getCheck('config').details[0]!, /did you mean db\?/)
  assert.equal(said.getCheck('address').result, 'note')
  said.assertOnlyProblems('config', 'address')
  for (const check of ['runtime', 'disk', 'signals']) said.getCheck(check)
})

test('a config with mistakes does not hide the database that is named otherwise', async () => {
  await using db = await sqliteEngine.fresh()
  using folder = temporaryFolder()
  writeFileSync(join(folder.path, 'unstuck.config.ts'), WRONG)

  const said = await runDoctor(['--db', db.url], { cwd: folder.path })

  assert.equal(said.code, 2)
  assert.equal(said.getCheck('counters').result, 'ok')
  said.assertOnlyProblems('config')
})

test('a config that cannot be loaded is a mistake too', async () => {
  using folder = temporaryFolder()
  writeFileSync(
    join(folder.path, 'unstuck.config.ts'),
    `throw new Error('no answer from postgres://me:hunter2@h/x')`,
  )

  const said = await runDoctor([], { cwd: folder.path })

  assert.equal(said.code, 2)
  assert.match(said.getCheck('config').found, /unstuck\.config\.ts could not be loaded: no answer/)
  assert.doesNotMatch(said.stdout, /hunter2/)
})

test('a config that is correct but risky is a warning, reported once', async () => {
  using folder = temporaryFolder()
  writeFileSync(
    join(folder.path, 'unstuck.config.ts'),
    `export default { policies: { shop: { abandonAfter: '1h' } } }`,
  )

  const said = await runDoctor([], { cwd: folder.path })

  assert.equal(said.code, 3)
  assert.match(said.getCheck('config').details[0]!, /abandonAfter is below 12 h/)
  said.assertOnlyProblems('config', 'database')
})

test('the address is shown with its origin, and without its password', async () => {
  using folder = temporaryFolder()
  const cwd = join(folder.path, 'deep')
  mkdirSync(cwd)
  const address = async (args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> =>
    (await runDoctor(args, { cwd, env })).getCheck('address').found
  const at = (name: string): string => `sqlite:${join(folder.path, name)}`

  assert.equal(await address([]), `sqlite:${join(cwd, '.unstuck/unstuck.db')}, the default.`)
  writeFileSync(join(folder.path, 'unstuck.config.ts'), `export default { db: 'sqlite:c.db' }`)
  assert.equal(await address([]), `${at('c.db')}, from the config.`)
  const env = { UNSTUCK_DB: 'sqlite:b.db' }
  assert.equal(await address([], env), `${at('b.db')}, from the environment, UNSTUCK_DB.`)
  assert.equal(await address(['--db', 'sqlite:a.db'], env), `${at('a.db')}, given with --db.`)
  const secret = await runDoctor(['--db', 'postgres://me:hunter2@127.0.0.1:1/x'], { cwd })
  assert.match(secret.getCheck('address').found, /^postgres:\/\/\*\*\*@127\.0\.0\.1:1\/x, given/)
  assert.doesNotMatch(secret.stdout, /hunter2/)
  assert.equal(secret.code, 7)
})

test('an address that is none ends with 2, after the other checks', async () => {
  using folder = temporaryFolder()

  const said = await runDoctor(['--db', 'mysql://me:hunter2@h/x'], { cwd: folder.path })

  assert.equal(said.code, 2)
  assert.match(said.getCheck('address').found, /^--db must be sqlite:PATH/)
  said.assertOnlyProblems('address')
  assert.doesNotMatch(said.stdout, /hunter2/)
})
