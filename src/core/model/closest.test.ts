import assert from 'node:assert/strict'
import { test } from 'node:test'
import { closest } from './closest.ts'

test('a mistyped name finds what was probably meant', () => {
  const known = ['heartbeat', 'lease', 'retries', 'maxRetries']

  assert.equal(closest('hartbeat', known), 'heartbeat')
  assert.equal(closest('LEASE', known), 'lease')
  assert.equal(closest('maxretrys', known), 'maxRetries')
  assert.equal(closest('banana', known), null)
  assert.equal(closest('x', []), null)
})
