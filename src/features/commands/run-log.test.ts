import assert from 'node:assert/strict'
import { appendFileSync, existsSync, renameSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { LogFile } from './log-file.ts'
import { readLogPage } from './run-log.ts'

function numbers(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, n) => String(from + n))
}

/** A log of numbers in four files of about 30 lines. */
function rotated(folder: string, count = 100): { path: string; log: LogFile } {
  const path = join(folder, 'output.log')
  const log = new LogFile(path, { maxBytes: 1_000, keep: 3 })
  for (const number of numbers(0, count)) log.write('out', [number])
  assert.ok(existsSync(`${path}.3`))
  return { path, log }
}

async function page(path: string, after: string | null, limit: number) {
  const { lines, ...rest } = await readLogPage(path, after, limit)
  return { texts: lines.map(({ text }) => text), ...rest }
}

test('without a place the last lines are given, across two files; then what follows, once each', async () => {
  using folder = temporaryFolder()
  const { path, log } = rotated(folder.path)
  const first = await page(path, null, 35)
  assert.deepEqual(first.texts, numbers(65, 100))
  assert.ok(first.anew)
  const nothing = await page(path, first.next, 35)
  assert.deepEqual(nothing, { texts: [], next: first.next, anew: false })
  // More than one file full, read in small pages.
  for (const number of numbers(100, 150)) log.write('err', [number])
  const found: string[] = []
  let { next } = first
  for (let pages = 0; found.length < 50 && pages < 20; pages++) {
    const some = await page(path, next, 7)
    assert.ok(some.texts.length <= 7 && !some.anew)
    found.push(...some.texts)
    next = some.next
  }
  assert.deepEqual(found, numbers(100, 150))
})

test('a line that is still being written comes when it is whole', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  writeFileSync(path, '2026-11-16T10:00:00.000Z out one\n2026-11-16T10:00:00.000Z out tw')
  const first = await page(path, null, 10)
  assert.deepEqual(first.texts, ['one'])
  appendFileSync(path, 'o\n')
  assert.deepEqual((await page(path, first.next, 10)).texts, ['two'])
})

test('a partial line at the end of an older file does not block the next file', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  writeFileSync(path, '2026-11-16T10:00:00.000Z out one\n2026-11-16T10:00:00.000Z out tw')
  const { next } = await page(path, null, 10)
  renameSync(path, `${path}.1`)
  writeFileSync(path, '2026-11-16T10:00:00.000Z out three\n')
  assert.deepEqual((await page(path, next, 10)).texts, ['three'])
})

test('when the cursor is gone the last lines are returned again', async () => {
  using folder = temporaryFolder()
  const { path } = rotated(folder.path)
  for (const after of ['1:1', '', 'x', '../../etc/passwd', '9'.repeat(300)]) {
    const { texts, anew } = await page(path, after, 3)
    assert.deepEqual(texts, ['97', '98', '99'])
    assert.ok(anew)
  }
})

test('a page is bounded in bytes, and a line longer than any is passed over', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  const start = '2026-11-16T10:00:00.000Z out '
  writeFileSync(path, `${start}first\n`)
  const { next } = await page(path, null, 500)
  appendFileSync(path, `${start}${'x'.repeat(2_000_000)}\n`)
  for (const number of numbers(0, 500)) {
    appendFileSync(path, `${start}${number} ${'y'.repeat(2_000)}\n`)
  }
  let [at, pages] = [next, 0]
  const found: string[] = []
  for (; found.length < 500 && pages < 30; pages++) {
    const some = await page(path, at, 500)
    assert.ok(some.texts.join('').length < 400_000)
    found.push(...some.texts.map((text) => text.split(' ')[0]!))
    at = some.next
  }
  assert.deepEqual(found, numbers(0, 500))
  assert.ok(pages > 3)
})

test('a link in the place of the log is not followed', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  writeFileSync(join(folder.path, 'secret'), '2026-11-16T10:00:00.000Z out secret\n')
  symlinkSync(join(folder.path, 'secret'), path)
  await assert.rejects(page(path, null, 10), { code: 'E_USAGE' })
})
