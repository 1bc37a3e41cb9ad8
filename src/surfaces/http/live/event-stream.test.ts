import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BEAT, eventFrame, EventStream } from './event-stream.ts'

const KILOBYTES_100 = eventFrame('log', JSON.stringify('x'.repeat(100_000)))

test('who does not read is dropped after a megabyte, and gets what was sent until then', async () => {
  const stream = new EventStream()
  let sent = 0
  for (; sent < 100 && !stream.ended.aborted; sent++) stream.send(KILOBYTES_100)
  assert.ok(sent > 5 && sent < 20, `${sent} were taken`)
  stream.send(BEAT)
  const text = await stream.response.text()
  assert.equal(text.split('event: log').length, sent)
})

test('who reads is never dropped', async () => {
  const stream = new EventStream()
  const reader = stream.response.body!.getReader()
  for (let n = 0; n < 100; n++) {
    stream.send(KILOBYTES_100)
    await reader.read()
  }
  assert.equal(stream.ended.aborted, false)
})

test('it ends once, whoever ends it', async () => {
  const left = new EventStream()
  await left.response.body!.cancel()
  assert.ok(left.ended.aborted)
  left.send(BEAT)
  left.close()
  const closed = new EventStream()
  closed.close()
  closed.close()
  assert.match(await closed.response.text(), /^retry: \d+\n\n$/)
})

test('an event is its kind, its number and one line of data', () => {
  const text = (frame: Uint8Array) => new TextDecoder().decode(frame)
  assert.equal(text(eventFrame('trail', '{"a":1}', 7)), 'id: 7\nevent: trail\ndata: {"a":1}\n\n')
  assert.equal(text(eventFrame('back', '{}')), 'event: back\ndata: {}\n\n')
})
