import assert from 'node:assert/strict'
import { existsSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { UsageError } from '../../core/model/errors.ts'
import { newId } from '../../core/model/id.ts'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import {
  dataFolder,
  isLogPathOf,
  createRunFolder,
  removeRunFolder,
  runFolder,
} from './data-folder.ts'

const RUN = '0190c0de-0000-7000-8000-123456789abc'

test('files lie beside a database file, else in the project', () => {
  assert.equal(dataFolder('sqlite:/data/.unstuck/unstuck.db', '/here'), '/data/.unstuck')
  assert.equal(dataFolder('postgres://me:secret@db/x', '/here'), '/here/.unstuck')
})

test('a run has a folder, a place for its files, and a log', () => {
  assert.deepEqual(runFolder('/data', RUN), {
    folder: `/data/runs/${RUN}`,
    outputDir: `/data/runs/${RUN}/output`,
    logPath: `/data/runs/${RUN}/output.log`,
  })
})

const NO_IDS = ['', '..', '../../etc', '/etc', `${RUN}/..`, '%2e%2e', `${RUN}\0`, RUN.toUpperCase()]

for (const text of NO_IDS) {
  test(`${JSON.stringify(text)} does not become a path`, () => {
    assert.throws(() => runFolder('/data', text), UsageError)
    assert.equal(isLogPathOf(`/data/runs/${text}/output.log`, text), false)
  })
}

test('only the log of this very run is one', () => {
  assert.equal(isLogPathOf(`/data/runs/${RUN}/output.log`, RUN), true)
  for (const path of [
    '/etc/passwd',
    '',
    `/data/runs/${newId()}/output.log`,
    `/data/runs/${RUN}/output/output.log`,
    `/data/runs/${RUN}/../${RUN}/output.log`,
    `/data/runs/${RUN}/output.log/`,
    `runs/${RUN}/output.log`,
  ]) {
    assert.equal(isLogPathOf(path, RUN), false, path)
  }
})

test('the folder is made for this user alone, and may be there already', () => {
  using base = temporaryFolder()
  const { folder, outputDir } = createRunFolder(base.path, RUN)
  createRunFolder(base.path, RUN)
  for (const path of [join(base.path, 'runs'), folder, outputDir]) {
    assert.equal(statSync(path).mode & 0o777, 0o700)
  }
})

test('a link in its place is refused', () => {
  using base = temporaryFolder()
  mkdirSync(join(base.path, 'runs'))
  mkdirSync(join(base.path, 'elsewhere'))
  symlinkSync(join(base.path, 'elsewhere'), join(base.path, 'runs', RUN))
  assert.throws(() => createRunFolder(base.path, RUN), /leads somewhere else/)
})

test('its files go as a whole, and nothing else: what links in them lead to stays', async () => {
  using base = temporaryFolder()
  const [other, elsewhere] = [newId(), join(base.path, 'elsewhere')]
  const { folder, outputDir, logPath } = createRunFolder(base.path, RUN)
  createRunFolder(base.path, other)
  mkdirSync(elsewhere)
  for (const path of [logPath, join(outputDir, 'a'), join(elsewhere, 'kept')])
    writeFileSync(path, 'x')
  symlinkSync(elsewhere, join(outputDir, 'linked'))
  symlinkSync('/nowhere', join(outputDir, 'dangling'))

  assert.equal(await removeRunFolder(base.path, RUN), true)

  assert.equal(existsSync(folder), false)
  assert.deepEqual(readdirSync(elsewhere), ['kept'])
  assert.deepEqual(readdirSync(join(base.path, 'runs')), [other])
  assert.equal(await removeRunFolder(base.path, RUN), false)
  await assert.rejects(removeRunFolder(base.path, '../elsewhere'), UsageError)
})

test('a link in its place is not removed, nor what it leads to', async () => {
  using base = temporaryFolder()
  const { folder: neighbour, logPath } = createRunFolder(base.path, newId())
  writeFileSync(logPath, 'x')
  symlinkSync(neighbour, join(base.path, 'runs', RUN))
  await assert.rejects(removeRunFolder(base.path, RUN), /leads somewhere else/)
  assert.ok(existsSync(logPath))
})

test('the folder of all runs may be a link of its owner', async () => {
  using base = temporaryFolder()
  mkdirSync(join(base.path, 'disk'))
  symlinkSync(join(base.path, 'disk'), join(base.path, 'runs'))
  createRunFolder(base.path, RUN)
  assert.equal(await removeRunFolder(base.path, RUN), true)
  assert.deepEqual(readdirSync(join(base.path, 'disk')), [])
})
