import assert from 'node:assert/strict'
import { test } from 'node:test'
import { jsonText, linkable, safe } from './safe.ts'

test('control and direction characters are shown, not obeyed', () => {
  assert.equal(safe('a\u202egpj.exe\u0000\u001b[31m'), String.raw`a\u202egpj.exe\x00\x1b[31m`)
  assert.equal(safe('Zürich 東京 👩‍👩‍👧'), 'Zürich 東京 👩‍👩‍👧')
})

test('lines stay lines', () => {
  assert.equal(safe('Error: no\r\n    at a\n    at b'), 'Error: no\n    at a\n    at b')
})

test('JSON for people escapes what the characters would do, and keeps big and odd values exact', () => {
  assert.equal(jsonText({ a: '\u202e', b: 'x' }), '{\n  "a": "\\u202e",\n  "b": "x"\n}')
})

test('only http and https addresses can be followed', () => {
  assert.equal(linkable('https://example.com/a?b=1'), 'https://example.com/a?b=1')
  for (const text of [
    'javascript:alert(1)',
    ' java\nscript:alert(1)',
    'data:text/html,x',
    'file:///etc/passwd',
    '/relative',
    '',
    null,
  ]) {
    assert.equal(linkable(text), null, String(text))
  }
})
