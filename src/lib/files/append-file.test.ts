import assert from 'node:assert/strict'
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { AppendFile, type AppendOptions } from './append-file.ts'

function open(path: string, options: Partial<AppendOptions> = {}): AppendFile {
  return new AppendFile(path, { gapLine: (lost) => `lost ${lost}\n`, retryAfterMs: 0, ...options })
}

function numbers(from: number, count: number): string {
  return Array.from({ length: count }, (_, n) => `${from + n}\n`).join('')
}

/** All that is left, oldest first. */
function readAll(path: string): string {
  return [3, 2, 1]
    .map((n) => `${path}.${n}`)
    .concat(path)
    .filter((file) => existsSync(file))
    .map((file) => readFileSync(file, 'utf8'))
    .join('')
}

test('a full file makes room for the next, no file is larger than allowed, and the newest lines stay', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'x.log')
  const file = open(path, { maxBytes: 100, keep: 3 })
  for (let n = 0; n < 1_000; n += 10) file.append(numbers(n, 10))
  const sizes = [path, `${path}.1`, `${path}.2`, `${path}.3`].map((each) => statSync(each).size)
  assert.ok(
    sizes.every((size) => size <= 100),
    String(sizes),
  )
  assert.equal(existsSync(`${path}.4`), false)
  const left = readAll(path)
  assert.ok(left.length > 200, left)
  assert.equal(left, numbers(0, 1_000).slice(-left.length))
})

test('whatever the batches and the limit, no line is torn or lost by a rotation', () => {
  using folder = temporaryFolder()
  /** More than there are lines. */
  const FILES = 60
  let count = 0
  const batches = fc.array(
    fc.array(fc.string({ unit: 'grapheme', maxLength: 12 }), { maxLength: 5 }),
  )
  fc.assert(
    fc.property(batches, fc.integer({ min: 20, max: 60 }), (batches, maxBytes) => {
      const path = join(folder.path, String(count++), 'x.log')
      const file = open(path, { maxBytes, keep: FILES })
      const lines = batches.flat().map((text) => `${text.replaceAll('\n', ' ')}\n`)
      for (const batch of batches) {
        if (batch.length > 0)
          file.append(`${batch.map((text) => text.replaceAll('\n', ' ')).join('\n')}\n`)
      }
      file.close()
      const older = Array.from({ length: FILES }, (_, n) => `${path}.${FILES - n}`)
      const all = [...older.filter((each) => existsSync(each)), path]
      const contents = all.map((each) => (existsSync(each) ? readFileSync(each, 'utf8') : ''))
      assert.equal(contents.join(''), lines.join(''))
      for (const content of contents) {
        // A line longer than a whole file has one to itself.
        const isAlone = content.indexOf('\n') === content.length - 1
        assert.ok(isAlone || Buffer.byteLength(content) <= maxBytes)
      }
    }),
    { numRuns: 50 },
  )
})

