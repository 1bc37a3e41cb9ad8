import assert from 'node:assert/strict'
import { test } from 'node:test'
import { KEEPALIVE, eventFrame, EventStream } from './event-stream.ts'

const KILOBYTES_100 = eventFrame('log', JSON.stringify('x'.repeat(100_000)))

test('a client that does not read is dropped after a timeout, and gets what was sent until then', async () => {
  const stream = new EventStream()
  let seconds = 0
  for (; seconds < 100 && !stream.ended.aborted; seconds++) {
    stream.send(KILOBYTES_100, seconds * 1_000)
  }
  assert.ok(seconds > 25 && seconds < 40, `${seconds} were taken`)
  stream.send(KEEPALIVE)
  const text = await stream.response.text()
  assert.equal(text.split('event: log').length, seconds)
})

test('a client that does not read is dropped at once when its buffer is full', () => {
  const stream = new EventStream()
  let sent = 0
  for (; sent < 1_000 && !stream.ended.aborted; sent++) stream.send(KILOBYTES_100, 0)
  assert.ok(sent > 100 && sent < 200, `${sent} were taken`)
})

test('an initial snapshot of any size does not drop the client', async () => {
  const stream = new EventStream()
  const large = eventFrame('overview', JSON.stringify('x'.repeat(20_000_000)))
  stream.send(large, 0)
  const reader = stream.response.body!.getReader()
  for (let n = 0; n < 2; n++) await reader.read()
  for (let n = 0; n < 5; n++) stream.send(KILOBYTES_100, 60_000)
  assert.equal(stream.ended.aborted, false)
  const several = new EventStream()
  for (let n = 0; n < 3; n++) several.send(eventFrame('run', 'x'.repeat(1_500_000)), n)
  several.send(KEEPALIVE, 15_000)
  assert.equal(several.ended.aborted, false)
})

test('a client that reads is never dropped', async () => {
  const stream = new EventStream()
  const reader = stream.response.body!.getReader()
  for (let n = 0; n < 100; n++) {
    stream.send(KILOBYTES_100)
    await reader.read()
  }
  assert.equal(stream.ended.aborted, false)
})

test('it ends once, from either side', async () => {
  const left = new EventStream()
  await left.response.body!.cancel()
  assert.ok(left.ended.aborted)
  left.send(KEEPALIVE)
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
