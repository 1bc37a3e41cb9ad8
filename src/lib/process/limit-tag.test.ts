import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { hasLimitTag, startWithLimitTag } from './limit-tag.ts'

const tag = { processTag: 'shop', execution: 'one' }
const skip = !startWithLimitTag(tag, () => {}) && 'prlimit is not there'

test(
  'a child inherits the mark through env -i; this process does not keep it',
  { skip },
  async () => {
    const started: ChildProcess[] = []
    startWithLimitTag(tag, () => {
      started.push(spawn('env', ['-i', '/bin/sh', '-c', 'echo up; exec sleep 60']))
    })
    const { pid, stdout } = started[0]!
    try {
      await once(stdout!, 'data')
      assert.equal(hasLimitTag(pid!, tag), true)
      assert.equal(hasLimitTag(pid!, { processTag: 'shop' }), true, 'every execution of the source')
      assert.equal(hasLimitTag(pid!, { processTag: 'shop', execution: 'two' }), false)
      assert.equal(hasLimitTag(pid!, { processTag: 'shops' }), false)
      assert.equal(hasLimitTag(process.pid, { processTag: 'shop' }), false)
    } finally {
      process.kill(pid!, 'SIGKILL')
    }
  },
)

test('the mark is taken off this process also when the start fails', { skip }, () => {
  const fail = (): void => {
    throw new Error('too long')
  }
  assert.throws(() => startWithLimitTag(tag, fail), /too long/)
  assert.equal(hasLimitTag(process.pid, tag), false)
})
