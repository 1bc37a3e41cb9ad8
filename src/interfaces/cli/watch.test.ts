import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeScreen } from '../../lib/terminal/screen.ts'

function terminal(columns: number, rows: number) {
  const written: string[] = []
  const write = async (text: string): Promise<void> => void written.push(text)
  return { columns, rows, write, written }
}

test('a drawing goes over the last one', async () => {
  const output = terminal(80, 24)
  const screen = makeScreen(output)
  await screen.draw('one\ntwo\n')
  await screen.draw('three\n')
  assert.deepEqual(output.written, ['one\x1b[K\ntwo\x1b[K\n\x1b[J', '\x1b[2A\rthree\x1b[K\n\x1b[J'])
})

test('lines that a narrower terminal has wrapped are drawn over too', async () => {
  const output = terminal(80, 24)
  const screen = makeScreen(output)
  await screen.draw(`${'x'.repeat(70)}\n`)
  output.columns = 40
  await screen.draw('short\n')
  assert.ok(output.written[1]?.startsWith('\x1b[2A'))
})

test('rows that do not fit on the screen are counted', async () => {
  const output = terminal(80, 4)
  await makeScreen(output).draw('1\n2\n3\n4\n5\n')
  assert.equal(output.written[0], '1\x1b[K\n2\x1b[K\n… 3 more lines\x1b[K\n\x1b[J')
})
