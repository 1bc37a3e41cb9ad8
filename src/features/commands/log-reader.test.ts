import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import process from 'node:process'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { UsageError } from '../../core/model/errors.ts'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { createRunFolder, runFolder } from '../../lib/files/data-folder.ts'
import { LogFile, type LogLine } from './log-file.ts'
import { logExists, readLog, type FollowOptions, type LogFilter } from './log-reader.ts'

const RUN = '0190c0de-0000-7000-8000-123456789abc'
const ALL: LogFilter = { lines: null }

async function texts(
  path: string,
  wanted: LogFilter,
  following?: FollowOptions,
): Promise<string[]> {
  const found: string[] = []
  for await (const batch of readLog(path, wanted, following ?? null)) {
    found.push(...batch.map(({ text }) => text))
  }
  return found
}

function numbers(from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, n) => String(from + n))
}

/** A log of numbers in four files of about 30 lines. */
function rotated(folder: string, count = 100): string {
  const path = join(folder, 'output.log')
  const log = new LogFile(path, { maxBytes: 1_000, keep: 3 })
  for (const number of numbers(0, count)) log.write('out', [number])
  return path
}

test('all files are read, the oldest first', async () => {
  using folder = temporaryFolder()
  const path = rotated(folder.path)
  assert.ok(existsSync(`${path}.3`))
  const found = await texts(path, ALL)
  assert.ok(found.length > 90)
  assert.deepEqual(found, numbers(100 - found.length, 100))
})

test('the last lines are those that match, across files', async () => {
  using folder = temporaryFolder()
  const path = rotated(folder.path)
  const log = new LogFile(path)
  for (const number of ['a', 'b', 'c']) {
    log.write('err', [number])
    log.write('out', ['x', 'y'])
  }
  assert.deepEqual(await texts(path, { lines: 3 }), ['c', 'x', 'y'])
  assert.deepEqual(await texts(path, { lines: 2, stream: 'err' }), ['b', 'c'])
  const end = 'a x y b x y c x y'.split(' ')
  assert.deepEqual(await texts(path, { lines: 50 }), [...numbers(59, 100), ...end])
  assert.deepEqual(await texts(path, { lines: 50, stream: 'run' }), [])
})

test('lines printed before the given time are left out', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  const at = (second: number): string => `2026-11-16T10:00:0${second}.000Z out ${second}\n`
  writeFileSync(path, [1, 2, 3, 4].map(at).join(''))
  const since = new Date('2026-11-16T10:00:02.500Z')
  assert.deepEqual(await texts(path, { lines: null, since }), ['3', '4'])
})

test('a line that a kill cut short is read, and what is no line is passed over', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  new LogFile(path).write('out', ['one'])
  appendFileSync(path, '2026-11-16T\nnonsense\n2026-11-16T10:00:00.000Z out tw')
  assert.deepEqual(await texts(path, { lines: 5 }), ['one', 'tw'])
})

test('a log larger than a chunk is read whole, and the last lines are the last', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  const log = new LogFile(path)
  log.write('out', numbers(0, 20_000))
  assert.deepEqual(await texts(path, ALL), numbers(0, 20_000))
  assert.deepEqual(await texts(path, { lines: 5_000 }), numbers(15_000, 20_000))
})

/** Reads on until it is told that the log is over. */
function follow(path: string, wanted: LogFilter): Follower {
  const enough = new AbortController()
  const follower: Follower = { lines: [], missed: 0, enough, ended: Promise.resolve() }
  const following: FollowOptions = {
    signal: enough.signal,
    isFinished: async () => follower.isOver === true,
    onMissed: () => void follower.missed++,
  }
  follower.ended = (async () => {
    for await (const batch of readLog(path, wanted, following)) {
      follower.lines.push(...batch)
      await follower.pause
    }
  })()
  return follower
}

type Follower = {
  lines: LogLine[]
  missed: number
  enough: AbortController
  ended: Promise<void>
  isOver?: boolean
  pause?: Promise<void>
}

async function waitUntil(condition: () => boolean): Promise<void> {
  while (!condition()) await sleep(10)
}

/** Less than the files hold that are kept: who is no further behind has all lines. */
const AHEAD_MAX = 1_000

