import assert from 'node:assert/strict'
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { test } from 'node:test'
import { hasLimitMark, startWithLimitMark } from './limit-tag.ts'

const marked = { cookie: 'shop', execution: 'one' }
const skip = !startWithLimitMark(marked, () => {}) && 'prlimit is not there'

test(
  'a child inherits the mark through env -i; this process does not keep it',
  { skip },
  async () => {
    const started: ChildProcess[] = []
    startWithLimitMark(marked, () => {
      started.push(spawn('env', ['-i', '/bin/sh', '-c', 'echo up; exec sleep 60']))
    })
    const { pid, stdout } = started[0]!
    try {
      await once(stdout!, 'data')
      assert.equal(hasLimitMark(pid!, marked), true)
      assert.equal(hasLimitMark(pid!, { cookie: 'shop' }), true, 'every execution of the source')
      assert.equal(hasLimitMark(pid!, { cookie: 'shop', execution: 'two' }), false)
      assert.equal(hasLimitMark(pid!, { cookie: 'shops' }), false)
      assert.equal(hasLimitMark(process.pid, { cookie: 'shop' }), false)
    } finally {
      process.kill(pid!, 'SIGKILL')
    }
  },
)

test('the mark is taken off this process also when the start fails', { skip }, () => {
  const fail = (): void => {
    throw new Error('too long')
  }
  assert.throws(() => startWithLimitMark(marked, fail), /too long/)
  assert.equal(hasLimitMark(process.pid, marked), false)
})
