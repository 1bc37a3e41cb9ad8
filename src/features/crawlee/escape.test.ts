import assert from 'node:assert/strict'
import { test } from 'node:test'
import { escapeText, escapeJson, unescapeText, unescapeJson } from './escape.ts'
import { targetKey } from './request.ts'

const TEXTS = [
  '',
  'plain',
  'ü 🎈',
  'a\0b',
  '\ud83d',
  '\udf88\ud83d',
  '\u001a0000',
  '\\u0000 \u001a',
  '\0\0',
]

test('text that no engine can store is read back unchanged, in names too', () => {
  for (const text of TEXTS) {
    assert.equal(unescapeText(escapeText(text)), text)
    assert.ok(escapeText(text).isWellFormed() && !escapeText(text).includes('\0'))
    const value = { [text]: [text, { deep: text }, 1, null, true], ['__proto__']: text }
    const kept = escapeJson(value)
    assert.doesNotMatch(JSON.stringify(kept), /(?<!\\)\\u(0000|d[89a-f])/)
    assert.deepEqual(
      unescapeJson(JSON.parse(JSON.stringify(kept))),
      JSON.parse(JSON.stringify(value)),
    )
  }
  assert.equal(new Set(TEXTS.map(escapeText)).size, TEXTS.length, 'different texts stay different')
  assert.equal(escapeText('ü 🎈'), 'ü 🎈')
})

test('a key of any length is one that every engine keeps', () => {
  for (const key of [
    `${'a'.repeat(59)}${'🎈'.repeat(400)}`,
    '\0'.repeat(900),
    '\ud83d'.repeat(3),
  ]) {
    assert.ok(targetKey(key).isWellFormed() && !targetKey(key).includes('\0'))
    assert.ok(Buffer.byteLength(targetKey(key)) <= 1_000)
  }
})