test('a log is followed through every rotation while another process writes it', async () => {
  using folder = temporaryFolder()
  const path = rotated(folder.path, 3)
  const code = `
    import { LogFile } from ${JSON.stringify(new URL('./log-file.ts', import.meta.url).href)}
    import { setTimeout as sleep } from 'node:timers/promises'
    const log = new LogFile(process.argv[1], { maxBytes: 20_000, keep: 3 })
    let read = 0
    process.on('message', (count) => (read = count))
    for (let n = 3; n < 3_003; n++) {
      log.write('out', [String(n)])
      if (n % 20 === 0) do await sleep(1); while (n - read > ${AHEAD_MAX})
    }
    process.disconnect()`
  const follower = follow(path, { lines: 1 })
  await waitUntil(() => follower.lines.length === 1)
  const writer = spawn(process.execPath, ['--input-type=module', '-e', code, path], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  })
  const report = setInterval(() => {
    if (writer.connected) writer.send(follower.lines.length, () => {})
  }, 10)
  await once(writer, 'exit')
  clearInterval(report)
  assert.ok(existsSync(`${path}.3`))
  follower.isOver = true
  await follower.ended
  assert.equal(follower.missed, 0)
  assert.deepEqual(
    follower.lines.map(({ text }) => text),
    numbers(2, 3_003),
  )
})

test('following starts with the last lines and ends with the run, its very last words included', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  const log = new LogFile(path)
  log.write('out', ['one', 'two', 'three'])
  const follower = follow(path, { lines: 2 })
  await waitUntil(() => follower.lines.length === 2)
  log.write('out', ['four'])
  await waitUntil(() => follower.lines.length === 3)
  follower.isOver = true
  log.note('ended: exit code 0')
  await follower.ended
  assert.deepEqual(
    follower.lines.map(({ text }) => text),
    ['two', 'three', 'four', 'ended: exit code 0'],
  )
})

test('lines printed between the end of the run and the last read are shown too', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  new LogFile(path).write('out', ['one'])
  const enough = new AbortController().signal
  const isOver = async (): Promise<boolean> => {
    new LogFile(path).write('out', ['two'])
    return true
  }
  assert.deepEqual(
    await texts(path, ALL, { signal: enough, isFinished: isOver, onMissed: () => {} }),
    ['one', 'two'],
  )
})

test('a reader that falls behind the kept files is notified, and continues with what is there', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'output.log')
  const log = new LogFile(path, { maxBytes: 1_000, keep: 2 })
  log.write('out', ['first'])
  const { promise, resolve } = Promise.withResolvers<void>()
  const follower = follow(path, ALL)
  follower.pause = promise
  await waitUntil(() => follower.lines.length === 1)
  for (const number of numbers(0, 500)) log.write('out', [number])
  resolve()
  follower.isOver = true
  await follower.ended
  assert.equal(follower.missed, 1)
  const found = follower.lines.slice(1).map(({ text }) => text)
  // The file in its hands to the end, then all that is left.
  const gap = found.findIndex((text, n) => text !== String(n))
  assert.ok(gap > 10 && found.length > gap + 50)
  assert.deepEqual(found, [...numbers(0, gap), ...numbers(500 - found.length + gap, 500)])
})

test('Ctrl-C ends it at once', async () => {
  using folder = temporaryFolder()
  const follower = follow(rotated(folder.path), { lines: 1 })
  await waitUntil(() => follower.lines.length === 1)
  follower.enough.abort()
  await follower.ended
})

test('a link or a pipe in the place of a log is refused, and nothing is read', async () => {
  using folder = temporaryFolder()
  const secret = join(folder.path, 'secret')
  writeFileSync(secret, '2026-11-16T10:00:00.000Z out hunter2\n')
  const link = join(folder.path, 'link.log')
  symlinkSync(secret, link)
  await assert.rejects(texts(link, ALL), UsageError)
  const pipe = join(folder.path, 'pipe.log')
  execFileSync('mkfifo', [pipe])
  await assert.rejects(texts(pipe, ALL), /is not a log/)
  const path = rotated(folder.path)
  renameSync(`${path}.1`, join(folder.path, 'elsewhere'))
  symlinkSync(secret, `${path}.1`)
  await assert.rejects(texts(path, ALL), UsageError)
})

test('only a log of this run, in its own folder, counts as there', async () => {
  using base = temporaryFolder()
  const { logPath } = createRunFolder(base.path, RUN)
  assert.equal(await logExists(logPath, RUN), false)
  new LogFile(logPath).write('out', ['x'])
  assert.equal(await logExists(logPath, RUN), true)
  assert.equal(await logExists(logPath, RUN.replace('abc', 'abd')), false)
  assert.equal(await logExists('/etc/passwd', RUN), false)
  // In the middle of a rotation, and after a removal of the newest.
  renameSync(logPath, `${logPath}.1`)
  assert.equal(await logExists(logPath, RUN), true)
})

test('a run folder that leads somewhere else is not looked into', async () => {
  using base = temporaryFolder()
  const elsewhere = join(base.path, 'elsewhere')
  mkdirSync(elsewhere)
  writeFileSync(join(elsewhere, 'output.log'), readFileSync(import.meta.filename))
  const { folder, logPath } = runFolder(base.path, RUN)
  mkdirSync(dirname(folder))
  symlinkSync(elsewhere, folder)
  assert.equal(await logExists(logPath, RUN), false)
})
