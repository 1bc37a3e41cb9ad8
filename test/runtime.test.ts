import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import process from 'node:process'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { findOldNode, isSupported } from '../src/testing/old-node.ts'

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
