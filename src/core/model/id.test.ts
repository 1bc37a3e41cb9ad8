import assert from 'node:assert/strict'
import { test } from 'node:test'
import { timestampOfId, newId, shortId } from './id.ts'

test('ids are UUIDv7, each its own', () => {
  const ids = Array.from({ length: 1_000 }, newId)

  assert.equal(new Set(ids).size, 1_000)
  for (const id of ids) assert.match(id, /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-/)
})

test('an id made in a later millisecond sorts after', async () => {
  const before = newId()
  await new Promise((resolve) => setTimeout(resolve, 3))

  assert.ok(newId() > before)
})

test('the short form is the last eight digits: the first are the time, and alike', () => {
  const ids = Array.from({ length: 100 }, newId)

  assert.equal(shortId('0190c0de-0000-7000-8000-123456789abc'), '56789abc')
  assert.equal(new Set(ids.map(shortId)).size, 100)
})

test('an id contains its creation time', () => {
  const before = Date.now()
  const id = newId()

  assert.ok(timestampOfId(id) >= before && timestampOfId(id) <= Date.now())
})
