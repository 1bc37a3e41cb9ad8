import assert from 'node:assert/strict'
import { readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { LogFile, parseLogLines } from './log-file.ts'

function parsed(path: string): (string | undefined)[][] {
  const lines = readFileSync(path, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => [parseLogLines([line])[0]?.stream, parseLogLines([line])[0]?.text])
}

test('a line has its time and where it was printed; a later attempt goes on below', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'runs', 'output.log')
  const before = new Date().toISOString()
  const first = new LogFile(path)
  first.note('started attempt 1, process 12')
  first.write('out', ['page 1', '', 'out err run'])
  first.close()
  new LogFile(path).write('err', ['  Traceback'])
  assert.deepEqual(parsed(path), [
    ['run', 'started attempt 1, process 12'],
    ['out', 'page 1'],
    ['out', ''],
    ['out', 'out err run'],
    ['err', '  Traceback'],
  ])
  const { at } = parseLogLines(readFileSync(path, 'utf8').split('\n'))[0]!
  assert.ok(at >= before && at <= new Date().toISOString())
  assert.match(readFileSync(path, 'utf8'), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z out page 1$/m)
  assert.equal(statSync(path).mode & 0o777, 0o600)
})

test('the notes of Unstuck keep no password and no control characters', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  new LogFile(path).note('ended:\npostgres://me:hunter2@db/x is \x1b[2Jaway')
  assert.deepEqual(parsed(path), [['run', 'ended: postgres://***@db/x is \\x1b[2Jaway']])
})

test('a log that cannot be written stops nothing, and records how much is missing', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'away', 'output.log')
  writeFileSync(dirname(path), '')
  const log = new LogFile(path, { retryAfterMs: 0 })
  log.write('out', ['one', 'two'])
  log.note('three')
  rmSync(dirname(path))
  log.write('out', ['four'])
  assert.deepEqual(parsed(path), [
    ['run', '3 lines lost: the log could not be written'],
    ['out', 'four'],
  ])
})

test('it takes no more room than it may', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  const log = new LogFile(path, { maxBytes: 1_000, keep: 2 })
  for (let n = 0; n < 500; n++) log.write('out', [`page ${n}`])
  const sizes = [path, `${path}.1`, `${path}.2`].map((file) => statSync(file).size)
  assert.ok(
    sizes.every((size) => size > 0 && size <= 1_000),
    String(sizes),
  )
  assert.throws(() => statSync(`${path}.3`), { code: 'ENOENT' })
  assert.deepEqual(parsed(path).at(-1), ['out', 'page 499'])
})

test('a malformed log line is not parsed', () => {
  for (const line of ['', 'page 1', '2026-11-16T10:00:00.123Z', '2026-11-16T10:00:00.123Z xxx a'])
    assert.deepEqual(parseLogLines([line]), [])
})
