import assert from 'node:assert/strict'
import { test } from 'node:test'
import { cleanJson, cleanText, countReplaced, cutText, isClean } from './text.ts'

test('NUL and lone surrogates are replaced, everything else stays', () => {
  assert.equal(cleanText('a\0b\ud800c'), 'a\ufffdb\ufffdc')
  assert.equal(countReplaced('a\0b\ud800c'), 2)
  for (const text of ['', 'plain', 'é漢\u{1f600}', '\ufffd', '\u0001']) {
    assert.equal(isClean(text), true)
    assert.equal(cleanText(text), text)
    assert.equal(countReplaced(text), 0)
  }
})

test('in JSON they are replaced in values and names, and escapes that only look like them stay', () => {
  const value = { 'k\0': ['a\ud800', '\u{1f600}', '\\u0000', '\\\\ud800', '\u001f"\n', 'x\udfff'] }
  const { json, replaced } = cleanJson(JSON.stringify(value))
  assert.equal(replaced, 3)
  assert.deepEqual(JSON.parse(json), {
    'k\ufffd': ['a\ufffd', '\u{1f600}', '\\u0000', '\\\\ud800', '\u001f"\n', 'x\ufffd'],
  })
})

test('a text is cut by bytes, with a note, and never within a character', () => {
  assert.equal(cutText('short', 100), 'short')
  assert.equal(cutText('é'.repeat(50), 100), 'é'.repeat(50))
  for (const char of ['a', 'é', '漢', '\u{1f600}']) {
    const cut = cutText(char.repeat(1_000), 100)
    assert.ok(Buffer.byteLength(cut) <= 100, cut)
    assert.ok(cut.isWellFormed() && !cut.includes('\ufffd'), cut)
    const note = `… (cut; it had ${char.length * 1_000} characters)`
    assert.ok(cut.endsWith(note), cut)
    assert.ok(cutText(cut, 80).endsWith(note), 'cut again')
  }
})
