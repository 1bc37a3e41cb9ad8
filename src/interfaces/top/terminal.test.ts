import assert from 'node:assert/strict'
import { test } from 'node:test'
import { flushKeys, openTerminal, parseKeys } from './terminal.ts'

test('on Windows Ctrl-Z does nothing: there nothing would bring it back', (t) => {
  const { stdin, stdout } = process
  const sent: string[] = []
  stdin.setRawMode ??= () => stdin
  const raw = t.mock.method(stdin, 'setRawMode', () => stdin)
  const written = t.mock.method(stdout, 'write', (text: string) => sent.push(text) > 0)
  const killed = t.mock.method(process, 'kill', () => true)
  const platform = Object.getOwnPropertyDescriptor(process, 'platform')!
  Object.defineProperty(process, 'platform', { ...platform, value: 'win32' })
  const terminal = openTerminal({ onKey() {}, onChange() {}, onEnd() {} })
  try {
    terminal.suspend()
    assert.equal(raw.mock.callCount(), 1, 'it keeps the terminal')
  } finally {
    terminal.close()
    Object.defineProperty(process, 'platform', platform)
    written.mock.restore()
  }
  assert.equal(killed.mock.callCount(), 0)
  assert.equal(sent.length, 2)
})

test('key sequences of all common terminals are decoded', () => {
  const spelled = '\x1b[A\x1bOB\x1b[5~\x1b[6~\x1b[H\x1b[4~\x1b[Z\r\n\t\x7f\x03\x1aRüж好'
  const keys = 'up down page-up page-down home end back-tab enter enter tab backspace ctrl-c ctrl-z'
  assert.deepEqual(parseKeys(spelled), { keys: `${keys} R ü ж 好`.split(' '), rest: '' })
})

test('a key with Shift or Ctrl is that key; an unknown one is ignored', () => {
  assert.deepEqual(parseKeys('\x1b[1;5A\x1b[6;2~\x1b[200~\x1b[31~\x01x').keys, [
    'up',
    'page-down',
    'x',
  ])
})

test('a sequence that comes in two parts is one key', () => {
  const first = parseKeys('j\x1b[')
  assert.deepEqual(first, { keys: ['j'], rest: '\x1b[' })
  assert.deepEqual(parseKeys(`${first.rest}B`), { keys: ['down'], rest: '' })
})

test('Escape is told from the start of a sequence by what does not follow', () => {
  assert.deepEqual(parseKeys('\x1b'), { keys: [], rest: '\x1b' })
  assert.deepEqual(flushKeys('\x1b'), ['escape'])
  assert.deepEqual(flushKeys(''), [])
  assert.deepEqual(parseKeys('\x1bx'), { keys: ['escape', 'x'], rest: '' })
})
