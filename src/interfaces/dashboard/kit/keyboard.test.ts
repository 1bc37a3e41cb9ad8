import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GO_TARGETS, readKey, nextRow, SHORTCUTS, acceptsText } from './keyboard.ts'

test('a key asks for one thing, and g waits for the place', () => {
  assert.deepEqual(readKey('/', false).command, { do: 'search' })
  assert.deepEqual(readKey('j', false).command, { do: 'move', by: 1 })
  assert.deepEqual(readKey('k', false).command, { do: 'move', by: -1 })
  assert.deepEqual(readKey('g', false), { command: null, afterG: true })
  assert.deepEqual(readKey('r', true), { command: { do: 'go', to: '/runs' }, afterG: false })
})

test('a second key that names no place is swallowed, and the next one counts again', () => {
  assert.deepEqual(readKey('x', true), { command: null, afterG: false })
  assert.deepEqual(readKey('x', false).command, { do: 'select' })
  assert.deepEqual(readKey('g', true), { command: null, afterG: true })
})

test('unbound keys do nothing, whatever their name', () => {
  for (const key of ['r', 'toString', '__proto__', 'constructor', 'F5', 'Tab', ' '])
    for (const afterG of [false, true])
      if (!(afterG && key in { r: 1 }))
        assert.equal(readKey(key, afterG).command, null, `${key} after g: ${afterG}`)
})

test('every place is in the help', () => {
  for (const key of Object.keys(GO_TARGETS))
    assert.ok(SHORTCUTS.some(({ keys }) => keys.join(' ') === `g ${key}`))
})

test('rows are walked one by one and end at the ends', () => {
  assert.equal(nextRow(-1, 1, 3), 0)
  assert.equal(nextRow(-1, -1, 3), 0)
  assert.equal(nextRow(2, 1, 3), 2)
  assert.equal(nextRow(1, -1, 3), 0)
  assert.equal(nextRow(0, 1, 0), null)
})

test('keys go to a focused text field, not to a checkbox', () => {
  const at = (tag: string, type = '') => acceptsText({ tag, type, isEditable: false })
  assert.ok(at('INPUT', 'search') && at('INPUT', 'text') && at('TEXTAREA') && at('select'))
  assert.ok(acceptsText({ tag: 'div', type: '', isEditable: true }))
  assert.ok(!at('INPUT', 'checkbox') && !at('TR') && !at('A') && !at('BUTTON', 'button'))
})
