import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { zstdCompressSync } from 'node:zlib'
import * as fc from 'fast-check'
import type { UnstuckEvent } from '../../core/model/event.ts'
import { temporaryFolder } from '../../testing/sqlite-engine.ts'
import { journalName, LINE_BYTES_MAX, listJournals, openJournal } from './journal.ts'
import {
  nothingSkipped,
  readJournal,
  journalTailOffset,
  type JournalEntry,
} from '../../features/journal/reader.ts'
import { followJournals } from '../../features/journal/follow.ts'

const STOP: UnstuckEvent = { type: 'worker_stop', reason: 'the test is over' }

function beat(claims: number): UnstuckEvent {
  return { type: 'heartbeat', claims, loopLagMs: 0 }
}

async function toArray(entries: AsyncIterable<JournalEntry>): Promise<JournalEntry[]> {
  const all: JournalEntry[] = []
  for await (const entry of entries) all.push(entry)
  return all
}

async function readAll(path: string): Promise<{ entries: JournalEntry[]; skipped: object }> {
  const skipped = nothingSkipped()
  return { entries: await toArray(readJournal(path, skipped)), skipped }
}

test('an event is one line of JSON with its time and worker, for its owner only', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'journals', 'w.jsonl')
  openJournal(path, 'w')(STOP)
  const { entries } = await readAll(path)
  assert.equal(entries.length, 1)
  const { time, ...rest } = entries[0]!
  assert.match(String(time), /^\d{4}-\d\d-\d\dT.*Z$/)
  assert.deepEqual(rest, { worker: 'w', ...STOP })
  assert.equal(statSync(path).mode & 0o777, 0o600)
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
})

test('entries that cannot be written are counted, and the count is logged when writing works again', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'away', 'w.jsonl')
  // A file stands where the folder should be: every attempt to open the journal fails.
  writeFileSync(dirname(path), '')
  const journal = openJournal(path, 'w', { retryAfterMs: 20 })
  for (let n = 0; n < 5; n++) journal(beat(n))
  rmSync(dirname(path))
  await sleep(30)
  journal(STOP)
  const { entries } = await readAll(path)
  assert.deepEqual(
    entries.map(({ type, lost }) => [type, lost]),
    [
      ['journal_gap', 5],
      ['worker_stop', undefined],
    ],
  )
})

test('an event that cannot be written as JSON is dropped without an error', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  const journal = openJournal(path, 'w', { retryAfterMs: 0 })
  journal({ ...STOP, reason: 1n as unknown as string })
  journal(STOP)
  assert.deepEqual(
    (await readAll(path)).entries.map(({ type }) => type),
    ['journal_gap', 'worker_stop'],
  )
})

test('a line left unfinished by a kill does not swallow the next one', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  openJournal(path, 'w')(beat(1))
  appendFileSync(path, '{"type":"heartb')
  openJournal(path, 'w')(STOP)
  const { entries, skipped } = await readAll(path)
  assert.deepEqual(
    entries.map(({ type }) => type),
    ['heartbeat', 'worker_stop'],
  )
  assert.deepEqual(skipped, { garbage: 1, tooLong: 0, cut: 0 })
})

test('an event too long for a line is replaced by a note', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  openJournal(path, 'w')({ ...STOP, reason: 'x'.repeat(LINE_BYTES_MAX) })
  const { entries, skipped } = await readAll(path)
  assert.equal(entries[0]?.type, 'worker_stop')
  assert.deepEqual(skipped, nothingSkipped())
})

test('passwords do not get into the journal', () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  openJournal(path, 'w')({ type: 'store_error', message: 'postgres://me:hunter2@db/x is away' })
  assert.doesNotMatch(readFileSync(path, 'utf8'), /hunter2/)
})

test('a journal cut at any byte still reads all its complete lines', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  const texts = fc.array(fc.string({ unit: 'binary' }), { minLength: 1, maxLength: 8 })
  await fc.assert(
    fc.asyncProperty(texts, fc.nat(), async (reasons, at) => {
      rmSync(path, { force: true })
      const journal = openJournal(path, 'w')
      for (const reason of reasons) journal({ ...STOP, reason })
      const whole = readFileSync(path)
      const cut = whole.subarray(0, at % (whole.length + 1))
      writeFileSync(path, cut)
      const complete = cut.toString('latin1').split('\n').length - 1
      const { entries } = await readAll(path)
      // A line that lacks nothing but its line feed is read too.
      assert.ok(entries.length === complete || entries.length === complete + 1)
      const read = entries.map(({ reason }) => reason)
      assert.deepEqual(
        read,
        reasons.slice(0, read.length).map((text) => text.toWellFormed()),
      )
    }),
  )
})

