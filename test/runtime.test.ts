import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'

const PATH = process.env['PATH'] ?? ''
const root = (path: string): string => fileURLToPath(new URL(`../${path}`, import.meta.url))

test('the tests themselves run on a Node that is new enough', () => {
  // npm may leave the pinned one out without a word; then the system's would be in its place.
  assert.ok(isSupported(process.versions.node), `this is Node ${process.versions.node}`)
  const { engines } = JSON.parse(readFileSync(root('package.json'), 'utf8')) as {
    engines: { node: string }
  }
  assert.equal(engines.node, '>=24.15')
})

const old = findOldNode()
for (const file of ['bin/unstuck.js', 'bin/check-runtime.js']) {
  test(
    `${file} on an old Node says so in one sentence and ends with 2`,
    { skip: old ? false : 'there is no Node older than 24.15 on this machine' },
    () => {
      const { status, stdout, stderr } = spawnSync(old!, [root(file), '--version'], {
        encoding: 'utf8',
      })
      assert.equal(status, 2, stderr)
      assert.equal(stdout, '')
      assert.match(stderr, /^unstuck needs Node 24\.15 or newer; this is v\d+\.\d+\.\d+\. .*\n$/)
      assert.doesNotMatch(stderr, /\bat .*:\d+|SyntaxError|ExperimentalWarning/)
    },
  )

  test(`${file} prints no warning on this Node`, () => {
    const { status, stderr } = spawnSync(process.execPath, [root(file), '--version'], {
      encoding: 'utf8',
    })
    assert.deepEqual([status, stderr], [0, ''])
  })
}

/** Any on the way, or where systems keep theirs. */
function findOldNode(): string | null {
  const folders = [...PATH.split(delimiter), '/usr/bin', '/usr/local/bin']
  for (const folder of new Set(folders)) {
    const node = join(folder, 'node')
    const { stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' })
    if (stdout && !isSupported(stdout.trim().slice(1))) return node
  }
  return null
}

function isSupported(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 24 || (major === 24 && minor >= 15)
}
