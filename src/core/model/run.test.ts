import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pauseReason } from './run.ts'

test('the reason of a pause does not repeat that it is one', () => {
  assert.equal(pauseReason({ because: 'paused by root@vm' }), ' by root@vm')
  assert.equal(pauseReason({ because: 'the site is down' }), ': the site is down')
})