test('a compressed journal cut at any byte reads what it can, and never throws', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl.zst')
  const plain = Array.from({ length: 50 }, (_, n) => `${JSON.stringify({ type: 'x', n })}\n`).join(
    '',
  )
  const whole = zstdCompressSync(plain)
  for (let at = 0; at <= whole.length; at += 3) {
    writeFileSync(path, whole.subarray(0, at))
    const { entries } = await readAll(path)
    entries.forEach(({ n }, i) => assert.equal(n, i))
  }
  writeFileSync(path, whole)
  assert.equal((await readAll(path)).entries.length, 50)
})

test('unreadable lines are counted and skipped', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  const long = `{"type":"${'x'.repeat(LINE_BYTES_MAX)}"}`
  writeFileSync(path, `nonsense\n[1]\nnull\n\n{"type":"a"}\n${long}\n{"type":"b"}\n\xff\xfe\n{"typ`)
  const { entries, skipped } = await readAll(path)
  assert.deepEqual(entries, [{ type: 'a' }, { type: 'b' }])
  assert.deepEqual(skipped, { garbage: 4, tooLong: 1, cut: 1 })
})

test('bytes of any kind never make the reader throw', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  await fc.assert(
    fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), async (bytes) => {
      writeFileSync(path, bytes)
      await readAll(path)
    }),
  )
})

function longLine(n: number): string {
  return `${JSON.stringify({ n, fill: 'x'.repeat(1_000) })}\n`
}

test('the last lines are found from the end', async () => {
  using folder = temporaryFolder()
  const path = join(folder.path, 'w.jsonl')
  writeFileSync(path, Array.from({ length: 300 }, (_, n) => longLine(n)).join(''))
  for (const count of [1, 2, 100, 299, 300, 301]) {
    const start = await journalTailOffset(path, count)
    const entries = await toArray(readJournal(path, nothingSkipped(), start))
    assert.equal(entries.length, Math.min(300, count))
    assert.equal(entries.at(-1)?.['n'], 299)
  }
  appendFileSync(path, '{"n":300')
  assert.equal(await journalTailOffset(path, 1), statSync(path).size - '{"n":300'.length)
})

test(
  'a followed journal yields new events, also when the file was replaced',
  { timeout: 150_000 },
  async () => {
    using folder = temporaryFolder()
    const path = join(folder.path, 'j', 'w.jsonl')
    mkdirSync(dirname(path))
    writeFileSync(path, '{"n":1}\n{"n":')
    const enough = new AbortController()
    const entries = followJournals(async () => [path], new Map(), enough.signal)
    const next = async (): Promise<unknown> => (await entries.next()).value?.['n']
    assert.equal(await next(), 1)
    appendFileSync(path, '2}\n')
    assert.equal(await next(), 2)
    writeFileSync(path, '{"n":3}\n')
    assert.equal(await next(), 3)
    enough.abort()
    assert.equal((await entries.next()).done, true)
  },
)

test('the name of a journal has the source, the end of the worker id and the process', () => {
  const worker = '019abcde-0000-7000-8000-0000c0ffee42'
  const pairs = [
    ['directory', 'directory-c0ffee42-4711.jsonl'],
    ['', 'commands-c0ffee42-4711.jsonl'],
    ['ca/la', 'ca-la-1ba2290e-c0ffee42-4711.jsonl'],
    ['東京', 'source-130016b2-c0ffee42-4711.jsonl'],
  ] as const
  for (const [source, name] of pairs) assert.equal(journalName(source, worker, 4711), name)
})

test('any source makes a short and safe name of its own, which is found again', async () => {
  using folder = temporaryFolder()
  const worker = '019abcde-0000-7000-8000-0000c0ffee42'
  const sources = fc.uniqueArray(fc.string({ unit: 'binary', minLength: 1, maxLength: 200 }), {
    minLength: 2,
    maxLength: 2,
  })
  await fc.assert(
    fc.asyncProperty(sources, fc.nat(4_194_304), async (pair, pid) => {
      const names = pair.map((source) => journalName(source, worker, pid))
      assert.notEqual(names[0], names[1])
      for (const name of names) {
        assert.match(name, /^[a-z0-9][a-z0-9._-]{0,99}$/i)
        writeFileSync(join(folder.path, name), '')
      }
      const found = await listJournals(folder.path)
      assert.deepEqual(
        found.map((one) => [one.path, one.worker, one.isCompressed]).sort(),
        names.map((name) => [join(folder.path, name), 'c0ffee42', false]).sort(),
      )
      for (const name of names) rmSync(join(folder.path, name))
    }),
  )
})
