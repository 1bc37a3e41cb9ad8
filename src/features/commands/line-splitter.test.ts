import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { redactor } from '../../core/model/redact.ts'
import { cpuMs } from '../../testing/cpu-time.ts'
import { TRUNCATION_MARK, LINE_MAX, LineSplitter } from './line-splitter.ts'

/** The lines of a text that comes in these chunks. */
function split(chunks: readonly (string | Buffer)[], clean = (text: string) => text): string[] {
  const splitter = new LineSplitter(clean)
  const lines = chunks.flatMap((chunk) => splitter.push(Buffer.from(chunk)))
  return [...lines, ...splitter.end()]
}

const CASES = [
  ['lines', 'one\ntwo\n', ['one', 'two']],
  ['empty lines', '\n\na\n', ['', '', 'a']],
  ['a last line without an end', 'one\ntwo', ['one', 'two']],
  ['nothing', '', []],
  ['line ends of Windows', 'one\r\ntwo\r\r\n', ['one', 'two']],
  ['a progress bar', '10 %\r50 %\r100 %\ndone\n', ['100 %', 'done']],
  ['a progress bar that ends with the process', '10 %\r50 %\r', ['50 %']],
  ['a bar that was wiped away', '50 %\r    \rdone\n', ['done']],
  ['only carriage returns', '\r\r\r\n', ['']],
  ['text beyond ASCII', 'Größe 東京 👩‍👩‍👧\n', ['Größe 東京 👩‍👩‍👧']],
] as const

for (const [what, text, lines] of CASES) {
  test(`${what}, cut into chunks at any byte`, () => {
    const bytes = Buffer.from(text)
    assert.deepEqual(split([bytes]), lines)
    assert.deepEqual(split([...bytes].map((byte) => Buffer.from([byte]))), lines)
    for (let at = 0; at <= bytes.length; at++) {
      assert.deepEqual(split([bytes.subarray(0, at), bytes.subarray(at)]), lines)
    }
  })
}

test('however the bytes are cut, the lines are the same', () => {
  const parts = fc.constantFrom('a', 'é', '東', '👍', '\r', '\n', '\r\n', '\xff')
  fc.assert(
    fc.property(fc.array(parts), fc.array(fc.nat(40)), (text, cuts) => {
      const bytes = Buffer.from(text.join(''))
      const chunks: Buffer[] = []
      let from = 0
      for (const length of cuts) {
        chunks.push(bytes.subarray(from, from + length))
        from += length
      }
      chunks.push(bytes.subarray(from))
      assert.deepEqual(split(chunks), split([bytes]))
    }),
  )
})

test('bytes that are no text become a mark, and the line goes on', () => {
  assert.deepEqual(split([Buffer.from([0x61, 0xff, 0x62, 0x0a])]), ['a\ufffdb'])
})

for (const [what, size] of [
  ['all at once', 300_000],
  ['in small chunks', 1_000],
  ['just beyond the limit', LINE_MAX + 1],
] as const) {
  test(`a line without end that comes ${what} is cut once, and the next is whole again`, () => {
    const chunks = Array.from({ length: Math.ceil(200_000 / size) }, () => 'x'.repeat(size))
    const lines = split([...chunks, 'y'.repeat(70_000), '\nnext\n'])
    assert.deepEqual(
      lines.map((line) => line.length),
      [LINE_MAX + TRUNCATION_MARK.length, 4],
    )
    assert.ok(lines[0]!.endsWith(TRUNCATION_MARK) && lines[0]!.startsWith('xxx'))
  })
}

test('a line of the longest length is not cut', () => {
  assert.deepEqual(split(['x'.repeat(LINE_MAX), '\n']), ['x'.repeat(LINE_MAX)])
})

test('a progress bar that is written over for hours is not held', () => {
  const splitter = new LineSplitter((text) => text)
  const bar = Buffer.from(`${'#'.repeat(10_000)}\r`)
  for (let n = 0; n < 1_000; n++) assert.deepEqual(splitter.push(bar), [])
  assert.deepEqual(splitter.push(Buffer.from('done\n')), ['done'])
})

test('a cut through a secret shows no part of it', () => {
  const secret = 'hunter2-hunter2-hunter2'
  const clean = redactor([secret])
  for (let before = LINE_MAX - 30; before < LINE_MAX + 5_000; before += 7) {
    const [line] = split(['x'.repeat(before), secret, 'x'.repeat(20_000)], clean)
    assert.ok(!line!.includes('hunter'), `cut after ${before}`)
  }
  // What is blacked out is shorter than it was: the end of what was looked at must not move into what is kept.
  const many = `${secret} `.repeat(10_000)
  for (let n = 0; n < 24; n++) {
    const [line] = split(['x'.repeat(n), many.slice(0, 70_000)], clean)
    assert.ok(!line!.includes('hunter'), `shifted by ${n}`)
  }
})

test('hostile carriage returns cost no more than their length', () => {
  const spentMs = cpuMs(() => {
    split(Array.from({ length: 50 }, () => `${'\r'.repeat(60_000)}x`))
    split([`${'\r'.repeat(1_000_000)}x`])
  })
  assert.ok(spentMs < 1_000, `${spentMs} ms`)
})
