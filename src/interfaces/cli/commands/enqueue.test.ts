import assert from 'node:assert/strict'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../../testing/sqlite-engine.ts'
import { unstuck, type CliResult } from '../../../testing/unstuck-cli.ts'

/** A folder with a crawl, and the command line in it. */
function project(): Disposable & { path: string; cli(...args: string[]): Promise<CliResult> } {
  const folder = temporaryFolder()
  writeFileSync(
    join(folder.path, 'crawl.mjs'),
    `export default {
      isCrawl: true, source: 'shop', async *targets() { yield { key: 'a', group: null, url: '' } }
    }`,
  )
  return {
    path: folder.path,
    cli: (...args) => unstuck(args, { cwd: folder.path }),
    [Symbol.dispose]: () => folder[Symbol.dispose](),
  }
}

for (const command of ['enqueue', 'work'] as const) {
  for (const path of ['./crowl', 'crowl.mjs', './crawl', './crawl.ts']) {
    test(`${command} ${path} queues nothing where only crawl.mjs exists, and names it`, async () => {
      using folder = project()
      const { code, stderr } = await folder.cli(command, path)
      assert.equal(code, 2, stderr)
      assert.match(stderr, /There is no module .*\. Did you mean crawl\.mjs\?/)
      assert.ok(!existsSync(join(folder.path, '.unstuck')), 'no database is created for a typo')
    })
  }
}

test('enqueue of a path where no module is advises to enqueue one', async () => {
  using folder = temporaryFolder()
  const { stderr } = await unstuck(['enqueue', './crowl'], { cwd: folder.path })
  assert.match(stderr, /as in `unstuck enqueue crawl\.ts`/)
})

test('enqueue of a source that never ran names a similar file or source, and how to take it back', async () => {
  using folder = project()
  const file = await folder.cli('enqueue', 'crowl')
  assert.equal(file.code, 0, file.stderr)
  assert.match(
    file.stderr,
    /^crowl has not run before; there is .*crawl\.mjs\. .*unstuck cancel \w{8}$/m,
  )

  assert.equal((await folder.cli('enqueue', 'portal')).stderr, '', 'nothing is similar')
  const source = await folder.cli('enqueue', 'portla')
  assert.match(source.stderr, /^portla has not run before; there is portal\./)
  assert.match((await folder.cli('check', 'protal')).stdout, /has never run, and there is portal\./)
  assert.doesNotMatch((await folder.cli('check', 'portal')).stdout, /never run/)
  const listed = async (...args: string[]) => (await folder.cli('runs', ...args)).stdout
  assert.equal(await listed('--source', 'protal'), 'No run of protal matches; there is portal.\n')
  assert.equal(await listed('--status', 'failed'), 'No run matches.\n')
})

test('a folder or a script with the name of a source is no module, and a module is no source', async () => {
  using folder = project()
  mkdirSync(join(folder.path, 'reports'))
  writeFileSync(join(folder.path, 'portal'), '#!/bin/sh')
  for (const source of ['reports', 'portal']) {
    const { code, stdout } = await folder.cli('enqueue', source)
    assert.deepEqual([code, stdout.includes(`of ${source} is queued`)], [0, true])
  }
  const { code, stderr } = await folder.cli('check', 'crawl.mjs')
  assert.equal(code, 2)
  assert.match(stderr, /crawl\.mjs is the path of a file\. Give the source that it names/)
})
