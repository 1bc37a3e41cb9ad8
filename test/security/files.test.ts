import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { temporaryFolder } from '../../src/testing/sqlite-engine.ts'
import { unstuck } from '../../src/testing/unstuck-cli.ts'

const ROOT = join(import.meta.dirname, '..', '..')

test('S28 every file Unstuck creates is private to its owner, also under a permissive umask', async () => {
  using folder = temporaryFolder()
  const cwd = folder.path
  const data = join(cwd, '.unstuck')
  /** Everything in the folder, while a command runs in it. */
  const script = `
    const { readdirSync } = require('node:fs')
    console.log(JSON.stringify(readdirSync('.unstuck', { recursive: true })))
    for (const name of readdirSync('.unstuck', { recursive: true })) {
      const { mode } = require('node:fs').lstatSync('.unstuck/' + name)
      if (mode & 0o077) console.log('open: ' + name + ' ' + mode.toString(8))
    }`
  const before = process.umask(0)
  try {
    const token = await unstuck(['tokens', 'add', 'maria'], { cwd })
    assert.equal(token.code, 0, token.stderr)
    const run = ['run', 'feed', '--socket', '--', process.execPath, '-e', script]
    const { code, stdout, stderr } = await unstuck(run, { cwd })
    assert.equal(code, 0, stderr)
    assert.doesNotMatch(stdout, /open: /)
    for (const made of ['unstuck.db-wal', '.lock', 'output.log', 'tokens.json']) {
      assert.ok(stdout.includes(made), `${made}: ${stdout}`)
    }
  } finally {
    process.umask(before)
  }
  const left = readdirSync(data, { recursive: true }).map((name) => join(data, String(name)))
  for (const path of [data, ...left]) assert.equal(statSync(path).mode & 0o077, 0, path)
})

type Package = {
  dev?: true
  devOptional?: true
  optional?: true
  version?: string
  integrity?: string
  hasInstallScript?: true
}

test('S29 its dependencies are few, pinned, and run no install scripts', () => {
  const read = (file: string) => JSON.parse(readFileSync(join(ROOT, file), 'utf8'))
  const { dependencies, devDependencies, scripts, files } = read('package.json')
  assert.deepEqual(Object.keys(dependencies), ['commander', 'croner', 'hono', 'pg', 'valibot'])
  for (const [name, version] of Object.entries({ ...dependencies, ...devDependencies })) {
    assert.match(String(version), /^\d+\.\d+\.\d+(-[\w.]+)?$/, name)
  }
  for (const name of ['preinstall', 'install', 'postinstall', 'prepare']) {
    assert.equal(scripts[name], undefined, name)
  }
  assert.deepEqual(files, [
    'bin',
    'dist',
    'docs/*.md',
    'docs/guides',
    'docs/reference',
    'AGENTS.md',
    'examples',
    'SECURITY.md',
    'CHANGELOG.md',
  ])

  const packages = Object.entries(read('package-lock.json').packages as Record<string, Package>)
  const installed = packages.filter(
    // Optional ones: peers of peers, such as TypeScript for those who have it.
    ([path, one]) => path !== '' && !one.dev && !one.devOptional && !one.optional,
  )
  assert.ok(installed.length <= 25, installed.map(([path]) => path).join(', '))
  for (const [path, one] of installed) {
    assert.equal(one.hasInstallScript, undefined, path)
    assert.match(one.integrity ?? '', /^sha512-/, path)
  }
})
