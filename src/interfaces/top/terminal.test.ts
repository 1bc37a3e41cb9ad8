import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openTerminal } from './terminal.ts'

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