/** How large any file of this process may become: beyond it a write takes a part, then fails. */
function limitFiles(bytes: string): void {
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`])
}

const noLimit =
  spawnSync('prlimit', ['--version']).status === 0 ? false : 'there is no `prlimit` of util-linux'

for (const [where, bytes, torn] of [
  ['at the end of a line', 1_000, ''],
  ['inside a line', 1_002, '12\n'],
] as const) {
  test(
    `a disk that is full ${where} throws no error: lost lines are counted exactly`,
    { skip: noLimit },
    () => {
      using folder = temporaryFolder()
      const path = join(folder.path, 'x.log')
      const file = open(path)
      limitFiles(String(bytes))
      try {
        file.append(numbers(1_000, 300))
        file.append(numbers(1_300, 7))
      } finally {
        limitFiles('unlimited')
      }
      file.append(numbers(1_307, 1))
      assert.equal(readFileSync(path, 'utf8'), `${numbers(1_000, 200)}${torn}lost 107\n1307\n`)
    },
  )
}

test('half a line that a full disk or a kill left is closed before the next', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'x.log')
  open(path).append('one\n')
  appendFileSync(path, 'tw')
  open(path).append('three\n')
  assert.equal(readFileSync(path, 'utf8'), 'one\ntw\nthree\n')
})

test('while the file cannot be written, attempts are rare', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'away', 'x.log')
  writeFileSync(join(folder.path, 'away'), '')
  const file = open(path, { retryAfterMs: 600_000 })
  file.append('x\n')
  rmSync(join(folder.path, 'away'))
  file.append('x\n')
  assert.equal(existsSync(path), false, 'it could be written again, and was not tried')
})

test('kill -9 right after a line was written loses none', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'x.log')
  const module = new URL('./append-file.ts', import.meta.url).href
  const code = `
    import { AppendFile } from ${JSON.stringify(module)}
    const file = new AppendFile(process.argv[1], { remark: () => '', maxBytes: 200, keep: 3 })
    for (let n = 0; n < 100; n++) file.append(n + '\\n')
    process.kill(process.pid, 'SIGKILL')`
  const { signal } = spawnSync(process.execPath, ['--input-type=module', '-e', code, path])
  assert.equal(signal, 'SIGKILL')
  assert.equal(readAll(path), numbers(0, 100))
})

test('lines are never written through a link, nor into a pipe without a reader', () => {
  using folder = temporaryFolder()
  const other = join(folder.path, 'other')
  writeFileSync(other, 'mine\n')
  symlinkSync(other, join(folder.path, 'link.log'))
  open(join(folder.path, 'link.log')).append('x\n')
  assert.equal(readFileSync(other, 'utf8'), 'mine\n')
  const pipe = join(folder.path, 'pipe.log')
  execFileSync('mkfifo', [pipe])
  const file = open(pipe)
  for (let n = 0; n < 10; n++) file.append(`${'x'.repeat(50_000)}\n`)
})

test('the file is readable and writable by its owner only', () => {
  using folder = temporaryFolder()
  mkdirSync(join(folder.path, 'there'))
  const path = join(folder.path, 'there', 'a', 'x.log')
  open(path, { maxBytes: 10 }).append(numbers(1_000, 10))
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(statSync(`${path}.1`).mode & 0o777, 0o600)
  assert.equal(statSync(join(folder.path, 'there', 'a')).mode & 0o777, 0o700)
})

test('two writers of one file share its limit, and each goes on in the file that the other began', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'x.log')
  const writers = [1, 2].map(() => open(path, { maxBytes: 100, keep: 3 }))
  for (let n = 100; n < 160; n++) writers[n % 2]!.append(numbers(n, 1))
  const sizes = [path, `${path}.1`, `${path}.2`].map((each) => statSync(each).size)
  assert.deepEqual(sizes, [40, 100, 100])
  assert.equal(readAll(path), numbers(100, 60))
})

/** Writes so many lines with a number each, as one of several processes. */
const WRITER = `
  import { AppendFile } from '${new URL('./append-file.ts', import.meta.url).href}'
  const [path, name] = process.argv.slice(-2)
  const file = new AppendFile(path, { gapLine: () => '', maxBytes: 4_000, keep: 100, retryAfterMs: 0 })
  for (let n = 0; n < 1_000; n++) file.append(name + '-' + n + ' '.repeat(20) + '\\n')
`

test('processes that write one file at the same time lose no line when it is full', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'x.log')
  const args = ['--input-type=module', '--eval', WRITER, '--', path]
  const writers = ['a', 'b', 'c', 'd', 'e'].map((name) => {
    return once(spawn(process.execPath, [...args, name], { stdio: 'inherit' }), 'exit')
  })
  assert.deepEqual(await Promise.all(writers), Array(5).fill([0, null]))
  const files = readdirSync(folder.path)
  const lines = files.flatMap((name) => readFileSync(join(folder.path, name), 'utf8').split('\n'))
  assert.equal(new Set(lines.filter((line) => line !== '')).size, 5_000)
  assert.ok(files.length <= 101 && !files.includes('x.log.lock'), String(files))
})

test('a process that is killed while it rotates a file does not end the rotation for good', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'x.log')
  const file = open(path, { maxBytes: 100, keep: 3 })
  file.append(numbers(100, 25))
  writeFileSync(`${path}.lock`, '')
  file.append(numbers(125, 1))
  assert.equal(statSync(path).size, 104)
  const longAgo = new Date(Date.now() - 60_000)
  utimesSync(`${path}.lock`, longAgo, longAgo)
  file.append(numbers(126, 1))
  file.append(numbers(127, 1))
  assert.equal(readFileSync(path, 'utf8'), '127\n')
  assert.equal(readAll(path), numbers(100, 28))
})
